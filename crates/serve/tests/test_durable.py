"""Nothing accepted is lost: the process killed at random moments, a full disk, a damaged database, a clock that jumps."""

import glob
import os
import random
import signal
import subprocess
import threading
import time

import pytest
from conftest import ADD, DOUBLE, eventually
from test_answers import kernel
from test_hostile import ENDLESS
from test_jobs import LONG, PICTURE

KILLS = int(os.environ.get("CANTUS_KILLS", "8"))
SEED = int(os.environ.get("CANTUS_SEED", "1"))


def test_killed_at_random_moments(begin):
    """Every job that was accepted ends, with its right result, once."""
    rng = random.Random(SEED)
    service = begin()
    accepted, finished = {}, {}
    for turn in range(KILLS):
        over = threading.Event()

        def submit():
            number = 0
            while not over.is_set():
                number += 1
                value = turn * 100_000 + number
                work = {**ADD, "a": [value], "b": [value]} if number % 4 else {**PICTURE, "width": 300, "height": 1 + value % 50}
                try:
                    answer = service.submit(work, headers={"Idempotency-Key": f"{turn}-{number}"})
                except Exception:
                    return
                if answer.status == 202:
                    accepted[answer.json["id"]] = work

        threads = [threading.Thread(target=submit) for _ in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(rng.uniform(0.02, 0.5))
        service.kill()
        over.set()
        for thread in threads:
            thread.join()
        service.start()
        for job in rng.sample(sorted(accepted), min(5, len(accepted))):
            state = service.ask("GET", f"/v1/jobs/{job}").json
            # What was told to be done stays done, as it was.
            if job in finished:
                assert state == finished[job], (SEED, turn)
            elif state["state"] == "done":
                finished[job] = state
    assert accepted
    for job, work in accepted.items():
        done = service.wait(job)
        assert done["state"] == "done", (SEED, done)
        result = service.ask("GET", f"/v1/jobs/{job}/result").json
        if work["kind"] == "field":
            assert int(result["data"][0], 16) == 2 * work["a"][0]
        else:
            assert result["shape"] == [work["height"], work["width"]]
    # Besides those: what was written, and whose answer was under way, when the process was killed.
    known = {job["id"] for job in service.ask("GET", "/v1/jobs?limit=1000").json}
    assert len(known - set(accepted)) <= 3 * KILLS
    print(f"killed {KILLS} times (seed {SEED}): {len(accepted)} jobs accepted, all done")


def test_a_repeated_request_after_the_end(begin):
    service = begin()
    first = service.submit(PICTURE, headers={"Idempotency-Key": "a"}).json["id"]
    service.kill()
    service.start()
    assert service.submit(PICTURE, headers={"Idempotency-Key": "a"}).json["id"] == first


def test_a_job_that_ends_the_process(begin):
    """A job that ended the process three times is given up."""
    service = begin()
    job = service.submit(LONG).json["id"]
    for _ in range(3):
        service.wait(job, ("running",))
        time.sleep(0.3)
        service.kill()
        service.start()
    found = service.wait(job)
    assert found["state"] == "failed" and found["problem"]["type"].endswith("given-up")


def test_a_stop_that_is_graceful(begin):
    service = begin("--grace", "0.2")
    running, waiting = (service.submit(LONG).json["id"] for _ in range(2))
    service.wait(running, ("running",))
    answers = []
    thread = threading.Thread(target=lambda: answers.append(service.compute({**LONG})))
    thread.start()
    eventually(lambda: service.waiting() == 3)
    assert service.stop() == 0
    thread.join()
    assert answers[0].status == 503
    service.start()
    for job in (running, waiting):
        found = service.job(job)
        assert found["state"] in ("queued", "running"), found
        service.ask("DELETE", f"/v1/jobs/{job}")
        assert service.wait(job)["state"] == "cancelled"


def test_results_survive(begin):
    service = begin()
    job = service.submit(DOUBLE).json["id"]
    before = service.wait(job)
    service.stop()
    service.start()
    assert service.ask("GET", f"/v1/jobs/{job}").json == before
    assert service.ask("GET", f"/v1/jobs/{job}/result").json["data"] == [2, 4, 6]


def test_results_are_kept_for_a_time(begin):
    service = begin("--keep", "1")
    job = service.submit(DOUBLE).json["id"]
    service.wait(job)
    eventually(lambda: service.ask("GET", f"/v1/jobs/{job}").status == 404)


def orphans(service):
    """Processes of callers' kernels, whoever their parent is now."""
    found = subprocess.run(["pgrep", "-f", f"kernel-worker.*--parent {service.process.pid}$"], capture_output=True, text=True)
    return found.stdout.split()


def endless(**more):
    return kernel(ENDLESS, bindings={}, overrides={}, workgroups=[60000], zeros={"y": {"dtype": "f32", "shape": [3]}}, **more)


@pytest.mark.parametrize("work", [LONG, endless()], ids=["device", "process"])
def test_orderly_stops_are_no_crash_of_a_job(begin, work):
    """However often the service is told to stop: what it computed then is taken up again."""
    service = begin("--grace", "0.1", "--kernels", "--kernel-time", "600", "--time", "600")
    job = service.submit(work).json["id"]
    for _ in range(5):
        service.wait(job, ("running",))
        begun = time.time()
        assert service.stop() == 0 and time.time() - begun < 60
        assert not orphans(service)
        service.start()
    assert service.wait(job, ("running",))
    service.ask("DELETE", f"/v1/jobs/{job}")
    assert service.wait(job)["state"] == "cancelled"


def test_workers_end_with_the_service(begin):
    service = begin("--kernels", "--kernel-time", "600", "--time", "600")
    service.submit(endless())
    eventually(lambda: orphans(service))
    service.kill()
    eventually(lambda: not orphans(service), lambda: orphans(service))


def test_a_worker_that_is_killed_from_outside(begin):
    service = begin("--kernels", "--kernel-time", "600", "--time", "600")
    job = service.submit(endless()).json["id"]
    eventually(lambda: orphans(service))
    for process in orphans(service):
        os.kill(int(process), signal.SIGKILL)
    problem = service.wait(job)["problem"]
    assert problem["status"] == 503 and "outside" in problem["detail"] and "memory" not in problem["detail"]


@pytest.mark.parametrize("how", ["middle", "start", "short", "text", "empty", "ones"])
def test_damaged_database(begin, how):
    service = begin()
    for _ in range(20):
        service.wait(service.submit(PICTURE).json["id"])
    service.kill()
    path = service.folder / "jobs.redb"
    content = bytearray(path.read_bytes())
    if how == "middle":
        for place in range(4096, len(content), 997):
            content[place] ^= 0xFF
    elif how == "start":
        content[:512] = os.urandom(512)
    elif how == "short":
        content = content[: len(content) // 2]
    elif how == "text":
        content = bytearray(b"this is no database\n" * 100)
    elif how == "ones":
        content = bytearray(b"\xff" * len(content))
    else:
        content = bytearray()
    path.write_bytes(content)
    service.start()
    aside = list(service.folder.glob("jobs.damaged-*.redb"))
    assert len(aside) == 1 and aside[0].read_bytes() == bytes(content), service.lines
    assert any("set aside" in line for line in service.lines)
    assert "cantus_database_set_aside 1" in service.ask("GET", "/metrics").body.decode()
    job = service.submit(DOUBLE).json["id"]
    assert service.wait(job)["state"] == "done"


def test_two_processes_on_one_database(begin):
    first = begin()
    second = begin(expect=False)
    with pytest.raises(AssertionError, match="another process"):
        second.start()
    assert first.compute(ADD).status == 200


def test_full_disk(begin):
    """Files may not grow beyond 6 MiB: jobs are refused, what was accepted stays, and what is small is answered."""
    service = begin(before=["sh", "-c", 'ulimit -f 6144; exec "$0" "$@"'])
    big = {"kind": "picture", "picture": "phi_pattern", "width": 600, "height": 600}
    accepted, codes = [], []
    for number in range(100):
        # The requests are small and the results are not: the disk fills up with those.
        answer = service.submit({**ADD, "a": [str(value) for value in range(20_000)], "b": [number] * 20_000})
        codes.append(answer.status)
        if answer.status == 202:
            accepted.append(answer.json["id"])
        if answer.status == 503:
            break
        service.wait(accepted[-1], ("done", "failed", "running"))
    assert codes[-1] == 503 and accepted, codes
    assert service.compute(ADD).status == 200
    assert service.compute(big).status == 200
    assert set(codes) <= {202, 503}
    # Deleting writes too: either it finds room, or says what to do.
    gone = [job for job in accepted[1:] if service.job(job)["state"] == "done"][:3]
    for job in gone:
        answer = service.ask("DELETE", f"/v1/jobs/{job}")
        assert answer.status == 204 or answer.status == 503 and "delete it again" in answer.json["detail"], answer.body
        if answer.status == 204:
            accepted.remove(job)
    # Room again: what was accepted ends.
    service.kill()
    service.before = []
    service.start()
    for job in accepted:
        assert service.wait(job)["state"] == "done"
    assert int(service.ask("GET", f"/v1/jobs/{accepted[0]}/result").json["data"][7], 16) == 7


def test_room_on_disk(begin):
    service = begin("--disk", "100kB")
    work = {**ADD, "a": [str(2**200 + value) for value in range(1000)], "b": [1] * 1000}
    codes = [service.submit(work).status for _ in range(4)]
    assert codes[0] == 202 and codes[-1] == 503


def test_failed_jobs_are_bounded(begin):
    """A job takes a place and room, also when it has failed."""
    bad = {**DOUBLE, "expression": ["reshape", "x", {"shape": [2]}]}
    for bound in (["--jobs", "10"], ["--disk", "10kB"]):
        service = begin(*bound, folder=bound[0])
        jobs = [service.submit(bad) for _ in range(20)]
        codes = [job.status for job in jobs]
        count = codes.index(503)
        assert 5 <= count <= 10 and set(codes[count:]) == {503}, codes
        for job in jobs[:count]:
            assert service.wait(job.json["id"])["state"] == "failed"
        service.stop()
        service.start()
        assert service.submit(bad).status == 503
        for job in jobs[:count]:
            assert service.ask("DELETE", f"/v1/jobs/{job.json['id']}").status == 204
        assert service.submit(bad).status == 202


def test_results_count_before_they_exist(begin):
    service = begin("--disk", "1MB")
    picture = {"kind": "picture", "picture": "phi_pattern", "width": 300, "height": 300}
    codes = [service.submit(picture).status for _ in range(6)]
    assert codes == [202, 202, 503, 503, 503, 503]
    assert service.submit({**picture, "width": 3000}).status == 413
    # What the request does not say counts when it is there.
    grown = {**DOUBLE, "expression": ["broadcast_to", ["reshape", "x", {"shape": [3, 1]}], {"shape": [3, 100_000]}]}
    failed = service.wait(service.submit(grown).json["id"])
    assert failed["state"] == "failed" and failed["problem"]["type"].endswith(":disk"), failed
    assert (service.folder / "jobs.redb").stat().st_size < 8 << 20


def test_what_is_kept_is_its_owners_alone(begin, tmp_path):
    log = tmp_path / "access.jsonl"
    service = begin("--access-log", str(log))
    service.wait(service.submit(DOUBLE).json["id"])
    assert service.folder.stat().st_mode & 0o777 == 0o700
    for path in (*service.folder.iterdir(), log):
        assert path.stat().st_mode & 0o077 == 0, path


def test_the_folder_is_the_operators(begin, tmp_path):
    """A folder that others may use is refused, and stays as it is; what lies in one is not the service's."""
    folder = tmp_path / "data"
    (folder / "drivers" / "deep").mkdir(parents=True)
    (folder / "drivers" / "deep" / "thesis.txt").write_text("years of work")
    service = begin(expect=False)
    for mode in (0o755, 0o1777):
        folder.chmod(mode)
        with pytest.raises(AssertionError, match=f"chmod 700 {folder}"):
            service.start()
        assert folder.stat().st_mode & 0o7777 == mode and [path.name for path in folder.iterdir()] == ["drivers"]
    folder.chmod(0o700)
    left = folder / f".cantus-drivers-{'0' * 32}"
    left.mkdir()
    service.arguments.append("--kernels")
    service.start()
    assert service.compute(kernel()).status == 200
    service.stop()
    assert (folder / "drivers" / "deep" / "thesis.txt").read_text() == "years of work" and not left.exists()


def states(service, jobs):
    return [service.job(job)["state"] for job in jobs]


def test_a_start_with_less_fails_no_job(begin):
    """A start that cannot compute an accepted job holds it, and says so."""
    service = begin("--kernels", "--kernel-time", "600", "--time", "600", "--grace", "0")
    running = service.submit(endless()).json["id"]
    service.wait(running, ("running",))
    jobs = [service.submit(kernel()).json["id"] for _ in range(3)]
    more = service.arguments
    service.stop()
    service.arguments = [argument for argument in more if argument != "--kernels"]
    for _ in range(4):
        # However often it is started, that is no crash of a job.
        service.start()
        assert states(service, [running, *jobs]) == ["queued"] * 4
        assert any("4 waiting jobs cannot be computed" in line for line in service.lines), service.lines
        assert "--kernels" in service.job(jobs[0])["events"][0]
        service.stop()
    service.start()
    # One that is held can be cancelled.
    answer = service.ask("DELETE", f"/v1/jobs/{running}")
    assert answer.status == 202 and service.job(running)["state"] == "cancelled"
    assert service.ask("DELETE", f"/v1/jobs/{running}").status == 204
    service.stop()
    service.arguments = more
    service.start()
    assert [service.wait(job)["state"] for job in jobs] == ["done"] * 3 and service.job(jobs[0])["events"] == []


def test_a_start_with_less_memory_fails_no_job(begin):
    """Also where only the work itself shows what it needs."""
    picture = {"kind": "picture", "picture": "phi_pattern", "width": 2000, "height": 2000}
    large = [["broadcast_to", ["reshape", "x", {"shape": [1, 1]}], {"shape": [4000, 1000]}]] * 2
    grown = {**LONG, "expression": ["sum", ["add", *large]]}
    service = begin("--grace", "0", "--workers", "1")
    running = service.submit(LONG).json["id"]
    service.wait(running, ("running",))
    jobs = [service.submit(work).json["id"] for work in (picture, grown)]
    service.stop()
    more = service.arguments
    service.arguments = [*more, "--memory", "16MiB"]
    for _ in range(4):
        service.start()
        for job in jobs:
            assert eventually(lambda: service.job(job)["events"])[0].startswith("it waits for a start")
        assert states(service, jobs) == ["queued"] * 2
        # A job of this start has this start's limits.
        assert service.wait(service.submit(grown).json["id"])["problem"]["status"] == 413
        service.stop()
    service.arguments = more
    service.start()
    service.ask("DELETE", f"/v1/jobs/{running}")
    assert [service.wait(job)["state"] for job in jobs] == ["done"] * 2


def test_results_stay_readable_while_the_disk_takes_nothing(begin):
    resource = pytest.importorskip("resource")
    service = begin()
    picture = {"kind": "picture", "picture": "phi_pattern", "width": 300, "height": 300}
    jobs = [service.submit(picture).json["id"] for _ in range(3)]
    expected = [service.wait(job) and service.ask("GET", f"/v1/jobs/{job}/result").json["data"] for job in jobs]
    limit = resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE)
    for _ in range(2):
        resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (4096, limit[1]))
        assert service.submit(picture).status == 503 and service.ask("GET", "/ready").status == 503
        for _ in range(3):
            assert [service.ask("GET", f"/v1/jobs/{job}/result").json["data"] for job in jobs] == expected
            refused = service.ask("DELETE", f"/v1/jobs/{jobs[0]}")
            assert refused.status == 503 and "delete it again" in refused.json["detail"] and refused.headers["retry-after"], refused.body
        assert service.compute(picture).status == 200 and service.ask("GET", "/health").status == 200
        # It tries by itself.
        resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, limit)
        eventually(lambda: service.ask("GET", "/ready").status == 200)
        jobs.append(service.submit(picture).json["id"])
        service.wait(jobs[-1])
        expected.append(service.ask("GET", f"/v1/jobs/{jobs[-1]}/result").json["data"])
    assert service.ask("DELETE", f"/v1/jobs/{jobs[0]}").status == 204
    assert not list(service.folder.glob(".cantus-probe*"))
    service.kill()
    service.start()
    assert [service.ask("GET", f"/v1/jobs/{job}/result").json["data"] for job in jobs[1:]] == expected[1:]


def test_a_database_that_is_removed(begin):
    service = begin()
    job = service.submit(DOUBLE).json["id"]
    service.wait(job)
    path = service.folder / "jobs.redb"
    path.rename(service.folder / "elsewhere")
    assert service.submit(DOUBLE).status == 503 and service.ask("GET", "/ready").status == 503
    assert any("removed or replaced" in line for line in service.lines) and not path.exists()
    assert service.ask("GET", f"/v1/jobs/{job}/result").json["data"] == [2, 4, 6]
    (service.folder / "elsewhere").rename(path)
    eventually(lambda: service.ask("GET", "/ready").status == 200)
    later = service.submit(DOUBLE).json["id"]
    service.wait(later)
    service.stop()
    service.start()
    assert states(service, [job, later]) == ["done"] * 2


def test_a_result_while_it_is_deleted(begin):
    """There or not there, and nothing else."""
    service = begin()
    codes = []

    def read():
        for _ in range(60):
            job = service.submit(DOUBLE).json["id"]
            service.wait(job)
            delete = threading.Thread(target=service.ask, args=("DELETE", f"/v1/jobs/{job}"))
            delete.start()
            codes.append(service.ask("GET", f"/v1/jobs/{job}/result").status)
            delete.join()

    threads = [threading.Thread(target=read) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(codes) == 360 and set(codes) <= {200, 404}, codes


FAKETIME = next(iter(glob.glob("/usr/lib/*/faketime/libfaketime.so.1")), None)


@pytest.mark.skipif(not FAKETIME, reason="faketime is not installed")
def test_clock_that_jumps(begin):
    service = begin("--keep", "100000")
    job = service.submit(DOUBLE).json["id"]
    service.wait(job)
    for jump in ("-400d", "+0.5d", "+400d", "-3d"):
        service.kill()
        service.environment = {**os.environ, "LD_PRELOAD": FAKETIME, "FAKETIME": jump}
        service.start()
        assert service.ask("GET", f"/v1/jobs/{job}/result").json["data"] == [2, 4, 6]
        assert service.wait(service.submit(DOUBLE).json["id"])["state"] == "done"


def test_memory_stays_flat(begin):
    service = begin()
    seconds = float(os.environ.get("CANTUS_FLAT_SECONDS", "5"))
    connection = service.connect()
    for _ in range(2000):
        service.compute(ADD, connection=connection)
    before, until, count = service.memory(), time.time() + seconds, 0
    while time.time() < until:
        assert service.compute(ADD, connection=connection).status == 200
        service.compute({**DOUBLE, "expression": ["bogus", "x"]}, connection=connection)
        count += 2
    after = service.memory()
    print(f"{count} requests: {before >> 20} MiB, then {after >> 20} MiB")
    assert after - before < 16 << 20
