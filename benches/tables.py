#!/usr/bin/env python3
"""Writes the tables of benches/README.md from the JSON files of measurements, or checks them.

    python benches/tables.py [--check]

A table is between two comments, `<!-- measured NAME -->` and `<!-- end -->`, and comes from `benches/measured/NAME.json`. The file has `title`, `machine`,
`date`, `command`, `notes` (a file of benches/notes), `shown` (the rows of the table, as "op size"), and one of two forms of `rows`, in microseconds:

- beside one peer: `peer`, and rows of `op`, `size`, `ours_us`, `peer_us`;
- beside several: `columns`, `compared` (pairs of columns whose ratio counts), and rows of `op`, `size`, `us`, a time or null per column.
"""

from __future__ import annotations

import json
import math
import re
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "benches/README.md"
TABLE = re.compile(r"(<!-- measured (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)

Times = dict[str, list[float | None]]


def figure(us: float | None, ms: bool) -> str:
    """Three digits, in microseconds or milliseconds."""
    if us is None:
        return ""
    value = float(f"{us / 1e3 if ms else us:.3g}")
    return f"{value:,.{max(0, 2 - math.floor(math.log10(value)))}f}"


def read(path: Path) -> tuple[dict, list[str], list[tuple[int, int]], Times]:
    """The file, its columns, the pairs of columns to compare, and the times by row."""
    file = json.loads(path.read_text())
    for key in ("title", "machine", "date", "command", "notes", "shown", "rows"):
        if key not in file:
            raise SystemExit(f"{path.relative_to(ROOT)} has no {key}")
    columns = file.get("columns") or ["Cantus", file["peer"]]
    pairs = [(columns.index(a), columns.index(b)) for a, b in file.get("compared", [columns])]
    times = {f"{row['op']} {row['size']}" if "size" in row else row["op"]: row.get("us") or [row["ours_us"], row["peer_us"]] for row in file["rows"]}
    return file, columns, pairs, times


def summary(columns: list[str], pairs: list[tuple[int, int]], times: Times) -> str:
    """The geometric means of the ratios over all rows of the file, and how many rows have a ratio of at most 1."""
    parts = []
    for ours, peer in pairs:
        ratios = [a / b for row in times.values() if (a := row[ours]) is not None and (b := row[peer]) is not None]
        who = "" if columns[ours] == "Cantus" else f"{columns[ours]} "
        faster = sum(ratio <= 1 for ratio in ratios)
        library = re.sub(r" \d\S*$", "", columns[peer])
        parts.append(f"{who}{statistics.geometric_mean(ratios):.2f} to {library} ({faster} of {len(ratios)})")
    return "Mean ratio (rows no slower): " + "; ".join(parts) + "."


def table(name: str) -> str:
    """The lines between the two comments."""
    path = ROOT / f"benches/measured/{name}.json"
    file, columns, pairs, times = read(path)
    if missing := [row for row in file["shown"] if row not in times]:
        raise SystemExit(f"{path.name} has no row {missing[0]!r}; it has {', '.join(sorted(times))}")
    ratios = {peer: ours for ours, peer in pairs if columns[ours] == "Cantus"}

    ms = statistics.median(us for row in file["shown"] for us in times[row] if us is not None) >= 1e3

    def cells(row: str) -> list[str]:
        shown = [figure(us, ms) for us in times[row]]
        for peer, ours in ratios.items():
            a, b = times[row][ours], times[row][peer]
            shown[peer] += f" ({a / b:.2f})" if a is not None and b is not None else ""
        return [row, *shown]

    heading, rows = ["ms" if ms else "µs", *columns], [cells(row) for row in file["shown"]]
    if len(columns) == 2 and len(rows) >= 10:
        half = (len(rows) + 1) // 2
        rows = [row + (rows[half + i] if half + i < len(rows) else [""] * 3) for i, row in enumerate(rows[:half])]
        heading *= 2
    lines = [f"{file['machine']}, {file['date']} ([rows](measured/{name}.json), [notes](notes/{file['notes']})). {summary(columns, pairs, times)}", ""]
    lines += ["| " + " | ".join(row) + " |" for row in [heading, ["---"] * len(heading), *rows]]
    return "\n".join(line.replace("|  |", "| |") for line in lines) + "\n"


def main() -> None:
    page = PAGE.read_text()
    fresh = TABLE.sub(lambda found: found[1] + table(found[2]) + found[3], page)
    if sys.argv[1:] == ["--check"]:
        if fresh != page:
            raise SystemExit("the tables of benches/README.md are not those of the JSON files: run python benches/tables.py")
    else:
        PAGE.write_text(fresh)


if __name__ == "__main__":
    main()
