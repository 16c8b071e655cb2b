"""The programs on Cantus beside other libraries: each library a process of its own, taking turns, warm, medians; results against float64.

    python run.py                                   cantus beside numpy
    python run.py --peers numpy torch jax --rounds 5
    python run.py --only life lstm --threads 2 --json out.json

On a GPU: CANTUS_DEVICE=cuda CANTUS_PEER_DEVICE=cuda python run.py --peers torch

Environments: the interpreter that runs this has the libraries, or `--python cantus=/path/to/python` names another for one of them.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from programs import PROGRAMS

HERE = Path(__file__).parent


def started(name: str, python: str, threads: int, logs: Path) -> subprocess.Popen[str]:
    counts = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")
    environment = os.environ | {count: str(threads) for count in counts} | {"CANTUS_DEVICE": os.environ.get("CANTUS_DEVICE", "cpu")}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": (logs / name).open("w")}
    return subprocess.Popen([python, str(HERE / "peer.py"), name], text=True, env=environment, **pipes)


def last_words(name: str, logs: Path) -> str:
    lines = [line for line in (logs / name).read_text(errors="replace").splitlines() if line.strip()]
    return "the process ended: " + (lines[-1][:200] if lines else "no output")


def measured(names: list[str], answers: dict[str, dict[str, dict]]) -> dict:
    """The form that `benches/tables.py` reads: medians in microseconds, and every time beside them."""
    rows = []
    for program, of in answers.items():
        medians = [1e6 * statistics.median(of[name]["times"]) if of[name]["times"] else None for name in names]
        rows.append({"op": program, "us": medians, "answers": of})
    columns = ["Cantus", *names[1:]]
    return {
        "title": "Programs in Python",
        "columns": columns,
        "compared": [["Cantus", peer] for peer in columns[1:]],
        "machine": platform.processor() or platform.machine(),
        "date": datetime.date.today().isoformat(),
        "command": shlex.join(["python", *sys.argv]),
        "rows": rows,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", nargs="*", default=["numpy"], choices=["numpy", "torch", "torch_compile", "jax"])
    parser.add_argument("--only", nargs="*", default=[], help="names of programs")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each library (5)")
    parser.add_argument("--runs", type=int, default=3, help="runs in a turn (3)")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--python", action="append", default=[], metavar="LIBRARY=PATH")
    parser.add_argument("--json", type=Path, help="write every time here, for benches/tables.py")
    arguments = parser.parse_args()
    unknown = set(arguments.only) - {program.name for program in PROGRAMS}
    if unknown:
        parser.error(f"there is no program {', '.join(sorted(unknown))}; there are {', '.join(p.name for p in PROGRAMS)}")
    pythons = dict(pair.split("=", 1) for pair in arguments.python)
    names = ["cantus", *arguments.peers]
    folder = tempfile.TemporaryDirectory()
    logs = Path(folder.name)
    peers = {name: started(name, pythons.get(name, sys.executable), arguments.threads, logs) for name in names}
    shown, ratios = {}, {peer: [] for peer in arguments.peers}
    print(f"{'milliseconds':<20}" + "".join(f"{name:>16}" for name in names) + "   of " + ", ".join(arguments.peers) + "   first call")
    for program in PROGRAMS:
        if arguments.only and program.name not in arguments.only:
            continue
        answers: dict[str, dict] = {name: {"times": []} for name in names}
        for _ in range(arguments.rounds):
            for name, peer in peers.items():
                if "error" in answers[name] or not peer.stdin or not peer.stdout:
                    continue
                try:
                    peer.stdin.write(json.dumps([program.name, arguments.runs]) + "\n")
                    peer.stdin.flush()
                    answer = json.loads(peer.stdout.readline())
                except (BrokenPipeError, json.JSONDecodeError):
                    answer = {"error": last_words(name, logs)}
                answer["times"] = answers[name]["times"] + answer.get("times", [])
                answers[name] |= answer
        medians = {name: 1000 * statistics.median(answer["times"]) for name, answer in answers.items() if answer["times"]}
        cells = [f"{medians[name]:>16.2f}" if name in medians else f"{'-':>16}" for name in names]
        of = {peer: medians["cantus"] / medians[peer] for peer in arguments.peers if peer in medians and "cantus" in medians}
        for peer, ratio in of.items():
            ratios[peer].append(ratio)
        notes = [f"{name}: {answer['error']}" for name, answer in answers.items() if "error" in answer]
        notes += [f"{name} is off by {answer['off']:.1e}" for name, answer in answers.items() if answer.get("right") is False]
        first = answers["cantus"].get("first", math.nan)
        print(f"{program.name:<20}" + "".join(cells) + "   " + ", ".join(f"{ratio:.2f}" for ratio in of.values()) + f"   {1000 * first:.0f}", *notes, sep="   ", flush=True)
        shown[program.name] = answers
    for peer, all_of in ratios.items():
        if all_of:
            mean = math.exp(statistics.fmean(map(math.log, all_of)))
            within = sum(ratio <= 1 for ratio in all_of)
            print(f"of {peer}'s time: geometric mean {mean:.2f}, at most 1.0 in {within} of {len(all_of)}, greatest {max(all_of):.2f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(measured(names, shown), indent=1))
    for peer in peers.values():
        peer.terminate()


if __name__ == "__main__":
    main()
