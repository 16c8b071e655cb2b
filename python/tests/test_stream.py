"""Data larger than memory, chunk by chunk."""

import os
import subprocess
import sys
import time

import cantus
import numpy as np
import pytest


def blocks(x, rows):
    return (x[first : first + rows] for first in range(0, len(x), rows))


def test_every_source_gives_the_same(tmp_path):
    x = np.random.default_rng(1).standard_normal((1000, 7)).astype("f4")
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    for source in (str(tmp_path / "x.npy"), tmp_path / "x.npy", x, mapped, blocks(x, 13), [x[:1], x[1:]]):
        found = cantus.Stream(source, chunk_rows=77).summary()
        assert found.count == 7000
        measures = found.sum, found.mean, found.var, found.min, found.max
        np.testing.assert_allclose(measures, [f(x.astype("f8")) for f in (np.sum, np.mean, np.var, np.min, np.max)], rtol=1e-4)


@pytest.mark.parametrize("dtype", ["i4", "u4", "f4", "i2", "u1", "?", "f2", "f8", "i8"])
def test_chunks_are_the_rows(dtype):
    x = np.random.default_rng(2).integers(0, 2 if dtype == "?" else 100, (100, 3)).astype(dtype)
    with cantus.device("cpu"):
        found = list(cantus.Stream(x, chunk_rows=9))
    assert [chunk.first_row for chunk in found] == list(range(0, 100, 9))
    np.testing.assert_array_equal(np.concatenate([chunk.array.numpy() for chunk in found]), x)


def test_a_stencil(tmp_path):
    x = np.random.default_rng(3).standard_normal(1000).astype("f4")

    def smooth(chunk):
        rows = chunk.array
        wide = cantus.concat([rows[:1], rows, rows[-1:]])
        return (wide[:-2] + 2 * wide[1:-1] + wide[2:]) / 4

    cantus.Stream(x, chunk_rows=64, overlap=(1, 1)).map(smooth, tmp_path / "y.npy")
    wide = np.concatenate([x[:1], x, x[-1:]])
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), (wide[:-2] + 2 * wide[1:-1] + wide[2:]) / 4, atol=1e-6)
    assert os.listdir(tmp_path) == ["y.npy"]


def test_two_sources_side_by_side(tmp_path):
    x, y = np.arange(1000, dtype="f4").reshape(100, 10), np.arange(100, dtype="f4").reshape(100, 1)
    cantus.Stream(x, y, chunk_rows=7).map(lambda chunk: chunk.arrays[0] * chunk.arrays[1], tmp_path / "z.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "z.npy"), x * y)
    with pytest.raises(ValueError, match="after 99 rows, 100"):
        cantus.Stream(x, y[:99]).map(lambda chunk: chunk.array, tmp_path / "z.npy")


def test_histograms_and_sorts(tmp_path):
    x = np.random.default_rng(4).integers(0, 1000, 20_000).astype("f4")
    counts, _ = np.histogram(x, 10, (0, 1000))
    np.testing.assert_array_equal(cantus.Stream(x, chunk_rows=999).histogram(10, 0, 1000), counts)
    cantus.Stream(x, chunk_rows=999).sort(tmp_path / "sorted.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "sorted.npy"), np.sort(x))


def test_what_python_raises_comes_through(tmp_path):
    def broken():
        yield np.zeros(3, "f4")
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        cantus.Stream(broken()).sum()
    with pytest.raises(ZeroDivisionError):
        cantus.Stream(np.zeros(3, "f4")).map(lambda chunk: 1 / 0, tmp_path / "x.npy")
    with pytest.raises(TypeError, match="an array of cantus"):
        cantus.Stream(np.zeros(3, "f4")).map(lambda chunk: 1, tmp_path / "x.npy")
    with pytest.raises(ValueError, match="an item has rows"):
        cantus.Stream([np.zeros(3, "f4"), np.zeros(3, "f8")]).sum()
    with pytest.raises(ValueError, match="shape of its rows is unknown"):
        cantus.Stream([])
    with pytest.raises(FileNotFoundError):
        cantus.Stream(tmp_path / "none.npy")
    assert os.listdir(tmp_path) == []
    taken = cantus.Stream(np.zeros(3, "f4"))
    taken.sum()
    with pytest.raises(RuntimeError, match="consumed already"):
        taken.sum()


def test_a_checkpoint_is_gone_on_from(tmp_path):
    program = """
import cantus, numpy as np, sys, time
np.save("x.npy", np.arange(400_000, dtype="i4")) if len(sys.argv) > 1 else None
def slow(chunk):
    time.sleep(0.5) if len(sys.argv) > 1 else None
    return chunk.array * 2
cantus.Stream("x.npy", chunk_rows=10_000, checkpoint="done", name="twice").map(slow, "y.npy")
"""
    first = subprocess.Popen([sys.executable, "-c", program, "slow"], cwd=tmp_path)
    for _ in range(1200):
        if (tmp_path / "done").exists() or first.poll() is not None:
            break
        time.sleep(0.05)
    first.kill()
    first.wait()
    assert (tmp_path / "done").exists() and not (tmp_path / "y.npy").exists()
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), 2 * np.arange(400_000, dtype="i4"))
    assert sorted(os.listdir(tmp_path)) == ["x.npy", "y.npy"]


def test_a_checkpoint_belongs_to_its_work_and_its_rows(tmp_path):
    done, out = tmp_path / "done", tmp_path / "y.npy"
    x = np.arange(40_000, dtype="i4")

    def run(rows, name="twice", fail_at=None):
        def work(chunk):
            if fail_at is not None and chunk.first_row >= fail_at:
                raise RuntimeError("told to fail")
            return chunk.array * 2

        cantus.Stream(rows, chunk_rows=1000, checkpoint=done, name=name).map(work, out)

    with pytest.raises(ValueError, match="name="):
        run(x, name=None)
    assert os.listdir(tmp_path) == []

    def interrupted(rows):
        if not done.exists():
            # The first checkpoint comes after five seconds.
            slow = (time.sleep(0.3) or block for block in np.array_split(rows, 40))
            with pytest.raises(RuntimeError, match="told to fail"):
                run(slow, fail_at=30_000)

    interrupted(x)
    assert done.exists() and not out.exists()
    with pytest.raises(ValueError, match="other work"):
        run([x], name="thrice")
    changed = x.copy()
    changed[5] ^= 1
    with pytest.raises(ValueError, match="not those of the earlier run"):
        run([changed])
    run([x])
    np.testing.assert_array_equal(np.load(out), 2 * x)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are another matter there")
def test_ctrl_c_ends_it(tmp_path):
    # What starts the tests in the background has children ignore the signal.
    program = """
import cantus, numpy as np, itertools, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
print("begun", flush=True)
cantus.Stream(itertools.repeat(np.zeros(100_000, "f4"))).sum()
"""
    import signal

    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "begun\n"
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors
