"""Gray and Scott's reaction and diffusion, as one custom kernel: `python reaction_diffusion.py [STEPS] [RESULT.png]`."""

import sys

import cantus
import numpy as np

STEP = cantus.kernel("""
struct Params { side: u32, feed: f32, kill: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage> now: array<vec2f>;
@group(0) @binding(2) var<storage, read_write> next: array<vec2f>;

fn at(x: u32, y: u32) -> vec2f {
    return now[(y % params.side) * params.side + x % params.side];
}

@compute @workgroup_size(64)
fn step(@builtin(global_invocation_id) id: vec3u) {
    let side = params.side;
    if id.x >= side * side { return; }
    let x = id.x % side + side;
    let y = id.x / side + side;
    let here = at(x, y);
    let around = at(x - 1, y) + at(x + 1, y) + at(x, y - 1) + at(x, y + 1) - 4 * here;
    let reaction = here.x * here.y * here.y;
    let flow = vec2f(0.16, 0.08) * around;
    next[id.x] = here + flow + vec2f(params.feed * (1 - here.x) - reaction, reaction - (params.feed + params.kill) * here.y);
}
""")


def run(side: int, steps: int, feed: float = 0.0545, kill: float = 0.062) -> cantus.Array:
    """Both substances after `steps` steps, `[side, side, 2]`, from a square in the middle."""
    start = np.zeros((side, side, 2), "f4")
    start[..., 0] = 1
    middle = slice(side // 2 - 8, side // 2 + 8)
    start[middle, middle] = [0.5, 0.25]
    now, following = cantus.array(start), cantus.zeros((side, side, 2))
    for _ in range(steps):
        STEP(now=now, next=following, side=side, feed=feed, kill=kill, invocations=side * side)
        now, following = following, now
    return now


def plain(side: int, steps: int, feed: float = 0.0545, kill: float = 0.062) -> np.ndarray:
    """The same in NumPy, in float64."""
    u, v = np.ones((side, side)), np.zeros((side, side))
    middle = slice(side // 2 - 8, side // 2 + 8)
    u[middle, middle], v[middle, middle] = 0.5, 0.25
    for _ in range(steps):
        flow = [0.0, 0.0]
        for k, field in enumerate((u, v)):
            flow[k] = sum(np.roll(field, shift, axis) for axis in (0, 1) for shift in (-1, 1)) - 4 * field
        reaction = u * v * v
        u, v = u + 0.16 * flow[0] + feed * (1 - u) - reaction, v + 0.08 * flow[1] + reaction - (feed + kill) * v
    return np.stack([u, v], -1)


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    result = run(128, steps)
    values = np.asarray(result)
    print(f"{steps} steps on {result.device}: {100 * (values[..., 1] > 0.1).mean():.1f} % overgrown")
    if len(sys.argv) > 2:
        from PIL import Image

        Image.fromarray((255 * values[..., 1] / values[..., 1].max()).astype("u1")).save(sys.argv[2])
    if len(sys.argv) == 1:
        assert np.abs(values - plain(128, steps)).max() < 1e-3


if __name__ == "__main__":
    main()
