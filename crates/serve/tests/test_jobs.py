"""Jobs: accepted once and for all, followed, cancelled, fetched, deleted; fair between keys, bounded, batched."""

import contextlib
import json
import socket
import threading

from conftest import ADD, DOUBLE, LIMIT, eventually, run
from test_answers import kernel
from test_hostile import ENDLESS, RAW, points


def products(count):
    """Products of matrices in turn: each about a second of work on two processors, 0.5 on fast ones."""
    square = ["broadcast_to", ["reshape", "x", {"shape": [1, 1]}], {"shape": [4000, 4000]}]
    product = square
    for _ in range(count):
        product = ["matmul", product, square]
    return {"kind": "expression", "inputs": {"x": {"dtype": "f32", "data": [1]}}, "expression": ["sum", product]}


# Longer than any limit that a test sets, whatever the machine: who takes it cancels it.
LONG = products(12)
PICTURE = {"kind": "picture", "picture": "phi_pattern", "width": 100, "height": 50}


def test_a_job(service):
    accepted = service.submit(PICTURE)
    assert accepted.status == 202
    job = accepted.json["id"]
    assert accepted.headers["location"] == f"/v1/jobs/{job}"
    done = service.wait(job)
    assert done["state"] == "done" and done["devices"] and done["expires"] >= done["ended"] + 86_000
    result = service.ask("GET", f"/v1/jobs/{job}/result").json
    assert result["shape"] == [50, 100] and len(result["data"]) == 5000
    assert job in [one["id"] for one in service.ask("GET", "/v1/jobs").json]
    assert len(service.ask("GET", "/v1/jobs?limit=1").json) == 1
    assert service.ask("GET", "/v1/jobs?limit=0").status == 400
    assert service.ask("DELETE", f"/v1/jobs/{job}").status == 204
    for path in ("", "/result", "/events"):
        assert service.ask("GET", f"/v1/jobs/{job}{path}").status == 404


def test_a_job_that_fails(service):
    job = service.submit({**DOUBLE, "expression": ["reshape", "x", {"shape": [2]}]}).json["id"]
    failed = service.wait(job)
    assert failed["state"] == "failed" and failed["problem"]["pointer"] == "/expression"
    assert service.ask("GET", f"/v1/jobs/{job}/result").status == 422
    # What can be known at once is refused at once.
    assert service.submit({**DOUBLE, "expression": ["reshape", "x"]}).status == 422


def test_events(service):
    job = service.submit(PICTURE).json["id"]
    text = service.ask("GET", f"/v1/jobs/{job}/events").body.decode()
    states = [json.loads(line[6:])["state"] for line in text.splitlines() if line.startswith("data: ")]
    assert states[-1] == "done" and set(states) <= {"queued", "running", "done"}


def test_repeated_requests(service):
    headers = {"Idempotency-Key": "one"}
    first, second = (service.submit(PICTURE, headers=headers) for _ in range(2))
    assert first.json["id"] == second.json["id"] and second.status == 202
    assert service.submit(ADD, headers=headers).status == 422
    assert service.submit(ADD, headers={"Idempotency-Key": "x" * 200}).status == 400


def test_cancelling(service):
    job = service.submit(LONG).json["id"]
    service.wait(job, ("running",))
    assert service.ask("GET", f"/v1/jobs/{job}/result").status == 409
    assert service.ask("DELETE", f"/v1/jobs/{job}").status == 202
    stopped = service.wait(job)
    assert stopped["state"] == "cancelled" and stopped["events"] == []


def test_cancelling_what_waits(begin):
    """It ends at once, not when its turn comes."""
    service = begin()
    first, second, third = (service.submit(LONG).json["id"] for _ in range(3))
    service.wait(first, ("running",))
    service.ask("DELETE", f"/v1/jobs/{third}")
    assert service.wait(third)["state"] == "cancelled"
    assert [service.job(job)["state"] for job in (first, second)] == ["running", "queued"]


def test_a_client_that_goes_away(begin):
    service = begin()
    connections = [service.connect() for _ in range(4)]
    for connection in connections:
        connection.request("POST", "/v1/compute", json.dumps(LONG), {"Content-Type": "application/json"})
    eventually(lambda: service.waiting() == 4)
    for connection in connections:
        connection.close()
    eventually(lambda: not service.waiting(), lambda: "it still computes for nobody")
    assert service.figure("cantus_lane_requests_total") <= 1, "what waited was computed for nobody"


def test_time_limit(begin):
    service = begin("--time", "1")
    answer = service.compute(LONG)
    assert answer.status == 422 and answer.json["type"].endswith("time-limit"), answer.body
    assert service.compute(ADD).status == 200


def test_full_queue(begin):
    service = begin("--queue", "4")
    jobs = [service.submit(LONG) for _ in range(8)]
    codes = [job.status for job in jobs]
    assert codes[:4] == [202] * 4 and codes[4:] == [429] * 4
    assert int(jobs[-1].headers["retry-after"]) >= 1 and jobs[-1].json["retry_after"] >= 1
    # What is small has a lane of its own.
    assert service.compute(ADD).status == 200
    for job in jobs[:4]:
        service.ask("DELETE", f"/v1/jobs/{job.json['id']}")
    for job in jobs[:4]:
        assert service.wait(job.json["id"])["state"] == "cancelled"
    assert service.submit(PICTURE).status == 202


def test_waiting_too_long(begin):
    """A request is told so; a job that was accepted waits."""
    service = begin("--queue-time", "1")
    first = service.submit(LONG).json["id"]
    service.wait(first, ("running",))
    second = service.submit(PICTURE).json["id"]
    answer = service.compute(PICTURE)
    assert answer.status == 503 and "waited" in answer.json["detail"], answer.body
    assert service.job(second)["state"] == "queued"
    service.ask("DELETE", f"/v1/jobs/{first}")
    assert service.wait(second)["state"] == "done"


def test_batches(begin):
    service = begin("--batch-window", "1000000", "--batch-size", "20")
    batches, threads = [], []

    def ask(number):
        work = {**ADD, "a": [number], "b": [number]}
        answer = service.compute(work).json
        batches.append((number, int(answer["data"][0], 16), answer["batch"]))

    for number in range(20):
        threads.append(threading.Thread(target=ask, args=(number,)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    assert sorted(batches)[3][:2] == (3, 6) and all(result == 2 * number for number, result, _ in batches)
    assert max(batch for *_, batch in batches) > 5
    # Expressions of elements too, of different lengths; what differs is not mixed.
    results = []

    def double(length, factor):
        work = {**DOUBLE, "inputs": {"x": {"dtype": "f32", "data": list(range(length))}}, "expression": ["mul", "x", factor]}
        answer = service.compute(work).json
        results.append(answer["batch"])
        assert answer["data"] == [factor * value for value in range(length)]

    threads = [threading.Thread(target=double, args=(1 + number % 5, 2 + number % 2)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 20 and max(results) > 3


def keyed(begin, *names, arguments=()):
    """A service with keys of these names."""
    service = begin(*arguments, keys=True, expect=False)
    file = service.folder / "keys.toml"
    scopes = ["--scope", "operations", "--scope", "kernels"]
    keys = [run("keys", "add", "--name", name, "--keys", file, *scopes).strip() for name in names]
    return service.start(), *keys


def test_fairness(begin):
    """Who waits gets a turn whatever others compute: neither their number nor how long one takes counts."""
    service, few, *many = keyed(begin, "few", "one", "two")
    jobs = [(service.submit(LONG, key=key).json["id"], key) for key in many for _ in range(4)]
    for key in many:
        service.key = key
        eventually(lambda: any(service.job(job)["state"] == "running" for job, of in jobs if of == key))
    service.key = few
    service.wait(service.submit(PICTURE).json["id"])
    assert service.compute(PICTURE).status == 200
    states = []
    for job, service.key in jobs:
        states.append(service.job(job)["state"])
    # Of each key one at a time.
    assert states.count("done") <= 2 and states.count("queued") >= 4, states


def test_large_work_of_many_keys_delays_no_small(begin):
    """All threads compute for others, for minutes: what is small is tried at once. What is large waits, and loses nothing."""
    service, few, *many = keyed(begin, "few", "one", "two", "three", arguments=["--workers", "2", "--time", "600"])
    large = [service.submit(points(100_000), key=key, headers=RAW).json["id"] for key in many]
    service.key = few
    eventually(lambda: service.waiting() == 3)
    # 30 KB, and more elements than small work has.
    numbers = {"kind": "expression", "inputs": {"x": {"dtype": "f32", "data": [1.25] * 5000}}, "expression": ["sum", "x"]}
    for _ in range(30):
        assert service.compute(numbers, key=few).json["data"] == [6250]
    assert service.wait(service.submit(numbers).json["id"])["state"] == "done"
    # The third of them was tried as well, and waits for one of the others.
    found = []
    for service.key, id in zip(many, large):
        found.append(service.job(id))
        assert found[-1]["state"] in ("queued", "running"), found
        assert service.ask("DELETE", f"/v1/jobs/{id}").status == 202
        assert service.wait(id)["state"] == "cancelled"


def test_what_is_tried_in_vain_is_computed_later(begin):
    service, few, *many = keyed(begin, "few", "one", arguments=["--workers", "1"])
    held = service.submit(LONG, key=many[0]).json["id"]
    service.key = many[0]
    service.wait(held, ("running",))
    # Longer than a first moment, as a job and as a request.
    job = service.submit(points(2000), key=few, headers=RAW).json["id"]
    answer = service.compute(points(2000), key=few, headers=RAW)
    service.ask("DELETE", f"/v1/jobs/{held}")
    service.key = few
    assert answer.status == 200 and service.wait(job)["state"] == "done"
    first = service.ask("GET", f"/v1/jobs/{job}/result").json["data"]
    assert first == answer.json["data"] and len(first) == 2000


def test_kernels_of_several_keys(begin):
    service, few, *many = keyed(begin, "few", "one", "two", "three", arguments=["--kernels", "--kernel-time", "600", "--time", "600"])
    for key in many:
        endless = kernel(ENDLESS, bindings={}, overrides={}, workgroups=[60000], zeros={"y": {"dtype": "f32", "shape": [3]}})
        for _ in range(2):
            assert service.submit(endless, key=key).status == 202
    assert service.compute(kernel(), key=few).json["data"] == [20, 40, 60]


def test_shares(begin):
    """However much the keys before it hold, the next one gets something: of the disk, of places, of bodies under way."""
    service, *keys = keyed(begin, "a", "b", "c", arguments=["--jobs", "32", "--queue-bytes", "16MiB"])
    counts = []
    for key in keys:
        codes = [service.submit(ADD, key=key, headers={"Idempotency-Key": str(number)}).status for number in range(40)]
        counts.append(codes.count(202))
    assert counts == [16, 8, 4], counts
    holders = []
    for _ in range(20):
        connection = socket.create_connection(("127.0.0.1", service.port), timeout=LIMIT)
        head = f"POST /v1/compute HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {keys[0]}\r\nContent-Type: application/octet-stream\r\nContent-Length: 50000000\r\n\r\n"
        with contextlib.suppress(ConnectionError):
            connection.sendall(head.encode() + b"a" * (1 << 20))
        holders.append(connection)
    for key in keys[1:]:
        large = {"kind": "expression", "inputs": {"x": {"dtype": "f32", "data": [1.5] * 200_000}}, "expression": ["sum", "x"]}
        assert service.compute(large, key=key).json["data"] == [300_000]
    for connection in holders:
        connection.close()


def followed(service, work):
    """How far a job was each time that it changed, with its state."""
    accepted = service.submit(work)
    assert accepted.status == 202, accepted.body
    text = service.ask("GET", f"/v1/jobs/{accepted.json['id']}/events").body.decode()
    jobs = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
    assert all("progress" in job for job in jobs)
    last = jobs[-1]
    assert last["state"] == "done" and last["progress"] == 100, last
    assert service.job(last["id"]) == last
    numbers = [job["progress"] for job in jobs if job["progress"] is not None]
    assert numbers == sorted(numbers) and 100 not in numbers[:-1]
    assert all(job["progress"] == 0 for job in jobs if job["state"] == "queued")
    return [job["progress"] for job in jobs if job["state"] == "running"]


def test_progress_of_blocks(service):
    """Where work has blocks it is told after each: frames, messages, points."""
    frames = followed(service, {"kind": "picture", "picture": "field", "width": 300, "height": 200, "frames": 50})
    # The watcher may miss some; not all.
    assert len({number for number in frames if number}) >= 5 and all(number is None or number % 2 == 0 for number in frames), frames
    messages = followed(service, {"kind": "hash", "function": "keccak-256", "messages": [f"{number:064x}" for number in range(16_384)]})
    assert {25, 50, 75} & set(messages) and set(messages) <= {None, 0, 25, 50, 75}, messages
    generator = f"{1:064x}{2:064x}"
    head = json.dumps({"request": {"kind": "msm", "curve": "bn254-g1", "points": generator * 100, "scalars": [1] * 100}, "arrays": []})
    # In a single block nothing between start and end is known.
    job = service.ask("POST", "/v1/jobs", head.encode() + b"\n", {"Content-Type": "application/octet-stream"}).json["id"]
    assert service.wait(job)["progress"] == 100
    sums = service.ask("GET", f"/v1/jobs/{job}/result").json["data"]
    count = (1 << 16) + 100
    points, scalars = bytes.fromhex(generator) * count, (1).to_bytes(32, "little") * count
    arrays = [{"name": "points", "dtype": "u8", "shape": [len(points)]}, {"name": "scalars", "dtype": "u32", "shape": [count, 8]}]
    head = json.dumps({"request": {"kind": "msm", "curve": "bn254-g1"}, "arrays": arrays}).encode() + b"\n"
    job = service.ask("POST", "/v1/jobs", head + points + scalars, {"Content-Type": "application/octet-stream"}).json["id"]
    text = service.ask("GET", f"/v1/jobs/{job}/events").body.decode()
    seen = [json.loads(line[6:])["progress"] for line in text.splitlines() if line.startswith("data: ")]
    assert {49, 99} & set(seen) and seen[-1] == 100, seen
    # The sum of n generators is n times the generator.
    expected = service.compute({"kind": "msm", "curve": "bn254-g1", "points": [generator], "scalars": [count]}).json["data"]
    assert service.ask("GET", f"/v1/jobs/{job}/result").json["data"] == expected != sums


def test_progress_that_cannot_be_known(service):
    """A single step is not imitated: null while it runs."""
    for work in (PICTURE, DOUBLE, {"kind": "picture", "picture": "field", "width": 30, "height": 20, "frames": 1}):
        assert set(followed(service, work)) <= {None}
    job = service.submit(LONG).json["id"]
    assert service.wait(job, ("running",))["progress"] is None
    service.ask("DELETE", f"/v1/jobs/{job}")
    assert service.wait(job)["progress"] is None


def test_animation(service):
    """Its frames are the pictures of their times."""
    work = {"kind": "picture", "picture": "field", "width": 20, "height": 10, "time": 0.5}
    animation = service.compute({**work, "frames": 3, "interval": 0.25}).json
    assert animation["shape"] == [3, 10, 20]
    pictures = [service.compute({**work, "time": time}).json["data"] for time in (0.5, 0.75, 1.0)]
    assert animation["data"] == sum(pictures, []) and pictures[0] != pictures[1]
    for change, pointer in [
        ({"frames": 0}, "/frames"), ({"interval": 1}, "/interval"), ({"frames": 2, "interval": 0}, "/interval"),
        ({"picture": "phi_pattern", "time": 0, "frames": 2}, "/frames"), ({"frames": 2**32 - 1}, "/width"),
    ]:
        answer = service.compute({**work, **change})
        assert answer.status in (413, 422) and answer.json["pointer"] == pointer, answer.body


def test_progress_of_measurements(service):
    answer = service.ask("POST", "/v1/benchmark", headers={"Accept": "text/event-stream"})
    assert answer.headers["content-type"] == "text/event-stream"
    events = [block.split("\n") for block in answer.body.decode().strip().split("\n\n")]
    events = [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in events]
    assert events[:-1] == [("progress", {"progress": percent}) for percent in (33, 66, 100)]
    name, measured = events[-1]
    assert name == "result" and len(measured) == 3 and all(row["rate"] > 0 for row in measured)
    assert len(service.ask("POST", "/v1/benchmark").json) == 3
