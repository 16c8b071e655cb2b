"""Timed calls, and the lines that request them: shared by the peers of the benches."""
import sys
import time


def timed(work, seconds):
    """The seconds that each call took, three at least, after one that does not count."""
    work()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return times


def waited(work, wait):
    if not (work and wait):
        return work

    def run():
        work()
        wait()

    return run


def answer(prepare, check=None, wait=None):
    """Answers "NAME SIDE SECONDS" with what each call of `prepare(NAME, SIDE)` took, with nothing where it cannot run; for -1 seconds with what `check` makes
    of its result. `wait` waits for a device behind each call. One operation is kept at a time."""
    made = {}
    for line in sys.stdin:
        name, side, seconds = line.split()
        if (name, side) not in made:
            made = {(name, side): waited(prepare(name, int(side)), wait)}
        work = made[name, side]
        if float(seconds) < 0:
            print(*check(work()), flush=True)
        else:
            print(*(timed(work, float(seconds)) if work else []), flush=True)
