"""Files of arrays, and Arrow's columns."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys

import numpy as np
import pytest

import cantus

NAMED = {dtype.name: np.arange(24).reshape(2, 3, 4).astype(dtype.numpy) for dtype in cantus._dtypes.ALL if dtype.name != "bfloat16"}
REAL = {name: array for name, array in NAMED.items() if array.dtype.kind != "c"}


def same(found, expected):
    assert set(found) == set(expected)
    for name, array in expected.items():
        assert found[name].dtype.name == array.dtype.name.replace("bool_", "bool"), name
        np.testing.assert_array_equal(found[name].numpy(), array)


@pytest.mark.parametrize("mmap", [False, True])
def test_npz_is_numpys(tmp_path, mmap):
    ours, theirs = tmp_path / "ours.npz", tmp_path / "theirs.npz"
    cantus.save(ours, NAMED)
    same({name: cantus.asarray(array) for name, array in np.load(ours).items()}, NAMED)
    np.savez_compressed(theirs, **NAMED)
    same(cantus.load(ours, mmap=mmap), NAMED)
    same(cantus.load(theirs, mmap=mmap), NAMED)
    one = tmp_path / "one.npy"
    cantus.save(one, NAMED["float32"])
    np.testing.assert_array_equal(np.load(one), NAMED["float32"])
    np.testing.assert_array_equal(cantus.load(one, mmap=mmap).numpy(), NAMED["float32"])
    # NumPy's own ways.
    cantus.save(tmp_path / "plain", cantus.ones(3))
    assert np.load(tmp_path / "plain.npy").tolist() == [1, 1, 1]
    with open(tmp_path / "open.npy", "wb") as file:
        cantus.save(file, cantus.ones(3))
    assert np.load(tmp_path / "open.npy").tolist() == [1, 1, 1]


@pytest.mark.parametrize("mmap", [False, True])
def test_safetensors(tmp_path, mmap):
    path = tmp_path / "a.safetensors"
    half = cantus.asarray([1.0, -2.5], dtype=cantus.bfloat16)
    cantus.save(path, {**REAL, "half": half}, metadata={"format": "np"})
    back = cantus.load(path, mmap=mmap)
    assert back.pop("half").astype(cantus.float32).tolist() == [1.0, -2.5]
    same(back, REAL)
    theirs = pytest.importorskip("safetensors.numpy")
    from safetensors import safe_open

    with safe_open(path, "np") as file:
        assert file.metadata() == {"format": "np"}
    cantus.save(path, REAL)
    found = theirs.load_file(path)
    assert found.keys() == REAL.keys() and all(np.array_equal(found[name], array) for name, array in REAL.items())
    theirs.save_file(REAL, tmp_path / "b.safetensors")
    same(cantus.load(tmp_path / "b.safetensors", mmap=mmap), REAL)


def test_files_that_are_wrong(tmp_path):
    path = tmp_path / "a.safetensors"
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        cantus.load(path)
    path.write_bytes(b"\xff" * 20)
    with pytest.raises(ValueError, match="its header claims"):
        cantus.load(path)
    for name in ("b.npy", "b.npz"):
        (tmp_path / name).write_bytes(b"\xff" * 20)
        with pytest.raises(ValueError, match=name):
            cantus.load(tmp_path / name)
    with pytest.raises(ValueError, match="b.npy"):
        cantus.Stream(tmp_path / "b.npy")
    cantus.save(path, {"x": cantus.ones(1)})
    with pytest.raises(ValueError, match='no array "y"'):
        cantus._core.Archive(path, False).array(cantus.device().engine, "y")
    path.write_bytes(b"\xff" * 20)
    with pytest.raises(ValueError, match="is not a known suffix"):
        cantus.load(tmp_path / "a.pt")
    with pytest.raises(ValueError, match="has no complex64"):
        cantus.save(path, {"z": cantus.asarray([1j], dtype=cantus.complex64)})
    with pytest.raises(ValueError, match="only .safetensors holds text"):
        cantus.save(tmp_path / "a.npz", {"x": cantus.ones(1)}, metadata={"a": "b"})
    with pytest.raises(OSError, match="does not exist"):
        cantus.save(tmp_path / "none" / "a.npz", {"x": cantus.ones(1)})
    assert path.read_bytes() == b"\xff" * 20 and sorted(os.listdir(tmp_path)) == ["a.safetensors", "b.npy", "b.npz"]


class Schema(ctypes.Structure):
    _fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p), ("flags", ctypes.c_int64)]


def test_capsules_are_arrows():
    with cantus.device("cpu"):
        x = cantus.asarray(np.arange(12, dtype="f4").reshape(3, 4)).eval()
        schema, array = x.__arrow_c_array__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        assert Schema.from_address(pointer(schema, b"arrow_schema")).format == b"+w:4"
        address = x._x.address()
        del x
        gc.collect()
        y = cantus._core.from_arrow(cantus.device().engine, schema, array)[1][0][1]
        assert y.address() == address
        # What was taken cannot be taken again, and nothing is freed twice.
        with pytest.raises(RuntimeError, match="it was released"):
            cantus._core.from_arrow(cantus.device().engine, schema, array)
        with pytest.raises(TypeError, match="no capsule named arrow_schema"):
            cantus._core.from_arrow(cantus.device().engine, array, schema)
        with pytest.raises(TypeError, match="neither __arrow_c_array__ nor"):
            cantus.from_arrow(3)
        with pytest.raises(TypeError, match="Arrow has no bfloat16|Arrow has no bf16"):
            cantus.ones(1, dtype=cantus.bfloat16).__arrow_c_array__()


def test_pyarrow():
    pa = pytest.importorskip("pyarrow")
    with cantus.device("cpu"):
        for name, array in REAL.items():
            column = pa.array(array.ravel())
            x = cantus.from_arrow(column)
            np.testing.assert_array_equal(x.numpy(), array.ravel())
            if name != "bool":
                assert x._x.address() == column.buffers()[1].address, "no copy"
            back = pa.array(x)
            assert back.equals(column)
            if name != "bool":
                assert back.buffers()[1].address == x._x.address(), "no copy"
        values = np.arange(12, dtype="f4")
        column = pa.array(values)
        x = cantus.from_arrow(column)
        del column
        gc.collect()
        assert x.tolist() == values.tolist()
        back = pa.array(x + 0)
        del x
        gc.collect()
        assert back.to_pylist() == values.tolist()
        lists = pa.FixedSizeListArray.from_arrays(pa.array(values), 4)
        assert cantus.from_arrow(lists).tolist() == values.reshape(3, 4).tolist()
        table = pa.table({"x": values, "n": pa.chunked_array([[1, 2], list(range(10))])})
        assert {name: array.tolist() for name, array in cantus.from_arrow(table).items()} == table.to_pydict()
        with pytest.raises(TypeError, match='column "t".*text'):
            cantus.from_arrow(pa.table({"t": ["a"]}))
        with pytest.raises(ValueError, match="1 of its 2 rows are null"):
            cantus.from_arrow(pa.array([1, None]))


def test_polars():
    pl = pytest.importorskip("polars")
    with cantus.device("cpu"):
        series = pl.Series("x", np.arange(100.0))
        x = cantus.from_arrow(series)
        assert x.tolist() == series.to_list()
        frame = pl.DataFrame({"a": [1, 2, 3], "b": [0.5, 1.5, 2.5]})
        assert {name: array.tolist() for name, array in cantus.from_arrow(frame).items()} == frame.to_dict(as_series=False)
        assert pl.Series(cantus.arange(5)).to_list() == [0, 1, 2, 3, 4]


def test_a_process_may_end_with_shared_arrays():
    code = "import cantus; x = cantus.ones(4); capsules = x.__arrow_c_array__(); y = cantus.from_arrow(x)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
