"""Hostile requests: malformed, slow, endless, deep, huge. The service answers or closes, in bounded time and memory, and others notice nothing."""

import contextlib
import http.client
import json
import multiprocessing
import os
import pathlib
import random
import socket
import subprocess
import sys
import threading
import time

import pytest
from conftest import ADD, DOUBLE, LIMIT, eventually
from test_answers import kernel

HEAD = "POST /v1/compute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def test_malformed_http(service):
    for data in (
        b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x00" * 1000, b"\x16\x03\x01\x02\x00" * 20,
        b"GET / HTTP/1.1\r\nHost: localhost\r\nA B: c\r\n\r\n", b"GET " + b"/a" * 40_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n", b"GET / HTTP/1.1\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        (HEAD + "Content-Length: -1\r\n\r\n").encode(), (HEAD + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef").encode(),
        (HEAD + "Transfer-Encoding: chunked\r\n\r\nzz\r\n").encode(), (HEAD + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n").encode(),
    ):
        answer = service.raw(data + b"\r\n", timeout=4)
        assert not answer or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 505")), (data[:60], answer[:200])
    assert service.compute(ADD).status == 200


def test_random_bytes(service):
    seed = 7
    rng = random.Random(seed)
    good = json.dumps(DOUBLE).encode()
    types = ["application/json", "application/x-npy", "application/vnd.safetensors", "application/octet-stream"]
    connection = service.connect()
    for turn in range(400):
        body = bytearray(good if rng.random() < 0.7 else rng.randbytes(rng.randrange(200)))
        for _ in range(rng.randrange(4)):
            if body:
                body[rng.randrange(len(body))] = rng.randrange(256)
        answer = service.ask("POST", "/v1/compute?request=%7B%7D", bytes(body), {"Content-Type": rng.choice(types)}, connection=connection)
        assert answer.status < 500, (seed, turn, bytes(body), answer.body)
    assert service.compute(ADD).status == 200


def test_deep_and_wide_json(service):
    before = service.memory()
    for body in (
        b"[" * 1_000_000, b'{"kind":' * 100_000, b'{"kind":"expression","expression":' + b'["exp",' * 5000 + b'"x"' + b"]" * 5000 + b"}",
        b'{"kind":"field","field":"bn254-fr","function":"add","a":[' + b"1," * 3_000_000 + b"1]}",
        b'{"kind":"expression","inputs":{' + b",".join(b'"%d":{"dtype":"f32","data":[1]}' % n for n in range(100_000)) + b'},"expression":"1"}',
        b'{"kind":"field","a":["' + b"9" * 5_000_000 + b'"]}', b'"' + b"x" * 9_000_000 + b'"',
        json.dumps({**DOUBLE, "expression": ["add", *[["add", "x", "x"]] * 2000]}).encode(),
    ):
        answer = service.ask("POST", "/v1/compute", body, {"Content-Type": "application/json"})
        assert 400 <= answer.status < 500 or answer.status == 200 and b'"100' in body, answer.body[:200]
    assert service.compute(ADD).status == 200
    assert service.memory() - before < 1 << 30


def test_huge_and_endless_bodies(service):
    assert service.raw((HEAD + "Content-Length: 99999999999\r\n\r\n").encode()).startswith(b"HTTP/1.1 413")
    before = service.memory()
    with socket.create_connection(("127.0.0.1", service.port), timeout=LIMIT) as connection:
        connection.sendall((HEAD + "Transfer-Encoding: chunked\r\n\r\n").encode())
        chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
        sent = 0
        with contextlib.suppress(ConnectionError, TimeoutError):
            while sent < 200:
                connection.sendall(chunk)
                sent += 1
        assert sent < 200, "an endless body was taken"
        with contextlib.suppress(ConnectionError):
            assert connection.recv(100).startswith(b"HTTP/1.1 413")
    assert service.memory() - before < 300 << 20
    # The header of an npy, and of a safetensors, may claim anything.
    claim = b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999,), }" + b" " * 40 + b"\n"
    request = "%7B%22kind%22%3A%22expression%22%2C%22expression%22%3A%22x%22%7D"
    assert service.ask("POST", f"/v1/compute?request={request}", claim, {"Content-Type": "application/x-npy"}).status == 422
    for size in (2**63 - 1, 2**64 - 1, 10**8):
        assert service.ask("POST", "/v1/compute", size.to_bytes(8, "little") + b"{}", {"Content-Type": "application/vnd.safetensors"}).status == 400


# A point of BLS12-381's second group: seeing that it is one takes long.
G2 = bytes.fromhex(
    f"{0x024AA2B2F08F0A91260805272DC51051C6E47AD4FA403B02B4510B647AE3D1770BAC0326A805BBEFD48056C8C121BDB8:0128x}"
    f"{0x13E02B6052719F607DACD3A088274F65596BD0D09920B61AB5DA61BBDC7F5049334CF11213945D57E5AC7D055D042B7E:0128x}"
    f"{0x0CE5D527727D6E118CC9CDC6DA2E351AADFD9BAA8CBDD3A76D429A695160D12C923AC9CC3BACA289E193548608B82801:0128x}"
    f"{0x0606C4A02EA734CC32ACD2B02BC28B99CB3E287E85A763AF267492AB572E99AB3F370D275CEC1DA1AAA9075FF05F79BE:0128x}"
)


def points(count, function="neg"):
    head = {"request": {"kind": "curve", "curve": "bls12381-g2", "function": function}, "arrays": [{"name": "points", "dtype": "u8", "shape": [count * 256]}]}
    return json.dumps(head).encode() + b"\n" + G2 * count


RAW = {"Content-Type": "application/octet-stream"}


@pytest.mark.parametrize("function", ["neg", "check"])
def test_points_are_seen_within_the_works_time(begin, function):
    """Checking that points are of their group is work: it ends by its time, and with its client."""
    service = begin("--time", "1")
    assert service.ask("POST", "/v1/compute", points(3, function), RAW).status == 200
    begun = time.time()
    answer = service.ask("POST", "/v1/compute", points(200_000, function), RAW)
    assert answer.status == 422 and answer.json["type"].endswith("time-limit") and time.time() - begun < 30, answer.body
    service = begin("--time", "600", folder="other")
    body = points(200_000, function)
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        head = f"POST /v1/compute HTTP/1.1\r\nHost: localhost\r\nContent-Type: {RAW['Content-Type']}\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        eventually(lambda: service.waiting() == 1)
    eventually(lambda: service.waiting() == 0)
    assert service.compute(ADD).status == 200


def test_headers_of_safetensors_are_bounded(service):
    """They are JSON, and bounded as JSON is, before any of it is parsed."""
    request = json.dumps({"__metadata__": {"request": json.dumps({"kind": "expression", "expression": ["max", "x"]})}})[:-1]
    empty = '"%x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
    for count, status in ((1001, 422), (300_000, 413)):
        header = f"{request},{','.join(empty % number for number in range(count))}}}".encode()
        begun = time.time()
        answer = service.ask("POST", "/v1/compute", len(header).to_bytes(8, "little") + header, {"Content-Type": "application/vnd.safetensors"})
        assert answer.status == status and time.time() - begun < 30, answer.body


def test_readers_hold_pieces_of_a_result(begin):
    """A result comes from the disk piece by piece, however many read it and however slowly."""
    service = begin()
    job = service.submit({"kind": "picture", "picture": "field", "width": 2048, "height": 2048}).json["id"]
    service.wait(job)
    before, readers = service.memory(), []
    for _ in range(20):
        reader = socket.socket()
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.connect(("127.0.0.1", service.port))
        reader.sendall(f"GET /v1/jobs/{job}/result HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert reader.recv(20).startswith(b"HTTP/1.1 200")
        readers.append(reader)
    time.sleep(1)
    grown = service.memory() - before
    for reader in readers:
        reader.close()
    # The result takes 16 MiB: nobody holds it. The database keeps up to 32 MiB of its pages.
    assert grown < 48 << 20, f"{grown >> 20} MiB"
    result = service.ask("GET", f"/v1/jobs/{job}/result", headers={"Accept": "application/x-npy"})
    assert result.status == 200 and len(result.body) == 128 + 4 * 2048 * 2048


def test_answers_are_bounded(begin):
    service = begin("--queue-bytes", "1MiB")
    picture = {"kind": "picture", "picture": "phi_pattern", "width": 600, "height": 600}
    for answer in (service.compute(picture), service.submit(picture)):
        assert answer.status == 413 and "--queue-bytes" in answer.json["detail"]
    # What the request does not say shows when it is there.
    grown = {**DOUBLE, "expression": ["broadcast_to", ["reshape", "x", {"shape": [3, 1]}], {"shape": [3, 100_000]}]}
    assert service.compute(grown).status == 413
    assert service.wait(service.submit(grown).json["id"])["problem"]["status"] == 413
    assert service.compute({**picture, "width": 300}).status == 200


@pytest.mark.skipif(sys.platform != "linux", reason="an address of its own for each client: Linux alone has all of 127/8")
def test_an_address_leaves_descriptors_to_others(begin):
    service = begin("--kernels", before=["sh", "-c", 'ulimit -n 300; exec "$0" "$@"'])
    assert any("limit of open files is 300" in line for line in service.lines), service.lines
    held = []
    for _ in range(290):
        client = socket.socket()
        client.bind(("127.0.0.2", 0))
        client.connect(("127.0.0.1", service.port))
        held.append(client)
    eventually(lambda: service.figure("cantus_connections_refused_total") >= 290 - 118)
    assert service.compute(ADD).status == 200 and service.compute(kernel()).status == 200
    for client in held:
        client.close()


def test_slow_writers(service):
    # The patience of this service is 2 s.
    begun = time.time()
    with socket.create_connection(("127.0.0.1", service.port), timeout=LIMIT) as connection:
        connection.sendall((HEAD + "Content-Length: 100\r\n\r\n{").encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 408")
    assert time.time() - begun > 1.5
    # A byte now and then is not enough either.
    begun = time.time()
    with socket.create_connection(("127.0.0.1", service.port), timeout=LIMIT) as connection:
        connection.sendall((HEAD + "Content-Length: 1000000\r\n\r\n").encode())
        with contextlib.suppress(ConnectionError):
            while True:
                connection.sendall(b" ")
                time.sleep(0.3)
                assert time.time() - begun < LIMIT


@pytest.mark.parametrize("bound", ["--idle", "--patience"])
def test_slow_heads(begin, bound):
    service = begin(bound, "1")
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:
        # Silence between requests is another thing.
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 200")
        if bound == "--patience":
            time.sleep(3)
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: ")
        while connection.recv(1000):
            pass


def test_slow_readers(service):
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(LIMIT)
        connection.connect(("127.0.0.1", service.port))
        body = json.dumps({"kind": "picture", "picture": "phi_pattern", "width": 3000, "height": 2000})
        connection.sendall(f"{HEAD}Accept: application/x-npy\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        # From its first byte on it is not taken.
        connection.recv(1, socket.MSG_PEEK)
        time.sleep(6)
        received = 0
        with contextlib.suppress(ConnectionError):
            while part := connection.recv(1 << 20):
                received += len(part)
        assert received < 24_000_000, "a client that reads nothing was waited for"


def test_too_many_connections(begin):
    service = begin("--connections-per-address", "20")
    open_ = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(40)]
    # Those that were taken are answered, the others are closed.
    answers = []
    for connection in open_:
        connection.settimeout(LIMIT)
        answer = b""
        with contextlib.suppress(ConnectionError):
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = connection.recv(65536)
        answers.append(answer)
    assert [answer.startswith(b"HTTP/1.1 200") for answer in answers] == [True] * 20 + [False] * 20 and not any(answers[20:])
    for connection in open_:
        connection.close()

    def again():
        with contextlib.suppress(ConnectionError, http.client.HTTPException):
            return service.compute(ADD).status == 200

    eventually(again)
    assert service.figure("cantus_connections_refused_total") >= 20


def test_paths(service):
    for path in ("/v1/jobs/../../etc/passwd", "/v1/jobs/%2e%2e%2f%2e%2e%2fetc%2fpasswd/result", "/docs/../../Cargo.toml", "/v1/jobs/" + "a" * 5000, "/v1/jobs/%00", "//etc/passwd"):
        answer = service.ask("GET", path)
        assert answer.status in (400, 404, 414, 431), (path, answer.status)
        assert b"root:" not in answer.body and b"[package]" not in answer.body


ENDLESS = """
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
    var i = 0u;
    loop { i += 1u; y[id.x % 3u] += f32(i); if y[0] < -1.0 { break; } }
}"""


def latencies(service, count):
    times, connection = [], service.connect()
    for _ in range(count):
        begun = time.time()
        assert service.compute(ADD, connection=connection).status == 200
        times.append(time.time() - begun)
    return sorted(times)


HUGE = """
@group(0) @binding(0) var<storage, read_write> y: array<vec4f>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
    for (var i = id.x; i < arrayLength(&y); i += 1024u) { y[i] += vec4f(f32(i)); }
}"""
# Kernels of strangers, and how they end: one without end; buffers of nearly all that a kernel may hold, which its process fills and answers with.
STRANGERS = {
    "without end": (kernel(ENDLESS, bindings={}, overrides={}, workgroups=[60000], zeros={"y": {"dtype": "f32", "shape": [3]}}), {"time-limit"}),
    "with huge buffers": (
        kernel(HUGE, bindings={}, overrides={}, workgroups=[16], zeros={"y": {"dtype": "f32", "shape": [30_000_000]}}),
        {200, "time-limit", "memory-limit", "kernel-ended"},
    ),
}


@pytest.mark.parametrize("stranger", STRANGERS)
def test_kernels_of_strangers_beside_a_client(begin, stranger):
    """The times of a client's additions, without and with kernels of strangers. Few enough go well: the queue of kernels is theirs alone."""
    service = begin("--kernels", "--kernel-time", "1.5")
    work, ends = STRANGERS[stranger]
    count = int(os.environ.get("CANTUS_ANSWERS", 300))
    latencies(service, 200)
    alone = latencies(service, count)
    # In processes of their own, and at the lowest priority, since strangers compute elsewhere: what they read and write is no time of the client's.
    fork = multiprocessing.get_context("fork")
    over, told, codes = fork.Event(), fork.SimpleQueue(), []

    def bad():
        os.nice(19)
        while not over.is_set():
            answer = service.ask("POST", "/v1/compute", work, {"Accept": "application/octet-stream"})
            told.put(200 if answer.status == 200 else answer.json["type"].removeprefix("urn:cantus:problem:"))
        told.put(None)

    strangers = [fork.Process(target=bad, daemon=True) for _ in range(3)]
    for process in strangers:
        process.start()
    codes.append(told.get())
    beside = latencies(service, count)
    over.set()
    for _ in strangers:
        codes += iter(told.get, None)
    assert set(codes) <= ends, codes
    # Who waits for a kernel waits for as long as it may run, and nearly nobody does.
    assert beside[count // 2] < 0.75, beside
    alone, beside = (times[count * 99 // 100] * 1e3 for times in (alone, beside))
    print(f"p99 of {count} alone {alone:.2f} ms, beside {len(codes)} kernels {stranger} {beside:.2f} ms: {beside / alone:.2f} times")
    if os.environ.get("CANTUS_QUIET"):
        # A few milliseconds are the scheduler's, not the kernels'.
        assert beside <= max(2 * alone, 20), (alone, beside)

    # Nothing of them is left.
    def children():
        return subprocess.run(["ps", "--ppid", str(service.process.pid), "-o", "pid="], capture_output=True, text=True).stdout.strip()

    eventually(lambda: not children(), children)


@pytest.mark.skipif(sys.platform != "linux", reason="processes yield on Linux alone")
def test_kernels_yield_once_they_have_had_their_moment(begin):
    """A kernel's process begins with the service's priority, before what others have long computed, and soon has the lowest."""
    service = begin("--kernels", "--kernel-time", "1")
    work, _ = STRANGERS["without end"]
    own = os.getpriority(os.PRIO_PROCESS, service.process.pid)

    def seen():
        thread, seen = threading.Thread(target=service.compute, args=(work,)), set()
        thread.start()
        while thread.is_alive():
            children = subprocess.run(["pgrep", "-P", str(service.process.pid)], capture_output=True, text=True).stdout.split()
            with contextlib.suppress(OSError):
                seen |= {os.getpriority(os.PRIO_PROCESS, int(child)) for child in children}
        return seen

    # A busy machine may look too late at one, not at each.
    eventually(lambda: seen() == {own, 19})


def test_kernels_that_take_memory(begin):
    service = begin("--kernels", "--kernel-memory", "64MiB")
    assert service.compute(kernel(zeros={"y": {"dtype": "f32", "shape": [20_000_000]}})).status == 413
    big = "var<private> big: array<vec4f, 1000000>;\n" + KERNEL_PRIVATE
    answer = service.compute(kernel(big, bindings={}, overrides={}))
    assert answer.status in (413, 422), answer.body
    assert service.compute(ADD).status == 200


KERNEL_PRIVATE = """
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
    for (var i = 0u; i < 1000000u; i++) { big[i] = vec4f(f32(i + id.x)); }
    y[id.x % 3u] = big[id.x].x;
}"""


DOUBLED = "alias T0 = array<u32, 64>;\nconst v0 = T0();\n" + "".join(
    f"alias T{n} = array<T{n - 1}, 2>;\nconst v{n} = T{n}(v{n - 1}, v{n - 1});\n" for n in range(1, 24)
)
CONSTANTS = f"""@group(0) @binding(0) var<storage, read_write> y: array<f32>;
{DOUBLED}
@compute @workgroup_size(1) fn main() {{ y[0] = f32(v23{"[0]" * 24}); }}"""


def test_compilers_that_take_memory(begin):
    """The memory of a kernel's process is bounded, whatever allocates it."""
    service = begin("--kernels", "--kernel-memory", "64MiB", "--kernel-time", "60")
    answers, peak = [], 0
    thread = threading.Thread(target=lambda: answers.append(service.compute(kernel(CONSTANTS, bindings={}, overrides={}))))
    thread.start()
    while thread.is_alive():
        children = subprocess.run(["pgrep", "-P", str(service.process.pid)], capture_output=True, text=True).stdout.split()
        for child in children:
            with contextlib.suppress(OSError, IndexError):
                status = pathlib.Path(f"/proc/{child}/status").read_text()
                peak = max([peak, *(int(row.split()[1]) >> 10 for row in status.splitlines() if row.startswith("RssAnon"))])
        time.sleep(0.002)
    assert answers[0].status in (413, 422), answers[0].body
    assert peak < 64 + 32 + 128, f"its process held {peak} MiB"


def test_kernels_are_off(begin):
    service = begin()
    answer = service.compute(kernel())
    assert answer.status == 403 and answer.json["pointer"] == "/kind"
