"""The service's memory under a light load of every kind, over as long as it is given: one line of CSV each ten seconds, and what it grew by at the end.

    CANTUS_SERVE=target/release/cantus-serve python crates/serve/figures/steady.py SECONDS [FILE] [RATE]
"""

import json
import pathlib
import random
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests"))
from conftest import ADD, DOUBLE, Service  # noqa: E402

PICTURE = {"kind": "picture", "picture": "field", "width": 300, "height": 200}
ANIMATION = {"kind": "picture", "picture": "field", "width": 100, "height": 60, "frames": 5}
HASH = {"kind": "hash", "function": "sha-256", "messages": ["616263"] * 50}
POINT = {"kind": "curve", "curve": "bn254-g1", "function": "double", "points": [f"{1:064x}{2:064x}"] * 5}
LARGE = {"kind": "expression", "inputs": {"x": {"dtype": "f32", "data": list(range(5000))}}, "expression": ["sum", ["exp", ["neg", "x"]]]}


EACH = [ADD, DOUBLE, PICTURE, LARGE, ANIMATION, HASH, POINT]


def answered(service):
    assert service.compute(random.choice(EACH)).status == 200


def refused(service):
    assert service.compute({**DOUBLE, "expression": ["bogus", "x"]}).status == 422


def batch(service):
    """Several at once, on connections of their own."""
    connections = [service.connect() for _ in range(8)]
    for number, connection in enumerate(connections):
        connection.request("POST", "/v1/compute", json.dumps({**ADD, "a": [number, 1]}), {"Content-Type": "application/json"})
    for connection in connections:
        assert connection.getresponse().read()
        connection.close()


def followed(service):
    """A job, its events, its result, and its end."""
    job = service.submit(random.choice(EACH)).json["id"]
    assert b'"done"' in service.ask("GET", f"/v1/jobs/{job}/events").body
    assert service.ask("GET", f"/v1/jobs/{job}/result").status == 200
    assert service.ask("DELETE", f"/v1/jobs/{job}").status == 204


def cancelled(service):
    job = service.submit(PICTURE).json["id"]
    assert service.ask("DELETE", f"/v1/jobs/{job}").status in (202, 204)


def forgotten(service):
    """The service's own doing, after --keep."""
    assert service.submit(DOUBLE).status == 202


def main(seconds, path, rate):
    random.seed(23)
    kinds = [answered] * 4 + [refused, batch, followed, followed, cancelled, forgotten]
    with tempfile.TemporaryDirectory() as folder, open(path, "w") as file:
        service = Service(pathlib.Path(folder) / "data", "--keep", "60")
        file.write("seconds,requests,rss_kib,jobs\n")
        begun, line, count, rows = time.time(), 0, 0, []
        while (passed := time.time() - begun) < seconds:
            random.choice(kinds)(service)
            count += 1
            if passed >= line:
                rows.append((passed, service.memory() >> 10))
                file.write(f"{passed:.0f},{count},{rows[-1][1]},{len(service.ask('GET', '/v1/jobs?limit=1000').json)}\n")
                file.flush()
                line += 10
            time.sleep(max(0, begun + count / rate - time.time()))
        # Once it has met every kind of work and its jobs of a minute.
        warm = [kib for passed, kib in rows if passed >= min(300, seconds / 4)]
        half = len(warm) // 2
        first, second = (sum(part) / max(1, len(part)) / 1024 for part in (warm[:half], warm[half:]))
        print(f"{count} requests in {seconds} s: {first:.1f} MiB in the first half once warm, {second:.1f} MiB in the second, {max(warm) / 1024:.1f} MiB at most")
        assert service.stop() == 0


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "steady.csv", float(sys.argv[3]) if len(sys.argv) > 3 else 5.0)
