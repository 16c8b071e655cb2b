"""Fifty kernels with types beside `wgsl_bindgen`: `python benches/typed.py [--kernels 50] [--runs 5] [--alone]`, seconds; `--alone` leaves the two others out.

Two apps in a temporary folder have the same kernels, and build scripts that write their Rust. Both are built as `cargo check` builds them, so the build
scripts are not optimised. Measured are each script alone, an edit of one kernel with the `cargo check` behind it by turns, and a first `cargo check`
of each app, with an empty target folder, and of a third app, which parses the same kernels when it runs and has no build script.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent

KERNEL = """struct Params{i} {{ count: u32, scale: f32, shift: vec3f }}
@group(0) @binding(0) var<uniform> params: Params{i};
@group(0) @binding(1) var<storage, read> x: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4f>;
fn weight(at: vec4f) -> f32 {{ return exp(-dot(at, at)) * params.scale; }}
@compute @workgroup_size(64) fn k{i}(@builtin(global_invocation_id) id: vec3u) {{
    if id.x >= params.count {{ return; }}
    var sum = vec4f();
    for (var step = 0u; step < {steps}u; step++) {{
        let at = x[(id.x + step) % params.count] + vec4f(params.shift, 0.0);
        sum += at * weight(at);
    }}
    y[id.x] = sum;
}}
"""

OURS = """fn main() -> Result<(), cantus_build::Error> {
    cantus_build::kernels("shaders/*.wgsl")
}
"""

THEIRS = """use wgsl_bindgen::{GlamWgslTypeMap, WgslBindgenOptionBuilder, WgslTypeSerializeStrategy};
fn main() {
    let mut options = WgslBindgenOptionBuilder::default();
    options.workspace_root("shaders").serialization_strategy(WgslTypeSerializeStrategy::Bytemuck).type_map(GlamWgslTypeMap);
    for i in 0..COUNT {
        options.add_entry_point(format!("shaders/k{i}.wgsl"));
    }
    options.output("src/kernels.rs").build().expect("builds").generate().expect("generates");
}
"""

MAIN = """#![allow(warnings)]
mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}
fn main() {}
"""

# What it writes begins with attributes of a module, which `include!` does not take.
THEIR_MAIN = """#![allow(warnings)]
mod kernels;
fn main() {}
"""

TEXTS = """fn main() -> cantus::Result<()> {
    for text in [FILES] {
        cantus::Kernel::from_wgsl(text)?;
    }
    Ok(())
}
"""


def write(path: pathlib.Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def app(folder: pathlib.Path, name: str, count: int, dependencies: str, build: str | None, main: str) -> pathlib.Path:
    place = folder / name
    head = f'[workspace]\n[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2024"\n'
    write(place / "Cargo.toml", head + dependencies)
    if build:
        write(place / "build.rs", build)
    write(place / "src" / "main.rs", main)
    for i in range(count):
        write(place / "shaders" / f"k{i}.wgsl", KERNEL.format(i=i, steps=i + 3))
    subprocess.run(["cargo", "fetch", "--quiet"], cwd=place, check=True)
    return place


def check(place: pathlib.Path) -> float:
    begin = time.perf_counter()
    subprocess.run(["cargo", "check", "--quiet"], cwd=place, check=True, env={**os.environ, "CARGO_TARGET_DIR": str(place / "target")})
    return time.perf_counter() - begin


def script(place: pathlib.Path) -> float:
    """The build script alone, with nothing written before."""
    (place / "src" / "kernels.rs").unlink(missing_ok=True)
    (program,) = place.glob(f"target/debug/build/{place.name}-*/build-script-build")
    with tempfile.TemporaryDirectory() as out:
        begin = time.perf_counter()
        env = {**os.environ, "OUT_DIR": out, "CARGO_MANIFEST_DIR": str(place)}
        subprocess.run([program], cwd=place, check=True, env=env, stdout=subprocess.DEVNULL)
        return time.perf_counter() - begin


def edit(place: pathlib.Path, turn: int) -> float:
    write(place / "shaders" / "k7.wgsl", KERNEL.format(i=7, steps=1000 + turn))
    return check(place)


def told(name: str, seconds: list[float]) -> None:
    seconds = sorted(seconds)
    print(f"{name}: {statistics.median(seconds):.2f} ({seconds[0]:.2f} to {seconds[-1]:.2f})", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=int, default=50)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--alone", action="store_true")
    options = parser.parse_args()
    count = options.kernels
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        cantus = f'cantus = {{ path = "{ROOT}", default-features = false, features = ['
        ours = f'[dependencies]\n{cantus}"cpu"] }}\n[build-dependencies]\ncantus-build = {{ path = "{ROOT}/build" }}\n'
        theirs = '[dependencies]\nwgpu = "30"\nbytemuck = { version = "1", features = ["derive"] }\nglam = { version = "0.30", features = ["bytemuck"] }\n'
        theirs += '[build-dependencies]\nwgsl_bindgen = "0.23"\n'
        texts = f'[dependencies]\n{cantus}"cpu", "wgsl"] }}\n'
        files = ", ".join(f'include_str!("../shaders/k{i}.wgsl")' for i in range(count))
        apps = {
            "cantus-build": app(folder, "ours", count, ours, OURS, MAIN),
            "wgsl_bindgen": None if options.alone else app(folder, "theirs", count, theirs, THEIRS.replace("COUNT", str(count)), THEIR_MAIN),
        }
        apps = {name: place for name, place in apps.items() if place}
        for name, place in apps.items():
            print(f"first cargo check, {name}: {check(place):.1f}", flush=True)
        if not options.alone:
            plain = app(folder, "texts", count, texts, None, TEXTS.replace("FILES", files))
            print(f"first cargo check, no build script: {check(plain):.1f}", flush=True)
            shutil.rmtree(plain)
        scripts: dict[str, list[float]] = {name: [] for name in apps}
        edits: dict[str, list[float]] = {name: [] for name in apps}
        for turn in range(options.runs):
            for name, place in apps.items():
                scripts[name].append(script(place))
                edits[name].append(edit(place, turn))
        for name in apps:
            told(f"build script of {count} kernels, {name}", scripts[name])
            told(f"an edit and cargo check, {name}", edits[name])


if __name__ == "__main__":
    main()
