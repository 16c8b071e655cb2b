"""Faults of the core that others' programs have met, each as its class: masks, dtypes, small differences from NumPy, writes, halves, memory, interrupts. The oracle is NumPy."""

from __future__ import annotations

import operator
import subprocess
import sys
import warnings

import numpy as np
import pytest

import cantus

A = cantus.asarray
RANDOM = np.random.default_rng(57)


def test_a_lost_write_warns(device):
    x = cantus.zeros(4)
    with pytest.warns(RuntimeWarning, match="parts are copies"):
        x[1:][[True, False, True]] = 5
    assert x.tolist() == [0, 0, 0, 0]
    with pytest.warns(RuntimeWarning):
        y = x[1:]
        y += 1
        del y
    with pytest.warns(RuntimeWarning):
        np.add(x[:2], 1, out=x[2:])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = x[1:]
        y += 1
        assert y.tolist() == [1, 1, 1]
        x[0] += 1
        x[1:] = 2
        x[:2][0].tolist()
        # These are copies in NumPy too.
        for key in ([True, False, True, False], [0, 2], 0):
            copy = x[key]
            copy += 1
            del copy
        z = x[:2]
        z[0] = 9
        x[:2] = z
        for row in cantus.ones((2, 2)):
            row.sum().tolist()
        del y, z


# Halves.


def halves(device):
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.normal(size=60) * 10.0 ** rng.integers(-4, 5, 60), [0, -0.0, np.inf, -np.inf, np.nan, 300, 65504, 1e-7]])
    for dtype in (cantus.float16, cantus.bfloat16):
        yield dtype, A(x.astype("f4")).astype(dtype).eval(), A(rng.permutation(x).astype("f4")).astype(dtype).eval()


@pytest.mark.filterwarnings("ignore")
def test_halves_are_what_is_stored(device):
    """A cast, a predicate, a comparison and a repr find the number that is stored, whether or not it was computed before."""
    steps = (lambda x, y: x * x, lambda x, y: x * y, lambda x, y: x + y, lambda x, y: cantus.exp(x), lambda x, y: x / y - x, lambda x, y: x * 0.1, lambda x, y: cantus.where(x > y, x * y, x - y), lambda x, y: cantus.take(x * y, 67 - cantus.arange(68)), lambda x, y: cantus.roll(x * y, 3), lambda x, y: cantus.concat([(x * x)[:30], (x * y)[30:]]), lambda x, y: cantus.cumulative_sum(x * y), lambda x, y: cantus.sort(x * y))
    looks = (
        lambda v, x: cantus.isinf(v), lambda v, x: cantus.isfinite(v), lambda v, x: v.astype(cantus.float32), lambda v, x: v.astype(cantus.int32), lambda v, x: v == x, lambda v, x: v < x,
        lambda v, x: v >= 0.1, lambda v, x: v != v.astype(cantus.float32), lambda v, x: v.astype(cantus.bool_), lambda v, x: cantus.nextafter(v, x).astype(cantus.float32),
        lambda v, x: cantus.argmax(v), lambda v, x: cantus.argmin(v), lambda v, x: cantus.argsort(v), lambda v, x: cantus.sort(v).astype(cantus.float32), lambda v, x: cantus.searchsorted(cantus.sort(v), v), lambda v, x: cantus.any(v), lambda v, x: cantus.count_nonzero(v),
    )  # fmt: skip
    for dtype, x, y in halves(device):
        for number, step in enumerate(steps):
            for place, look in enumerate(looks):
                unread, read = look(step(x, y), x), look(step(x, y).eval(), x)
                np.testing.assert_array_equal(np.asarray(unread), np.asarray(read), err_msg=f"{dtype} {number} {place}")
            assert repr(step(x, y)) == repr(step(x, y).eval())


@pytest.mark.filterwarnings("ignore")
def test_halves_are_numpys(device):
    x = A(np.array([300, 0.1], "f2"))
    assert cantus.isinf(x * x).tolist() == [True, False]
    np.testing.assert_array_equal(np.asarray((x * x).astype(cantus.float32)), (np.array([300, 0.1], "f2") ** 2).astype("f4"))
    b = cantus.full(1, 1.0078125).astype(cantus.bfloat16)
    assert (b * b).astype(cantus.float32).tolist() == [1.015625]
    for _, x, y in halves(device):
        if x.dtype is not cantus.float16:
            continue
        a, b = np.asarray(x), np.asarray(y)
        for pair in ((x, y), (y, x)):
            np.testing.assert_array_equal(np.asarray(cantus.nextafter(*pair)), np.nextafter(*map(np.asarray, pair)))
        np.testing.assert_array_equal(np.asarray(cantus.nextafter(x, x * 0)), np.nextafter(a, a * 0))
        assert len(a) == len(b)


def test_the_next_bfloat16(device):
    """By the bits: of float32, whose upper half they are."""
    x = np.array([1, 0, -1, 256, 3e38, 1e-30], "f4")
    b = A(x).astype(cantus.bfloat16)
    bits = (np.asarray(b.astype(cantus.float32)).view("u4") >> 16).astype("u2")
    up = np.where(x == 0, 1, np.where(x > 0, bits + 1, bits - 1)).astype("u4") << 16
    np.testing.assert_array_equal(np.asarray(cantus.nextafter(b, cantus.full(6, np.inf).astype(cantus.bfloat16)).astype(cantus.float32)), up.view("f4"))


# DLPack of bfloat16.


class Exported:
    """Another library's array of bfloat16, which NumPy does not read."""

    def __init__(self, of):
        self.of = of

    def __dlpack__(self, **keywords):
        return self.of.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.of.__dlpack_device__()

    def __array__(self, *_, **__):
        raise TypeError("no bfloat16")


def test_bfloat16_is_exchanged():
    x = cantus.arange(12).astype(cantus.bfloat16)
    assert cantus.from_dlpack(Exported(x)).tolist() == list(range(12)) and cantus.asarray(Exported(x)).dtype is cantus.bfloat16
    for dtype in cantus._dtypes.ALL:
        empty = cantus.zeros((0, 3)).astype(dtype)
        back = cantus.from_dlpack(empty.__dlpack__ and Exported(empty))
        assert back.shape == (0, 3) and back.dtype is dtype
    torch = pytest.importorskip("torch")
    t = torch.arange(12.0).bfloat16()
    for of in (t, t[1::2], t.reshape(3, 4).T, t[:0]):
        assert cantus.from_dlpack(of).astype(cantus.float32).tolist() == of.float().tolist() and cantus.asarray(of).dtype is cantus.bfloat16
    assert torch.from_dlpack(cantus.zeros((0, 3)).astype(cantus.bfloat16)).shape == (0, 3)


# Memory.

LOOPS = {
    "products": "x = (a @ x).eval()", "sums": "x = (x * 0.5 + a).eval()", "rows": "x = (x - x.mean(axis=0)).eval()", "sorts": "x = cantus.sort(x, axis=1).eval()",
    "whole": "w = (w // 3 + 1).eval()",
}  # fmt: skip
LOOP = """
import cantus, gc
rss = lambda: int(next(line for line in open("/proc/self/status") if line.startswith("VmRSS")).split()[1]) // 1024
with cantus.device({device!r}):
    a = (cantus.random.normal(cantus.random.key(1), (500, 500)) / 500**0.5).eval(); x = cantus.eye(500); w = cantus.full((500, 500), 9)
    begin, most = None, 0
    for step in range({steps}):
        {body}
        if step == 50: begin = rss()
        most = max(most, rss()) if step > 50 and step % 20 == 0 else most
    float(x[0, 0]); int(w[0, 0])
    print(begin, most)
"""


@pytest.mark.parametrize("name", LOOPS)
def test_results_that_nobody_reads_do_not_pile_up(device, name):
    code = LOOP.format(device=device.name, steps=600, body=LOOPS[name])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    begin, most = map(int, done.stdout.split())
    assert most - begin < (160 if device.is_host else 700), f"{most - begin} MiB more than after 50 steps"


# Interrupts.

INTERRUPTED = """
import os, signal, threading, time, cantus
a = cantus.random.normal(cantus.random.key(1), (1500, 1500)).eval(); float(a[0, 0])
def interrupt():
    global sent
    sent = time.time(); os.kill(os.getpid(), signal.SIGINT)
threading.Timer(0.7, interrupt).start()
try:
    while True: WORK
except KeyboardInterrupt:
    print(time.time() - sent, flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("work", ["float(cantus.linalg.svd(a)[1][0])", "float(cantus.linalg.eigh(a.astype(cantus.float64))[0][0])", "cantus.fft.fft(a.astype(cantus.complex128), axis=0).eval()"])
def test_ctrl_c_reaches_work_of_the_hosts(work):
    done = subprocess.run([sys.executable, "-c", INTERRUPTED.replace("WORK", work)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 1.5, f"{done.stdout} s after Ctrl-C"


# Kernels.

PARTICLES = """
struct Spin { axis: vec3f, rate: f32 }
struct Particle { position: vec3f, mass: f32, turned: mat3x3f, kind: u32, spin: Spin, weights: array<f32, 3> }
struct Step { by: f32, count: u32 }
@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read_write> particles: array<Particle>;
@compute @workgroup_size(64)
fn move_all(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= arrayLength(&particles) { return; }
    particles[id.x].position += step.by * particles[id.x].spin.axis;
    particles[id.x].turned = transpose(particles[id.x].turned);
    particles[id.x].kind += step.count;
    particles[id.x].weights[2] *= 2.0;
}
"""


def test_structured_arrays_are_structures(device):
    spin = np.dtype([("rate", "f4"), ("axis", "f4", 3)])
    particle = np.dtype([("position", "f4", 3), ("mass", "f4"), ("turned", "f4", (3, 3)), ("kind", "u4"), ("spin", spin), ("weights", "f4", 3)])
    p = np.zeros(70, particle)
    for name in ("position", "mass", "turned", "weights"):
        p[name] = RANDOM.uniform(size=p[name].shape)
    p["spin"]["axis"], p["kind"] = RANDOM.uniform(size=(70, 3)), np.arange(70)
    before = p.copy()
    step = np.zeros((), np.dtype([("by", "f4"), ("count", "u4")]))
    step["by"], step["count"] = 0.5, 3
    cantus.kernel(PARTICLES)(particles=p, step=step, invocations=70, device=device)
    np.testing.assert_allclose(p["position"], before["position"] + np.float32(0.5) * before["spin"]["axis"], rtol=1e-6)
    np.testing.assert_array_equal(p["turned"], before["turned"].transpose(0, 2, 1))
    np.testing.assert_array_equal(p["kind"], before["kind"] + 3)
    np.testing.assert_allclose(p["weights"], before["weights"] * [1, 1, 2])
    np.testing.assert_array_equal(p["mass"], before["mass"])
    with pytest.raises(cantus.KernelError, match="at least"):
        cantus.kernel(PARTICLES)(particles=p[:0], step=step, invocations=1)
    with pytest.raises(TypeError, match="no member"):
        cantus.kernel(PARTICLES)(particles=np.zeros(3, [("place", "f4", 3)]), step=step, invocations=3)
    with pytest.raises(TypeError, match="turned"):
        cantus.kernel(PARTICLES)(particles=np.zeros(3, [*[(name, particle[name]) for name in particle.names if name != "turned"], ("turned", "f4", 9)]), step=step, invocations=3)
