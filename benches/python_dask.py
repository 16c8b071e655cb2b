"""Fields larger than a worker's memory, and one worker against two, by Dask: `python benches/python_dask.py [--side 20000]`.

Workers compute on one thread each. Passes are alternated between one worker and two, after a first that is not counted.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import threading
import time

import cantus
import cantus.dask
import numpy as np
from distributed import Client


def resident():
    """The most memory this process ever had, in MiB."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) // 1024 for line in file if line.startswith("VmHWM"))


def timed(work):
    begin = time.perf_counter()
    result = work()
    return result, time.perf_counter() - begin


def large(client, side, options):
    """A field larger than the workers' memory, and one of the workers killed."""
    # Quick enough a wave that neighbours differ: the coherence of slow ones is 1.
    x = cantus.dask.field(side, side, 50.0 * side, chunks=max(2000, side // 25))
    found, seconds = timed(lambda: cantus.dask.coherence(x))
    print(f"coherence of {side} x {side} ({x.nbytes / 2**20:.0f} MiB), two workers of 1 GiB: {found:.6f} in {seconds:.1f} s, most memory {client.run(resident)}")
    if options.check:
        with cantus.device("cpu"):
            whole = cantus.field.coherence(cantus.field.field(side, side, 50.0 * side))
        print(f"of one engine: {whole:.6f}")
        assert abs(whole - found) < 2e-5
    if options.kill:
        before = set(client.run(os.getpid).values())
        victim = min(before)
        threading.Timer(seconds / 3, lambda: os.kill(victim, signal.SIGKILL)).start()
        again, longer = timed(lambda: cantus.dask.coherence(x))
        client.wait_for_workers(2)
        assert victim not in client.run(os.getpid).values() and again == found, (again, found)
        print(f"the same with a worker killed after {seconds / 3:.1f} s: {again:.6f} in {longer:.1f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=20000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kill", action="store_true", help="kill a worker in the middle of a pass")
    parser.add_argument("--check", action="store_true", help="compare with one engine that holds the whole field")
    parser.add_argument("--pin", action="store_true", help="give each worker a processor of its own")
    parser.add_argument("--scaling", action="store_true", help="one worker against two, and nothing else")
    options = parser.parse_args()
    side = options.side
    with cantus.dask.cluster(["cpu", "cpu"], threads=1, memory_limit="1GiB") as cluster, Client(cluster) as client:
        client.wait_for_workers(2)
        if not options.scaling:
            large(client, side, options)
        names = sorted(client.scheduler_info()["workers"])
        if options.pin:
            for place, name in enumerate(names):
                client.run(pinned, place, workers=[name])
        for name, work in CONTROLS.items():
            report(f"control, {name}", scaling(options.rounds, names, lambda turn, workers: [client.submit(work, 24 // len(workers), workers=[one], pure=False) for one in workers]))

        def squares(turn, workers):
            field = cantus.dask.field(side, side, time=0.001 * turn, chunks=2000)
            return [client.compute((field * field).mean(), workers=workers)]

        report(f"mean of squares of {side} x {side}", scaling(options.rounds, names, squares))
        if options.pin:
            # What each worker did: its processor time beside the clock's.
            before, begin = client.run(time.process_time), time.perf_counter()
            squares(99, names)[0].result()
            clock = time.perf_counter() - begin
            print("  processor time of the clock's, by worker:", *(f"{(after - before[name]) / clock:.0%}" for name, after in client.run(time.process_time).items()))


def pinned(place):
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), {place % os.cpu_count()})


def in_cache(rounds):
    """Arithmetic alone."""
    x = np.linspace(0, 1, 16_384, dtype="f4")
    for _ in range(400 * rounds):
        np.sin(x)


def in_memory(rounds):
    """Memory alone: 16 MB in, 16 MB out."""
    x, y = np.ones(4_000_000, "f4"), np.empty(4_000_000, "f4")
    for _ in range(10 * rounds):
        np.multiply(x, 2, out=y)


CONTROLS = {"arithmetic of NumPy's in a cache": in_cache, "NumPy's product of 16 MB": in_memory}


def scaling(rounds, names, work):
    """Seconds of one worker and of two, by turns, after a turn that is not counted."""
    times = {1: [], 2: []}
    for turn in range(rounds + 1):
        for count in (1, 2):
            _, seconds = timed(lambda: [future.result() for future in work(turn, names[:count])])
            if turn:
                times[count].append(seconds)
    return [statistics.median(times[count]) for count in (1, 2)]


def report(what, times):
    print(f"{what}: one worker {times[0]:.2f} s, two {times[1]:.2f} s, {times[0] / times[1]:.2f} times as quick", flush=True)


if __name__ == "__main__":
    main()
