"""Throughput and times of answers over the number of clients and over the size of a request, as an SVG and as rows for benches/notes.

    CANTUS_SERVE=target/release/cantus-serve LOAD=target/release/examples/load python crates/serve/figures/growth.py docs/guide/src/service-growth.svg [SECONDS]
"""

import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests"))
from conftest import Service  # noqa: E402

CLIENTS = [1, 4, 16, 64, 256, 1000]
ELEMENTS = [1, 4, 16, 64, 256, 1024, 4096, 16384]


def measure(service, seconds, **options):
    arguments = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    done = subprocess.run(
        [os.environ["LOAD"], f"127.0.0.1:{service.port}", "--seconds", str(seconds), *arguments], capture_output=True, text=True, check=True
    )
    row = json.loads(done.stdout)
    assert row["failed"] == 0, row
    return row


def short(value):
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def panel(left, title, unit, rows, across, series):
    """A plot on logarithmic axes; `series` are names, classes, values, and the unit of their own axis."""
    width, height, top = 330, 240, 50
    xs = [row[across] for row in rows]
    place = lambda value, low, high, size: (math.log10(value) - math.log10(low)) / (math.log10(high) - math.log10(low)) * size
    out = [f'<text x="{left}" y="22" class="title">{title}</text>']
    ticks = lambda low, high: [10.0**power for power in range(round(math.log10(low)), round(math.log10(high)) + 1)]
    for side, (name, class_, key) in enumerate(series):
        values = [row[key] for row in rows]
        low, high = 10 ** math.floor(math.log10(min(values))), 10 ** math.ceil(math.log10(max(values)))
        high = max(high, low * 10)
        edge = left if side == 0 else left + width
        for tick in ticks(low, high):
            y = top + height - place(tick, low, high, height)
            if side == 0:
                out.append(f'<line x1="{left}" y1="{y:.1f}" x2="{left + width}" y2="{y:.1f}" class="grid"/>')
            anchor, dx = ("end", -6) if side == 0 else ("start", 6)
            text = f"{tick:g}" if tick < 1e6 else f"{tick / 1e6:g}M"
            out.append(f'<text x="{edge + dx}" y="{y + 4:.1f}" text-anchor="{anchor}" class="{class_}">{text}</text>')
        points = [(left + place(x, xs[0], xs[-1], width), top + height - place(value, low, high, height)) for x, value in zip(xs, values)]
        out.append(f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}" class="{class_} line"/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" class="{class_} dot"/>' for x, y in points]
        anchor = "start" if side == 0 else "end"
        out.append(f'<text x="{edge}" y="40" text-anchor="{anchor}" class="{class_}">{name}</text>')
    for x in xs:
        out.append(f'<text x="{left + place(x, xs[0], xs[-1], width):.1f}" y="{top + height + 18}" text-anchor="middle">{x}</text>')
    out.append(f'<text x="{left + width / 2}" y="{top + height + 38}" text-anchor="middle">{unit}</text>')
    return out


STYLE = """
svg { background: #fff; font: 12px system-ui, sans-serif; fill: #333 } .title { font-weight: 600; font-size: 14px }
.grid { stroke: #ddd } .line { fill: none; stroke-width: 2 } .a { fill: #0b62a4 } .b { fill: #b3430e } .a.line { fill: none; stroke: #0b62a4 }
.b.line { fill: none; stroke: #b3430e; stroke-dasharray: 5 3 }"""


def main(path, seconds):
    with tempfile.TemporaryDirectory() as folder:
        service = Service(pathlib.Path(folder) / "data", "--rate", "4000000000", "--connections-per-address", "20000")
        measure(service, 1, clients=16)
        clients = [measure(service, seconds, clients=count) for count in CLIENTS]
        sizes = [{**row, "per_second": row["requests_per_second"] * row["elements"]} for row in (measure(service, seconds, clients=16, elements=count) for count in ELEMENTS)]
        service.stop()
    for rows, across in ((clients, "clients"), (sizes, "elements")):
        print(f"| {across} | " + " | ".join(f"{row[across]:,}" for row in rows) + " |")
        print("| --- " * (len(rows) + 1) + "|")
        print("| answers/s | " + " | ".join(f"{row['requests_per_second']:,.0f}" for row in rows) + " |")
        print("| p50, p99 in ms | " + " | ".join(f"{short(row['p50_ms'])}, {short(row['p99_ms'])}" for row in rows) + " |")
    svg = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 350" role="img" aria-label="The service\'s throughput over clients and over sizes">', f"<style>{STYLE}</style>"]
    svg += panel(60, "Additions of 4 + 4 elements", "clients", clients, "clients", [("answers per second", "a", "requests_per_second"), ("p99, ms", "b", "p99_ms")])
    svg += panel(510, "Requests of 16 clients", "elements of each operand", sizes, "elements", [("elements per second", "a", "per_second"), ("p99, ms", "b", "p99_ms")])
    pathlib.Path(path).write_text("\n".join([*svg, "</svg>", ""]))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5)
