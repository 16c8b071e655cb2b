"""Memory, processes, threads, signals."""

from __future__ import annotations

import asyncio
import builtins
import gc
import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import cantus

DTYPES = [dtype for dtype in cantus._dtypes.ALL if dtype.name != "bfloat16"]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_numpy_in_and_out(dtype):
    x = (np.arange(24).reshape(2, 3, 4) % 2 if dtype.kind == "b" else np.arange(24).reshape(2, 3, 4)).astype(dtype.numpy)
    for source in (x, x[:, ::-1], x.T, x[1, 2, 3], x[:0], x.astype(x.dtype.newbyteorder(">"))):
        y = cantus.asarray(source)
        assert (y.shape, y.dtype) == (source.shape, dtype)
        np.testing.assert_array_equal(np.asarray(y), source)
        np.testing.assert_array_equal(y.numpy(), source)
        assert pickle.loads(pickle.dumps(y)).tolist() == source.tolist()
    assert str(y.dtype) == dtype.name


def test_exports_are_in_place_and_read_only():
    with cantus.device("cpu"):
        x = cantus.asarray(np.arange(100.0, dtype="f4")).eval()
        seen = np.asarray(x)
        assert seen.__array_interface__["data"][0] == x._x.address()
        assert not seen.flags.writeable
        assert np.from_dlpack(x).__array_interface__["data"][0] == x._x.address()
        # What NumPy sees lives as long as NumPy sees it.
        del x
        gc.collect()
        cantus.ones(100).eval()
        assert seen.sum() == 4950
        mine = cantus.ones(3).numpy()
        mine[0] = 5


def test_imports_are_in_place_and_keep_their_owner():
    with cantus.device("cpu"):
        x = np.arange(4096, dtype="f4")
        y = cantus.from_dlpack(x)
        aligned = x.__array_interface__["data"][0] % 16 == 0
        assert (y._x.address() == x.__array_interface__["data"][0]) == aligned
        references = sys.getrefcount(x)
        del x
        gc.collect()
        assert references and float(cantus.sum(y)) == 4096 * 4095 / 2
        turned = np.arange(12.0).reshape(3, 4).T
        np.testing.assert_array_equal(np.asarray(cantus.from_dlpack(turned)), turned)
        with pytest.raises(BufferError):
            cantus.from_dlpack(turned, copy=False)
        capsule = np.ones(3).__dlpack__()
        assert cantus._core.Lazy.imported(capsule)[0] == "f64"
        with pytest.raises(TypeError, match="used before"):
            cantus._core.Lazy.imported(capsule)


def test_what_is_computed_later_does_not_change_what_was_recorded():
    x = cantus.zeros(4)
    y = x + 1
    x[0] = 7
    x += 1
    assert (y.tolist(), x.tolist()) == ([1, 1, 1, 1], [8, 1, 1, 1])


def test_kernels_write_arrays_and_show_mistakes():
    text = """
    struct Params { a: f32 }
    @group(0) @binding(0) var<uniform> params: Params;
    @group(0) @binding(1) var<storage> x: array<f32>;
    @group(0) @binding(2) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(64)
    fn saxpy(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&y) { y[id.x] += params.a * x[id.x]; }
    }
    """
    saxpy = cantus.kernel(text)
    x, y = cantus.arange(5, dtype="float32"), cantus.ones(5)
    before = y * 1
    saxpy(x=x, y=y, a=2.0, invocations=x.size)
    assert (y.tolist(), before.tolist()) == ([1, 3, 5, 7, 9], [1] * 5)
    assert "params" in repr(saxpy) and "<table>" in saxpy._repr_html_()
    with pytest.raises(cantus.KernelError, match="no such binding"):
        saxpy(x=x, y=y, z__a=1, a=2.0, invocations=5)
    with pytest.raises(cantus.KernelError) as raised:
        cantus.kernel("@compute @workgroup_size(1) fn f() { let x = 1 + ; }")
    assert "^" in str(raised.value)
    with pytest.raises(cantus.KernelError, match="no value was set$"):
        cantus.kernel(f"override n: f32;\n{text.replace('params.a *', 'n * params.a *')}")


def test_threads_share_an_engine():
    x = cantus.asarray(np.random.default_rng(1).standard_normal((64, 64)).astype("f4"))
    expected = np.asarray(cantus.nn.softmax(x @ x)).copy()
    failures = []

    def work():
        for _ in range(20):
            if not np.allclose(np.asarray(cantus.nn.softmax(x @ x)), expected):
                failures.append("wrong")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def long():
    x = cantus.asarray(np.ones((1500, 1500), "f8"))
    return x @ x


def test_others_run_while_the_device_works():
    counted = 0

    async def count():
        nonlocal counted
        while True:
            await asyncio.sleep(0)
            counted += 1

    async def main():
        task = asyncio.create_task(count())
        x = cantus.asarray(np.random.default_rng(1).standard_normal((1000, 1000)).astype("f4"))
        result = await (x @ x @ x).async_numpy()
        task.cancel()
        return result.shape

    assert asyncio.run(main()) == (1000, 1000)
    assert counted > 5


INTERRUPTED = """
import os, signal, threading, time, cantus
with cantus.device("cpu"):
    loop = cantus.kernel('''
    @group(0) @binding(0) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(64)
    fn spin(@builtin(global_invocation_id) id: vec3u) {
        var x = f32(id.x);
        for (var i = 0u; i < 400000000u; i++) { x = x * 0.999 + 1.0; }
        y[id.x] = x;
    }''')
    y = cantus.ones(4096).eval()
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    try:
        loop(y=y, invocations=4096)
        y.numpy()
        print("finished")
    except KeyboardInterrupt:
        print("interrupted", time.monotonic() - begin)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_ends_a_long_computation():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=60)
    word, seconds = done.stdout.split()
    assert (word, done.returncode) == ("interrupted", 0) and float(seconds) < 5, done.stderr


def in_the_child(array, queue):
    try:
        array.numpy()
        queue.put("read")
    except RuntimeError as error:
        queue.put(str(error))
    queue.put(cantus.ones(3).tolist())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_says_what_to_do_and_goes_on():
    array = cantus.ones(3).eval()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=in_the_child, args=(array, queue))
    child.start()
    assert "spawn" in queue.get(timeout=60)
    assert queue.get(timeout=60) == [1, 1, 1]
    child.join(60)
    assert child.exitcode == 0


def test_the_interpreter_ends_while_work_is_under_way():
    code = "import cantus, numpy as np; x = cantus.asarray(np.ones((700, 700), 'f4')); y = x\nfor _ in range(5): y = (y @ x).eval()"
    begin = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert time.monotonic() - begin < 30


def test_tables_and_pictures():
    assert "<table>" in cantus.devices()._repr_html_() and "cpu" in repr(cantus.devices())
    picture = cantus.field.field(32, 16, "unity").show()
    assert picture._repr_png_().startswith(b"\x89PNG")
    pytest.importorskip("matplotlib")
    other = cantus.field.field(32, 16, "unity").show(colormap="gray", scale=2)
    assert other._repr_png_().startswith(b"\x89PNG") and other._repr_png_() != picture._repr_png_() and "64 x 32" in repr(other)
    with pytest.raises(ValueError, match="nosuch"):
        cantus.ones((2, 2)).show(colormap="nosuch")
    with pytest.raises(ValueError, match="two axes"):
        cantus.ones(3).show()


def test_a_profile_is_a_table():
    found = cantus.profile(lambda: cantus.exp(cantus.ones(1000)).eval())
    assert found and "operation" in repr(found) and "<table>" in found._repr_html_()
    assert builtins.all(row["count"] >= 1 for row in found)


def test_a_profile_of_another_device():
    other = next((row for row in cantus.devices() if row["backend"] != "cpu"), None)
    if other is None:
        pytest.skip("there is no device but the processor")
    code = "import cantus; print(len(cantus.profile(lambda: cantus.exp(cantus.ones(1000)).eval())))"

    def ran(**more):
        environment = os.environ | {"CANTUS_DEVICE": other["backend"]} | more
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=environment)

    assert ran(CANTUS_PROFILE="1").stdout == "1\n"
    assert "CANTUS_PROFILE=1" in ran(CANTUS_PROFILE="0").stderr


def test_a_signal_handler_stays():
    def own(number, frame):
        raise AssertionError

    before = signal.signal(signal.SIGINT, own)
    try:
        assert cantus.ones(10).sum().item() == 10
        assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_profile_is_saved(tmp_path):
    found = cantus.profile(lambda: cantus.exp(cantus.ones(10)).eval())
    found.save(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    assert [event for event in events if event.get("ph") == "X" and event["dur"] >= 0], events


def test_threads_enter_one_device_at_once():
    chosen = cantus.device("cpu")
    failures = []

    def work():
        try:
            for _ in range(200):
                with chosen:
                    time.sleep(0)
                    assert cantus.device() is chosen
        except Exception as error:  # noqa: BLE001 - any is a failure
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
