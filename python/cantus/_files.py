"""Files of arrays, and Arrow's columns."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _core, _devices
from ._api import asarray
from ._array import wrap


def load(path: str | os.PathLike[str], *, device: Any = None, mmap: bool = False) -> Any:
    """Loads the arrays of a `.safetensors` or `.npz` file as a dictionary, and the array of a `.npy` file.

    With `mmap`, arrays on the CPU lie in a map of the file where its alignment allows, and nothing is read before it is used. Nobody may write to
    the file or shorten it while such an array lives.

    >>> import cantus, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> cantus.save(path, {"bias": cantus.ones(2)})
    >>> cantus.load(path)
    {'bias': array([1., 1.], dtype=float32)}
    """
    target = _devices.device(device)
    archive = _core.Archive(path, mmap)
    arrays = {name: wrap(archive.array(target.engine, name), target) for name in archive.names()}
    if os.fspath(path).endswith(".npy"):
        (array,) = arrays.values()
        return array
    return arrays


def save(path: str | os.PathLike[str], arrays: Any, *, metadata: Mapping[str, str] | None = None) -> None:
    """Saves arrays by name to a `.safetensors` or `.npz` file, or one array to a `.npy` file: whole, or not at all. A `.safetensors` file may
    hold text besides, as `metadata`; it holds no complex numbers. One array under a name without such a suffix, or to an open file, is saved by
    NumPy.

    >>> import cantus, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "x.npy")
    >>> cantus.save(path, cantus.ones(2))
    >>> cantus.load(path)
    array([1., 1.], dtype=float32)
    """
    if not isinstance(arrays, Mapping) and not str(path).endswith((".npy", ".npz", ".safetensors")):
        np.save(path, asarray(arrays).numpy())
        return
    named = arrays if isinstance(arrays, Mapping) else {"array": arrays}
    _core.save(path, [(str(name), asarray(array)._x) for name, array in named.items()], dict(metadata or {}))


def from_arrow(x: Any, /, *, device: Any = None) -> Any:
    """Imports what speaks Arrow's C data interface (`__arrow_c_array__` or `__arrow_c_stream__`: pyarrow, Polars, DuckDB): a column of numbers as
    an array, a table as a dictionary of them. On the CPU a column of one chunk is shared where it begins at a multiple of 16 bytes and holds a
    multiple of 4; else it is copied. Nulls, text and dates are errors.

    >>> import cantus
    >>> cantus.from_arrow(cantus.arange(3))
    array([0, 1, 2])
    """
    target = _devices.device(device)
    if hasattr(x, "__arrow_c_array__"):
        is_table, columns = _core.from_arrow(target.engine, *x.__arrow_c_array__())
    elif hasattr(x, "__arrow_c_stream__"):
        is_table, columns = _core.from_arrow(target.engine, x.__arrow_c_stream__())
    else:
        raise TypeError(f"{type(x).__name__} has neither __arrow_c_array__ nor __arrow_c_stream__")
    arrays = {name: wrap(array, target) for name, array in columns}
    if len(arrays) != len(columns):
        raise ValueError("two columns have the same name")
    return arrays if is_table else next(iter(arrays.values()))
