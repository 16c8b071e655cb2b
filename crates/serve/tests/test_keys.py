"""Keys, scopes, rates, TLS and CORS."""

import json
import os
import signal
import socket
import ssl
import subprocess
import threading
import time

import pytest
from conftest import ADD, DOUBLE, LIMIT, PROGRAM, eventually, run
from test_answers import kernel


@pytest.fixture
def keyed(begin):
    service = begin("--kernels", "--kernel-time", "60", keys=True, expect=False)
    service.file = service.folder / "keys.toml"

    def add(*more):
        """A new key, once the service knows it: before, it would be a guess."""
        before = readings()
        key = run("keys", "add", "--name", "test", "--keys", service.file, *more).strip()
        eventually(lambda: not service.process or readings() > before, lambda: service.lines)
        return key

    def readings():
        return service.process and service.lines.count("keys: read again\n")

    service.add = add
    service.key = add()
    return service.start()


def test_without_a_key(keyed):
    key, keyed.key = keyed.key, None
    for path in ("/v1/jobs", "/v1/devices", "/v1/monitor", "/metrics"):
        answer = keyed.ask("GET", path)
        assert answer.status == 401 and answer.headers["www-authenticate"] == "Bearer"
    for value in ("", "Bearer", "Bearer ", "Bearer x", f"Basic {key}", f"Bearer {key[:-1]}", f"Bearer {key[:-1]}é".encode().decode("latin1"), "Bearer cantus_" + "a" * 5000):
        assert keyed.ask("GET", "/v1/jobs", headers={"Authorization": value}).status in (401, 429, 431), value
    assert keyed.ask("GET", "/health").status == 200 and keyed.ask("GET", "/docs").status == 200


def test_guessing_is_slow_and_bounded(keyed):
    right, prefix = keyed.key, keyed.key.rsplit("_", 1)[0]
    assert keyed.compute(ADD).status == 200
    codes = [keyed.ask("GET", "/v1/jobs", key=f"{prefix}_{guess:064x}").status for guess in range(30)]
    assert codes[0] == 401 and codes[9] == 401 and 429 in codes[10:]
    # Who was known before is not locked out.
    for _ in range(50):
        assert keyed.compute(ADD, key=right).status == 200


def test_right_keys_among_guesses(keyed):
    """Guesses are refused before anything is hashed for them, and a right key, seen before or not, does not count as one."""
    known = keyed.key
    assert keyed.compute(ADD).status == 200
    fresh = [keyed.add() for _ in range(3)]
    codes = []

    def guess(number):
        prefix = (known if number % 2 else fresh[0]).rsplit("_", 1)[0]
        codes.append(keyed.ask("GET", "/v1/jobs", key=f"{prefix}_{number:064x}").status)

    threads = [threading.Thread(target=guess, args=(number,)) for number in range(100)]
    for thread in threads:
        thread.start()
    right = [keyed.compute(ADD, key=key).status for key in (*fresh, known)]
    for thread in threads:
        thread.join()
    assert right == [200] * 4
    # Ten, and one more each five seconds.
    assert set(codes) == {401, 429} and codes.count(401) <= 10 + LIMIT // 5, codes
    # A changed file makes nobody unknown.
    other = keyed.add()
    assert [keyed.compute(ADD, key=key).status for key in (known, other)] == [200] * 2


def test_keys_made_at_once(keyed):
    command = [*PROGRAM, "keys", "add", "--name", "n", "--keys", str(keyed.file)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(12)]
    keys = [process.communicate(timeout=LIMIT)[0].strip() for process in processes]
    assert all(process.returncode == 0 for process in processes)
    listed = run("keys", "list", "--keys", keyed.file)
    assert all(key.split("_")[1] in listed for key in keys) and len(set(keys)) == 12
    for key in keys:
        eventually(lambda: keyed.compute(ADD, key=key).status == 200)


def test_a_file_of_keys_that_is_gone_or_damaged(keyed):
    assert keyed.compute(ADD).status == 200
    text = keyed.file.read_text()
    for damage in (lambda: keyed.file.unlink(), lambda: keyed.file.write_text("garbage [")):
        before = len(keyed.lines)
        damage()
        eventually(lambda: any("not reloaded" in line for line in keyed.lines[before:]))
        time.sleep(2)
        assert sum("keys:" in line for line in keyed.lines[before:]) == 1, keyed.lines[before:]
        assert keyed.compute(ADD).status == 200
        keyed.file.write_text(text)
        eventually(lambda: any("keys: read again" in line for line in keyed.lines[before:]))
    # A file with the old time is read all the same.
    times = keyed.file.stat()
    run("keys", "revoke", keyed.key.split("_")[1], "--keys", keyed.file)
    os.utime(keyed.file, ns=(times.st_atime_ns, times.st_mtime_ns))
    eventually(lambda: keyed.compute(ADD).status == 401)


def test_names_are_one_line(keyed):
    for name in ("a\nb", "\x1b[2J", "", "a\u202eb"):
        run("keys", "add", "--name", name, "--keys", keyed.file, code=2)
    # Another program may have written the file.
    keyed.file.write_text(keyed.file.read_text().replace('name = "test"', 'name = "x\\n000000000000  administration\\u001b[2J"'))
    listed = run("keys", "list", "--keys", keyed.file)
    assert len(listed.splitlines()) == 1 and "\x1b" not in listed and "\\u{a}000000000000" in listed


def test_a_file_of_keys_behind_a_link(keyed, tmp_path):
    """The link stays and the file behind it is changed; nothing that lies beside it is written over."""
    real, victim = tmp_path / "real.toml", tmp_path / "victim"
    keyed.file.rename(real)
    keyed.file.symlink_to(real)
    victim.write_text("victim")
    for folder in (keyed.file.parent, tmp_path):
        (folder / "keys.toml.new").symlink_to(victim)
        (folder / "real.toml.new").symlink_to(victim)
    key = keyed.add()
    assert keyed.file.is_symlink() and real.read_text().count("[[key]]") == 2 and victim.read_text() == "victim"
    assert real.stat().st_mode & 0o777 == 0o600
    assert keyed.compute(ADD, key=key).status == 200
    keyed.file.unlink()
    keyed.file.symlink_to(tmp_path / "nowhere")
    run("keys", "add", "--name", "n", "--keys", keyed.file, code=1)
    assert keyed.file.is_symlink() and not (tmp_path / "nowhere").exists()


def test_many_right_keys_at_once(keyed):
    """A right key waits for its turn to be verified, and is never refused."""
    text, secret = keyed.file.read_text(), keyed.key.rsplit("_", 1)[1]
    own = keyed.key.split("_")[1]
    ids = [f"{number:012x}" for number in range(100)]
    keyed.file.write_text(text + "".join(text.replace(own, id_) for id_ in ids))
    eventually(lambda: any("read again" in line for line in keyed.lines))
    codes = []
    threads = [threading.Thread(target=lambda id_=id_: codes.append(keyed.ask("GET", "/v1/devices", key=f"cantus_{id_}_{secret}").status)) for id_ in ids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [200] * 100, codes


def test_headers_that_could_be_read_two_ways(keyed):
    body = json.dumps(ADD).encode()

    def status(*head, sent=body):
        head = "".join(f"{line}\r\n" for line in ("Host: localhost", "Content-Type: application/json", "Connection: close", *head))
        return int(keyed.raw(f"POST /v1/compute HTTP/1.1\r\n{head}\r\n".encode() + sent).split()[1])

    key, length = f"Authorization: Bearer {keyed.key}", f"Content-Length: {len(body)}"
    chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    assert status(key, length) == 200 and status(key, "Transfer-Encoding: Chunked", sent=chunked) == 200
    assert status(key, "Authorization: Bearer x", length) == 400 and status("Authorization: Bearer x", key, length) == 400
    assert status(key, "Transfer-Encoding: gzip, chunked", sent=chunked) == 501
    assert status(key, "Transfer-Encoding: gzip", "Transfer-Encoding: chunked", sent=chunked) == 501


def test_a_file_of_keys_that_never_ends(keyed):
    """A read that does not return holds up nobody who is known."""
    assert keyed.compute(ADD).status == 200
    text = keyed.file.read_text()
    keyed.file.unlink()
    os.mkfifo(keyed.file)
    run("keys", "list", "--keys", keyed.file, code=1)
    eventually(lambda: any("not a regular file" in line for line in keyed.lines))
    assert [keyed.compute(ADD).status for _ in range(3)] == [200] * 3
    keyed.file.unlink()
    keyed.file.write_text(text)
    eventually(lambda: any("keys: read again" in line for line in keyed.lines))
    assert keyed.stop(60) == 0


def test_a_terminal_that_is_closed(keyed):
    """As any other orderly stop; one that was started to outlive its terminal goes on."""
    keyed.process.send_signal(signal.SIGHUP)
    assert keyed.process.wait(LIMIT) == 0
    eventually(lambda: keyed.lines[-1] == "stopped\n")
    keyed.before = ["nohup"]
    keyed.start()
    keyed.process.send_signal(signal.SIGHUP)
    time.sleep(1)
    assert keyed.compute(ADD).status == 200


def test_scopes(keyed):
    assert keyed.compute(kernel()).status == 403
    assert keyed.ask("POST", "/v1/benchmark").status == 403 and keyed.ask("GET", "/metrics").status == 403
    kernels = keyed.add("--scope", "kernels")
    admin = keyed.add("--scope", "administration")
    assert keyed.compute(kernel(), key=kernels).status == 200 and keyed.compute(ADD, key=kernels).status == 403
    assert keyed.ask("GET", "/metrics", key=admin).status == 200
    assert keyed.ask("GET", "/v1/monitor").status == 403 and keyed.ask("GET", "/v1/monitor", key=admin).status == 200
    # Another's job is not there.
    job = keyed.submit(DOUBLE).json["id"]
    for method, path in (("GET", ""), ("GET", "/result"), ("GET", "/events"), ("DELETE", "")):
        assert keyed.ask(method, f"/v1/jobs/{job}{path}", key=kernels).status == 404
    assert keyed.ask("GET", f"/v1/jobs/{job}", key=admin).status == 200
    assert keyed.ask("GET", "/v1/jobs", key=kernels).json == []


def test_revoked_and_expired(keyed):
    expired = keyed.add("--expires", "0")
    assert keyed.ask("GET", "/v1/jobs", key=expired).json["detail"] == "the key has expired"
    assert keyed.compute(ADD).status == 200
    run("keys", "revoke", keyed.key.split("_")[1], "--keys", keyed.file)
    # A key that was seen before is not valid for ever.
    eventually(lambda: keyed.compute(ADD).status == 401)
    assert "expired" in run("keys", "list", "--keys", keyed.file)
    text = keyed.file.read_text()
    assert "argon2id" in text and keyed.key.rsplit("_", 1)[1] not in text and expired.rsplit("_", 1)[1] not in text
    assert keyed.file.stat().st_mode & 0o077 == 0


def test_rates(keyed):
    slow = keyed.add("--rate", "2")
    codes = [keyed.compute(ADD, key=slow).status for _ in range(30)]
    assert set(codes) == {200, 429}
    assert keyed.compute(ADD).status == 200


def test_replayed(keyed):
    """The same bytes again: a job that is named is made once."""
    head = {"Idempotency-Key": "a"}
    jobs = {keyed.submit(DOUBLE, headers=head).json["id"] for _ in range(10)}
    assert len(jobs) == 1
    other = keyed.add()
    assert keyed.submit(DOUBLE, headers=head, key=other).json["id"] not in jobs


def test_cors(begin):
    closed = begin()
    answer = closed.ask("GET", "/health", headers={"Origin": "https://example.org"})
    assert "access-control-allow-origin" not in answer.headers
    service = begin("--allow-origin", "https://example.org", folder="other")
    preflight = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
    answer = service.ask("OPTIONS", "/v1/compute", headers=preflight)
    assert answer.status == 204 and answer.headers["access-control-allow-origin"] == "https://example.org"
    answer = service.ask("OPTIONS", "/v1/compute", headers={**preflight, "Origin": "https://example.com"})
    assert "access-control-allow-origin" not in answer.headers


def test_pages_of_other_sites(begin):
    """Requests from a page of another site are refused, and so is a foreign host name that points here."""
    service = begin("--kernels", "--allow-origin", "https://example.org")
    body = json.dumps(kernel()).encode()
    own, json_ = f"Host: 127.0.0.1:{service.port}", "Content-Type: application/json"

    def status(*head, method="POST", path="/v1/compute"):
        head = "".join(f"{line}\r\n" for line in (*head, "Connection: close", f"Content-Length: {len(body)}"))
        return int(service.raw(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body).split()[1])

    assert status(own, json_) == 200
    assert status(own, json_, f"Origin: http://127.0.0.1:{service.port}", "Sec-Fetch-Site: same-origin") == 200
    assert status(own, json_, "Origin: https://example.org", "Sec-Fetch-Site: cross-site") == 200
    assert status("Host: evil.example", json_) == 421
    assert status("Host: evil.example", method="GET", path="/v1/jobs") == 421
    assert status(own, own, json_) == 400 and status(json_) == 400
    for path in ("/v1/compute", "/v1/jobs", "/v1/benchmark"):
        for site in ("cross-site", "same-site"):
            assert status(own, "Origin: https://evil.example", f"Sec-Fetch-Site: {site}", "Sec-Fetch-Mode: no-cors", path=path) == 403
        assert status(own, json_, "Origin: null", path=path) == 403
    # Without its type a body is nothing.
    assert status(own) == 415 and status(own, "Content-Type: text/plain") == 415
    assert service.ask("GET", "/v1/jobs").json == []
    job = service.submit(DOUBLE).json["id"]
    service.wait(job)
    assert service.ask("DELETE", f"/v1/jobs/{job}").status == 204


def certificate(folder, name):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", f"/CN={name}",
         "-addext", "subjectAltName=DNS:localhost", "-keyout", folder / "key.new", "-out", folder / "chain.new"],
        check=True, capture_output=True,
    )
    (folder / "key.new").rename(folder / "key.pem")
    (folder / "chain.new").rename(folder / "chain.pem")


def test_tls(begin, tmp_path):
    certificate(tmp_path, "first")
    arguments = ["--tls-certificate", str(tmp_path / "chain.pem"), "--tls-key", str(tmp_path / "key.pem")]
    service = begin(*arguments, expect=False)
    service.start()
    service.tls = ssl.create_default_context(cafile=tmp_path / "chain.pem")
    assert service.compute(ADD).status == 200
    kept = service.connect()
    assert service.compute(ADD, connection=kept).status == 200
    assert not service.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", timeout=3).startswith(b"HTTP/1.1 200")
    # A new certificate, without a restart; connections stay.
    certificate(tmp_path, "second")

    def renewed():
        try:
            return service.compute(ADD).status != 200
        except ssl.SSLError:
            return True

    eventually(renewed)
    assert service.compute(ADD, connection=kept).status == 200
    service.tls = ssl.create_default_context(cafile=tmp_path / "chain.pem")
    assert service.compute(ADD).status == 200
    # One that is damaged leaves the old one in force, and is told.
    (tmp_path / "chain.pem").write_text("nothing")
    eventually(lambda: any("not reloaded" in line for line in service.lines))
    assert service.compute(ADD).status == 200


def test_access_log(begin, tmp_path):
    log = tmp_path / "access.jsonl"
    service = begin("--access-log", str(log))
    service.compute(ADD)
    service.ask("GET", "/secret?password=1")
    service.stop()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert lines[0]["route"] == "/v1/compute" and lines[0]["status"] == 200 and lines[0]["address"] == "127.0.0.1"
    assert lines[1]["route"] == "other" and "password" not in log.read_text()


def test_logs_that_nobody_reads(begin, tmp_path):
    """Neither stderr nor the access log holds up the service."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    read, write = os.pipe()
    os.set_blocking(write, False)
    try:
        while True:
            os.write(write, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(write, True)
    arguments = ["--open", "--data", str(tmp_path / "data"), "--listen", f"127.0.0.1:{port}"]
    service = begin(expect=False)
    service.port = port
    service.process = subprocess.Popen([*PROGRAM, *arguments], stderr=write)

    def answers():
        try:
            return service.compute(ADD).status == 200
        except ConnectionError:
            return False

    eventually(answers)
    assert service.stop(60) == 0
    os.close(write)
    os.close(read)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    service = begin("--access-log", str(pipe), folder="other", expect=False)
    with pytest.raises(AssertionError, match="cannot write"):
        service.start()
    service = begin("--access-log", "/dev/full", folder="full")
    for _ in range(10):
        service.compute(ADD)
    eventually(lambda: service.figure("cantus_access_log_lost_total") >= 10)
    assert sum("access log cannot be written" in line for line in service.lines) == 1, service.lines


@pytest.mark.parametrize("wrong", ["--kernels nosuch", "--kernels vulkan:77", "--kernel-memory 0", "--kernel-time 0", "--connections 0"])
def test_settings_that_would_refuse_all_work(begin, wrong):
    with pytest.raises(AssertionError, match="did not start"):
        begin(*wrong.split())


def test_more_connections_than_there_can_be(begin):
    assert begin("--connections", str(2**64 - 1)).compute(ADD).status == 200
