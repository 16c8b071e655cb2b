"""Kernels that a device runs for each program, and the bytes bound to them, warm; and beside those of another build of Cantus.

    CANTUS_DEVICE=vulkan python counts.py --json now.json
    CANTUS_DEVICE=vulkan python counts.py --json now.json --beside /path/to/other/site-packages

A buffer that a kernel binds counts whole, whether it is read, written or both; so the bytes are the traffic of a device without a cache, less what
a kernel reads twice. Each program is a process of its own, for at most `--seconds`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from programs import PROGRAMS


def counted(wanted: str) -> dict[str, Any]:
    """The kernels of the third run."""
    import cantus
    import numpy as np
    from peer import expected, library, made, runner

    program = next(program for program in PROGRAMS if program.name == wanted)
    xp, beyond, enter, leave, _ = library("cantus")
    run = partial(runner(program, xp, beyond), {key: enter(value) for key, value in made(program).items()})
    right, result = expected(program), leave(run())
    # Whole numbers are the same or not; that few are not is rounding in the products that lead to them.
    off = (result != right).mean() if program.exact else np.abs(result.astype("f8") - right).max() / (np.abs(right).max() or 1)
    leave(run())
    profile = cantus.profile(lambda: leave(run()))
    with tempfile.TemporaryDirectory() as folder:
        profile.save(str(Path(folder, "trace.json")))
        events = json.loads(Path(folder, "trace.json").read_text())["traceEvents"]
    kernels = [event for event in events if event.get("cat") == "kernel"]
    unknown = sum("bytes" not in kernel["args"] for kernel in kernels)
    names = Counter(kernel["name"] for kernel in kernels).most_common(4)
    return {"kernels": len(kernels), "bytes": sum(kernel["args"].get("bytes", 0) for kernel in kernels), "unknown": unknown, "off": float(off), "names": names}


def measured(name: str, site: str | None, seconds: float) -> dict[str, Any]:
    environment = os.environ | {"CANTUS_PROFILE": "1"} | ({"PYTHONPATH": site} if site else {})
    try:
        done = subprocess.run([sys.executable, __file__, "--one", name], env=environment, capture_output=True, text=True, timeout=seconds)
        return json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {"error": f"more than {seconds:.0f} s"}
    except (IndexError, json.JSONDecodeError):
        return {"error": (done.stderr.strip().splitlines() or ["it ended without a word"])[-1][:120]}


def shown(answer: dict[str, Any]) -> str:
    if "error" in answer:
        return f"{'-':>8}{'-':>12}"
    return f"{answer['kernels']:>8}{answer['bytes'] / 1e6:>12.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--only", nargs="*", default=[], help="names of programs")
    parser.add_argument("--beside", help="a folder with another build of Cantus")
    parser.add_argument("--seconds", type=float, default=120, help="for each program (120)")
    parser.add_argument("--json", type=Path, help="where to write every figure")
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(counted(arguments.one)))
        return
    sites = [arguments.beside, None] if arguments.beside else [None]
    print(f"{'':<20}" + "".join(f"{'kernels':>8}{'MB':>12}" for _ in sites))
    rows = {}
    for program in PROGRAMS:
        if arguments.only and program.name not in arguments.only:
            continue
        rows[program.name] = answers = [measured(program.name, site, arguments.seconds) for site in sites]
        notes = [answer["error"] for answer in answers if "error" in answer]
        notes += [f"{answer['unknown']} kernels without bytes" for answer in answers if answer.get("unknown")]
        notes += [f"off by {answer['off']:.1e}" for answer in answers if answer.get("off", 0) > 2e-3]
        print(f"{program.name:<20}" + "".join(map(shown, answers)), *notes, sep="   ", flush=True)
        if arguments.json:
            arguments.json.write_text(json.dumps(rows, indent=1))
    both = [(before, now) for before, now in (answers for answers in rows.values() if len(answers) == 2) if "error" not in before and "error" not in now]
    for key in ("kernels", "bytes"):
        ratios = [math.log(now[key] / before[key]) for before, now in both if before[key] and now[key]]
        if ratios:
            print(f"{key}, now of before: geometric mean {math.exp(statistics.fmean(ratios)):.2f} of {len(ratios)}")


if __name__ == "__main__":
    main()
