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
from distributed import Client


def resident():
    """The most memory this process ever had, in MiB."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) // 1024 for line in file if line.startswith("VmHWM"))


def timed(work):
    begin = time.perf_counter()
    result = work()
    return result, time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=20000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kill", action="store_true", help="kill a worker in the middle of a pass")
    parser.add_argument("--check", action="store_true", help="compare with one engine that holds the whole field")
    options = parser.parse_args()
    side = options.side
    with cantus.dask.cluster(["cpu", "cpu"], threads=1, memory_limit="1GiB") as cluster, Client(cluster) as client:
        client.wait_for_workers(2)
        # Quick enough a wave that neighbours differ: the coherence of slow ones is 1.
        x = cantus.dask.field(side, side, 50.0 * side, chunks=2000)
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

        names = list(client.scheduler_info()["workers"])
        times = {1: [], 2: []}
        for turn in range(options.rounds + 1):
            for count in (1, 2):
                field = cantus.dask.field(side, side, time=0.001 * turn, chunks=2000)
                work = (field * field).mean()
                _, seconds = timed(lambda: client.compute(work, workers=names[:count]).result().numpy())
                if turn:
                    times[count].append(seconds)
        one, two = (statistics.median(times[count]) for count in (1, 2))
        print(f"mean of squares: one worker {one:.2f} s, two {two:.2f} s, {one / two:.2f} times as quick")


if __name__ == "__main__":
    main()
