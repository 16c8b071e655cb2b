"""Jobs: accepted once and for all, followed, cancelled, fetched, deleted; fair between keys, bounded, batched."""

import json
import threading

from conftest import ADD, DOUBLE, eventually

# Some seconds of work on two processors.
LONG = {
    "kind": "expression",
    "inputs": {"x": {"dtype": "f32", "data": [1]}},
    "expression": ["sum", ["matmul"] + [["broadcast_to", ["reshape", "x", {"shape": [1, 1]}], {"shape": [6000, 6000]}]] * 2],
}
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
    service = begin("--queue-time", "1")
    first = service.submit(LONG).json["id"]
    service.wait(first, ("running",))
    second = service.submit(PICTURE).json["id"]
    assert service.wait(second)["problem"]["status"] == 503
    assert service.job(first)["state"] == "running"


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


def test_fairness(begin):
    service = begin(keys=True, expect=False)
    from conftest import run

    file = service.folder / "keys.toml"
    many, few = (run("keys", "add", "--name", name, "--keys", file).strip() for name in ("many", "few"))
    service.start()
    medium = {**LONG, "expression": ["sum", ["matmul"] + [["broadcast_to", ["reshape", "x", {"shape": [1, 1]}], {"shape": [2400, 2400]}]] * 2]}
    jobs = [service.submit(medium, key=many).json["id"] for _ in range(40)]
    own = service.submit(PICTURE, key=few).json["id"]
    service.key = few
    service.wait(own)
    service.key = many
    left = sum(service.ask("GET", f"/v1/jobs/{job}").json["state"] in ("queued", "running") for job in jobs)
    assert left > 20, f"the second key waited for all but {left} jobs of the first"
