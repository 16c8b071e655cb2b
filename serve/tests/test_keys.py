"""Keys, scopes, rates, TLS and CORS."""

import json
import ssl
import subprocess

import pytest
from conftest import ADD, DOUBLE, eventually, run
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
    assert not service.raw(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n", timeout=3).startswith(b"HTTP/1.1 200")
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
    eventually(lambda: any("not read again" in line for line in service.lines))
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
