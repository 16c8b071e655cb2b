"""The functions of the Python array API standard 2024.12."""

from __future__ import annotations

import builtins
import math
import operator
import os
from collections.abc import Sequence
from typing import Any, NamedTuple, overload

import numpy as np

from . import _arguments, _core, _devices, _dtypes
from ._array import Array, address_of, binary, call, common, divided, filled, floor_divided, matmul, number, power, wrap
from ._devices import Device
from ._dtypes import DType
from ._indexing import Rows, within

e = math.e
inf = math.inf
nan = math.nan
newaxis = None
pi = math.pi

Axes = int | tuple[int, ...] | None


def default_int(device: Device) -> DType:
    """The dtype of places and counts: int64 where the device has it."""
    return _dtypes.int64 if device.has(_dtypes.int64) else _dtypes.int32


def _default(kind: str, device: Device) -> DType:
    if kind == "i":
        return default_int(device)
    return {"b": _dtypes.bool_, "f": _dtypes.float32, "c": _dtypes.complex64}[kind]


# Creation.


# `isinstance` takes them as they are: a union would be made at each call.
_OF_NUMPY = (np.ndarray, np.generic)
_OF_PYTHON = (bool, int, float, complex, list, tuple)


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Array:
    """Creates an array from a number, nested sequences of numbers, a NumPy array, or an object with `__dlpack__`. Python's floats become float32.

    >>> import cantus
    >>> cantus.asarray([[1, 2], [3, 4]])
    array([[1, 2],
           [3, 4]])
    """
    wanted = None if dtype is None else _dtypes.of(dtype)
    if isinstance(obj, Array):
        target = obj._device if device is None else _devices.device(device)
        to = obj.dtype if wanted is None else wanted
        if copy is False and (to is not obj.dtype or target != obj._device):
            raise ValueError("another dtype or device takes a copy (leave copy=False out)")
        moved = obj if target == obj._device else obj.to(target)
        return moved.astype(to, copy=bool(copy))
    target = _devices.device(device)
    if copy is False:
        raise ValueError("copy=False needs an array of Cantus (cantus.from_dlpack shares memory)")
    if not isinstance(obj, _OF_NUMPY):
        if hasattr(obj, "__dlpack__") and (not hasattr(obj, "__array__") or not _is_numpys(obj)):
            return asarray(from_dlpack(obj, copy=True), dtype=dtype, device=target, copy=True)
        if isinstance(obj, (list, tuple)) and builtins.any(isinstance(part, Array) for part in obj):
            # Numbers take the dtype of the arrays beside them.
            arrays = [part if isinstance(part, bool | int | float | complex) else asarray(part, dtype=dtype, device=device) for part in obj]
            beside = next(part for part in arrays if isinstance(part, Array))
            return stack([part if isinstance(part, Array) else number(part, beside) for part in arrays])
        plain = isinstance(obj, _OF_PYTHON)
        if wanted is not None and wanted.kind in "iu" and plain:
            # Numbers of Python's that don't fit are an error, as they are for NumPy.
            host = np.asarray(obj, wanted.numpy)
        else:
            host = np.asarray(obj)
        if wanted is not None and plain and host.dtype.kind == "c" and wanted.kind not in "cb":
            raise TypeError(f"a complex number is no {wanted} (take its real part)")
        if wanted is None and plain and host.dtype.kind in "ifc":
            wanted = _default(host.dtype.kind, target)
            if not _holds_python(obj):
                wanted = _dtypes.of(host.dtype)
    else:
        host = np.asarray(obj)
    if wanted is not None and not _dtypes.is_numpy(host.dtype, wanted):
        if wanted is _dtypes.bfloat16:
            return asarray(host.astype(np.float32), device=target).astype(wanted)
        host = host.astype(wanted.numpy)
    kind = _dtypes.of(host.dtype)
    if not target.has(kind):
        raise TypeError(f"{target} does not compute with {kind} (dtype=..., or with cantus.device('cpu'))")
    if not host.flags.c_contiguous:
        host = np.ascontiguousarray(host)
    if not host.dtype.isnative:
        host = host.astype(host.dtype.newbyteorder("="))
    return wrap(target.engine.copied(kind.core, list(host.shape), address_of(host), host.nbytes), target)


def _is_numpys(obj: Any) -> bool:
    """Returns whether NumPy reads an object of another library: it has no bfloat16."""
    try:
        np.asarray(obj)
    except (TypeError, ValueError, RuntimeError):
        return False
    return True


def _holds_python(obj: Any) -> bool:
    """Returns whether the first number within is one of Python's."""
    while isinstance(obj, (list, tuple)):
        if not obj:
            return True
        obj = obj[0]
    return isinstance(obj, (bool, int, float, complex)) and not isinstance(obj, np.generic)


def array(obj: Any, /, dtype: Any = None, *, device: Any = None) -> Array:
    """Creates an array as `asarray` does, always by copying.

    >>> import cantus
    >>> cantus.array([1.5, 2.5])
    array([1.5, 2.5], dtype=float32)
    """
    return asarray(obj, dtype=dtype, device=device, copy=True)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """Imports another library's array, in place where its memory is the host's or a CUDA or ROCm device's, is contiguous, and begins at a multiple
    of 16 bytes; otherwise copies it. That memory is kept, and must not be written to, while the array lives. On a GPU the host does not wait: the
    device's stream waits for the other library's.

    >>> import cantus, numpy as np
    >>> cantus.from_dlpack(np.arange(3.0))
    array([0., 1., 2.])
    """
    if isinstance(x, Array):
        return asarray(x, device=device, copy=bool(copy))
    kind, place = map(int, x.__dlpack_device__())
    arguments: dict[str, Any] = {"max_version": (1, 1)}
    shared = None if copy else _sharing(kind, place, device)
    if shared is not None:
        arguments["stream"] = shared[1]
    elif kind not in (1, 3, 11):
        if copy is False:
            raise BufferError("the array is on a device whose memory is not the host's (copy=None copies it)")
        arguments |= {"dl_device": (1, 0), "copy": True}
    try:
        capsule = x.__dlpack__(**arguments)
    except TypeError:
        # Before DLPack 1.0.
        capsule = x.__dlpack__(**({"stream": shared[1]} if shared else {}))
    name, shape, strides, address, where, owner = _core.Lazy.imported(capsule)
    dtype = _dtypes.BY_CORE[name]
    count = math.prod(shape)
    if where is not None and (shared is None or where != (kind, place)):
        raise BufferError(f"the array is on DLPack's device {where}, not the requested one")
    target = shared[0] if where is not None and shared else _devices.device(device) if device is not None else _host()
    expected: list[int] = []
    step = 1
    for side in reversed(shape):
        expected.insert(0, step)
        step *= side
    contiguous = strides is None or builtins.all(
        side == 1 or have == want for side, have, want in zip(shape, strides, expected, strict=True)
    )
    nbytes = count * dtype.itemsize
    if count == 0:
        return filled(shape, 0, dtype, target)
    if where is not None:
        if contiguous:
            return wrap(target.engine.adopted_from_driver(name, shape, address, nbytes, owner), target)
        if copy is False:
            raise BufferError("the array is not contiguous (copy=None copies it)")
        return from_dlpack(x, device=target, copy=True)
    if contiguous and not copy and target.is_host:
        return wrap(target.engine.adopted(name, shape, address, nbytes, owner), target)
    if copy is False:
        raise BufferError("the array is not contiguous in the host's memory (copy=None copies it)")
    if contiguous:
        return wrap(target.engine.copied(name, shape, address, nbytes), target)
    # NumPy reads strides, of bfloat16 as of any two bytes; the owner lives until the copy is made.
    plain = np.dtype("u2") if dtype is _dtypes.bfloat16 else dtype.numpy
    seen = np.lib.stride_tricks.as_strided(
        _seen(address, plain, _span(shape, strides or expected), owner),
        shape,
        [stride * dtype.itemsize for stride in strides or expected],
    )
    host = np.ascontiguousarray(seen)
    return wrap(target.engine.copied(name, shape, address_of(host), host.nbytes), target)


def _sharing(kind: int, place: int, device: Any) -> tuple[Device, int] | None:
    """The device whose driver owns an array's memory, and its stream; None if the array is copied."""
    backend = {2: "cuda", 10: "hip"}.get(kind)
    if backend is None:
        return None
    try:
        chosen = _devices.device(device if device is not None else f"{backend}:{place}")
    except RuntimeError:
        return None
    driver = chosen.engine.driver()
    return (chosen, driver[2]) if driver is not None and driver[:2] == (kind, place) else None


def _span(shape: Sequence[int], strides: Sequence[int]) -> int:
    if builtins.any(stride < 0 for stride in strides):
        raise BufferError("negative strides are not supported (make a contiguous copy first)")
    return 1 + builtins.sum((side - 1) * stride for side, stride in zip(shape, strides, strict=True))


class _Interface:
    def __init__(self, interface: dict[str, Any], owner: Any) -> None:
        self.__array_interface__ = interface
        self.owner = owner


def _seen(address: int, dtype: Any, count: int, owner: Any) -> Any:
    interface = {"data": (address, True), "shape": (count,), "typestr": dtype.str, "version": 3}
    return np.asarray(_Interface(interface, owner))


def _host() -> Device:
    """The CPU, where the default device is another."""
    default = _devices.default()
    return default if default.is_host else _devices.device("cpu")


def _sides(shape: Any) -> tuple[int, ...]:
    return (int(shape),) if not isinstance(shape, tuple | list) else tuple(int(side) for side in shape)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """Creates an array filled with one value.

    >>> import cantus
    >>> cantus.full((2, 2), 7)
    array([[7, 7],
           [7, 7]])
    """
    target = _devices.device(device)
    if isinstance(fill_value, Array | np.ndarray | list | tuple):
        if np.ndim(fill_value):
            return broadcast_to(asarray(fill_value, dtype=dtype, device=target), shape)
        fill_value = fill_value.item()  # type: ignore[union-attr]
    if isinstance(fill_value, np.generic):
        fill_value = fill_value.item()
    if dtype is None:
        kind = {bool: "b", int: "i", float: "f", complex: "c"}.get(type(fill_value))
        if kind is None:
            raise TypeError(f"full: fill_value is a number, not {type(fill_value).__name__}")
        dtype = _default(kind, target)
    return filled(_sides(shape), fill_value, _dtypes.of(dtype), target)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """Creates zeros; float32 by default.

    >>> import cantus
    >>> cantus.zeros(3)
    array([0., 0., 0.], dtype=float32)
    """
    return full(shape, 0, dtype=dtype or _dtypes.float32, device=device)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """Creates ones; float32 by default.

    >>> import cantus
    >>> cantus.ones(3)
    array([1., 1., 1.], dtype=float32)
    """
    return full(shape, 1, dtype=dtype or _dtypes.float32, device=device)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """Creates zeros; it never returns uninitialised memory.

    >>> import cantus
    >>> cantus.empty((2,)).shape
    (2,)
    """
    return zeros(shape, dtype=dtype, device=device)


def full_like(x: Array, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """Creates an array filled with one value, in the shape, dtype and device of `x`.

    >>> import cantus
    >>> cantus.full_like(cantus.ones(2), 7)
    array([7., 7.], dtype=float32)
    """
    return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device or x._device)


def zeros_like(x: Array, /, *, dtype: Any = None, device: Any = None) -> Array:
    """Creates zeros in the shape, dtype and device of `x`.

    >>> import cantus
    >>> cantus.zeros_like(cantus.ones(2))
    array([0., 0.], dtype=float32)
    """
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(x: Array, /, *, dtype: Any = None, device: Any = None) -> Array:
    """Creates ones in the shape, dtype and device of `x`.

    >>> import cantus
    >>> cantus.ones_like(cantus.zeros(2))
    array([1., 1.], dtype=float32)
    """
    return full_like(x, 1, dtype=dtype, device=device)


def empty_like(x: Array, /, *, dtype: Any = None, device: Any = None) -> Array:
    """Creates zeros in the shape, dtype and device of `x`.

    >>> import cantus
    >>> cantus.empty_like(cantus.ones(2)).dtype
    cantus.float32
    """
    return full_like(x, 0, dtype=dtype, device=device)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Array:
    """Creates numbers from `start` (0 if only one number is given) in steps of `step`, below `stop`.

    >>> import cantus
    >>> cantus.arange(3), cantus.arange(1, 2, 0.25)
    (array([0, 1, 2]), array([1.  , 1.25, 1.5 , 1.75], dtype=float32))
    """
    if stop is None:
        start, stop = 0, start
    target = _devices.device(device)
    if dtype is None:
        whole = builtins.all(isinstance(value, int) for value in (start, stop, step))
        dtype = default_int(target) if whole else _dtypes.float32
    kind = _dtypes.of(dtype)
    if kind.kind in "iu" and builtins.max(builtins.abs(value) for value in (start, stop, step)) > 2**53:
        return asarray(np.arange(start, stop, step, dtype=kind.numpy), device=target)
    if kind.kind == "c" or kind.itemsize < 4:
        wide = _dtypes.real_of(kind) if kind.kind == "c" else _dtypes.int32 if kind.kind in "iu" else _dtypes.float32
        return arange(start, stop, step, dtype=wide, device=target).astype(kind)
    if kind.kind in "iu" and not builtins.all(isinstance(value, int) for value in (start, stop, step)):
        return asarray(np.arange(start, stop, step, dtype=kind.numpy), device=target)
    return wrap(target.engine.make("arange", [], [float(start), float(stop), float(step)], kind.core), target)


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> Array:
    """Creates `num` evenly spaced numbers from `start` to `stop`, with `stop` or without.

    >>> import cantus
    >>> cantus.linspace(0, 1, 5)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    target = _devices.device(device)
    if dtype is None:
        is_complex = isinstance(start, complex) or isinstance(stop, complex)
        dtype = _dtypes.complex64 if is_complex else _dtypes.float32
    kind = _dtypes.of(dtype)
    if kind.kind in "iub":
        return asarray(np.linspace(start, stop, num, endpoint=endpoint, dtype=kind.numpy), device=target)
    if kind.kind == "c":
        part = _dtypes.real_of(kind)
        parts = [
            linspace(getattr(complex(start), of), getattr(complex(stop), of), num, dtype=part, endpoint=endpoint, device=target)
            for of in ("real", "imag")
        ]
        return wrap(parts[0]._x.binary("complex", parts[1]._x), target)
    if not endpoint:
        return linspace(start, stop, num + 1, dtype=kind, device=target)[:num] if num else zeros(0, dtype=kind, device=target)
    start, stop = float(start), float(stop)
    if builtins.abs(stop / 2 - start / 2) > finfo(kind).max / 2 and math.isfinite(start) and math.isfinite(stop):
        # The difference of the ends has no number: half of it has.
        return linspace(start / 2, stop / 2, num, dtype=kind, device=target) * 2
    return wrap(target.engine.make("linspace", [num], [start, stop], kind.core), target)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Array:
    """Creates a matrix of zeros with ones on the diagonal that begins `k` columns to the right.

    >>> import cantus
    >>> cantus.eye(2)
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    target = _devices.device(device)
    core = _dtypes.of(dtype or _dtypes.float32).core
    engine = target.engine
    key = (n_rows, n_cols, k, core, target.name)
    owner, known = _EYES.get(key, (None, None))
    if known is None or owner is not engine:
        sides = [n_rows, n_rows if n_cols is None else n_cols, builtins.max(-(2**30), builtins.min(k, 2**30))]
        known = engine.make("eye", sides, [], core)
        if sides[0] * sides[1] <= _SMALL:
            if len(_EYES) >= _FEW:
                _EYES.clear()
            _EYES[key] = (engine, known)
    return wrap(known, target)


# Small matrices that loops ask for at each step: arrays do not change. Those of another process are not for this one.
_EYES: dict[Any, tuple[_core.Engine, _core.Lazy]] = {}
_SMALL, _FEW = 1 << 12, 16
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_EYES.clear)


def meshgrid(*arrays: Array, indexing: str = "xy") -> list[Array]:
    """Returns the coordinates of a grid: each array varies along its own axis and is broadcast to the others.

    >>> import cantus
    >>> [one.shape for one in cantus.meshgrid(cantus.arange(3), cantus.arange(2))]
    [(2, 3), (2, 3)]
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing is 'xy' or 'ij', not {indexing!r}")
    if not arrays:
        return []
    result_type(*arrays)
    rank = len(arrays)
    turned = [1, 0, *range(2, rank)] if indexing == "xy" and rank > 1 else list(range(rank))
    shape = [0] * rank
    for place, x in enumerate(arrays):
        shape[turned[place]] = x.size
    results = []
    for place, x in enumerate(arrays):
        sides = [1] * rank
        sides[turned[place]] = x.size
        results.append(call(call(x, "reshape", ints=sides), "broadcast_to", ints=shape))
    return results


def tril(x: Array, /, *, k: int = 0) -> Array:
    """Returns the lower triangles of matrices, with zeros above.

    >>> import cantus
    >>> cantus.tril(cantus.asarray([[1.0, 2.0], [3.0, 4.0]]))
    array([[1., 0.],
           [3., 4.]], dtype=float32)
    """
    return call(x, "tril", ints=[k])


def triu(x: Array, /, *, k: int = 0) -> Array:
    """Returns the upper triangles of matrices, with zeros below.

    >>> import cantus
    >>> cantus.triu(cantus.asarray([[1.0, 2.0], [3.0, 4.0]]), k=1)
    array([[0., 2.],
           [0., 0.]], dtype=float32)
    """
    return call(x, "triu", ints=[k])


# Dtypes.


def astype(x: Array, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Array:
    """Converts the elements to another dtype.

    >>> import cantus
    >>> cantus.astype(cantus.asarray([1.7]), cantus.int32)
    array([1], dtype=int32)
    """
    return x.astype(dtype, copy=copy, device=device)


def can_cast(from_: Any, to: Any, /) -> bool:
    """Returns whether promotion turns a dtype (or an array's) into another.

    >>> import cantus
    >>> cantus.can_cast(cantus.int8, cantus.int16), cantus.can_cast(cantus.float64, cantus.float32)
    (True, False)
    """
    source = from_.dtype if isinstance(from_, Array) else _dtypes.of(from_)
    target = _dtypes.of(to)
    try:
        return _dtypes.promote(source, target) is target
    except TypeError:
        return False


class finfo:
    """Returns the limits of a float dtype.

    >>> import cantus
    >>> cantus.finfo(cantus.float32).bits
    32
    """

    def __init__(self, kind: Any, /) -> None:
        dtype = _dtypes.real_of(kind.dtype if isinstance(kind, Array) else _dtypes.of(kind))
        if dtype.kind != "f":
            raise TypeError(f"finfo needs a float dtype, not {dtype} (use iinfo)")
        self.dtype = dtype
        self.bits = 8 * dtype.itemsize
        if dtype is _dtypes.bfloat16:
            # Of float32's range, with 8 bits of the significand.
            self.eps, self.smallest_normal, self.max = 2.0**-7, 2.0**-126, (2 - 2.0**-7) * 2.0**127
        else:
            known = np.finfo(dtype.numpy)
            self.eps, self.smallest_normal, self.max = float(known.eps), float(known.smallest_normal), float(known.max)
        self.min = -self.max


class iinfo:
    """Returns the limits of an integer dtype.

    >>> import cantus
    >>> cantus.iinfo(cantus.int8).max
    127
    """

    def __init__(self, kind: Any, /) -> None:
        dtype = kind.dtype if isinstance(kind, Array) else _dtypes.of(kind)
        if dtype.kind not in "iu":
            raise TypeError(f"iinfo needs an integer dtype, not {dtype} (use finfo)")
        known = np.iinfo(dtype.numpy)
        self.dtype = dtype
        self.bits = known.bits
        self.max = int(known.max)
        self.min = int(known.min)


_KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


def isdtype(dtype: Any, kind: Any) -> bool:
    """Returns whether a dtype equals another, or is of a kind (`"integral"`), or any of several.

    >>> import cantus
    >>> cantus.isdtype(cantus.int8, "integral")
    True
    """
    if isinstance(kind, tuple):
        return builtins.any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str) and kind not in _dtypes.BY_NAME or kind == "bool":
        if kind not in _KINDS:
            raise ValueError(f"there is no kind {kind!r} of dtypes (there are {', '.join(_KINDS)})")
        return _dtypes.of(dtype).kind in _KINDS[kind]
    return _dtypes.of(dtype) is _dtypes.of(kind)


def result_type(*arrays_and_dtypes: Any) -> DType:
    """Returns the dtype that arrays, dtypes and numbers are promoted to.

    >>> import cantus
    >>> cantus.result_type(cantus.int8, cantus.uint8)
    cantus.int16
    """
    found: DType | None = None
    numbers = []
    for one in arrays_and_dtypes:
        if isinstance(one, bool | int | float | complex) and not isinstance(one, np.generic):
            numbers.append(one)
            continue
        dtype = one.dtype if isinstance(one, Array) else _dtypes.of(one.dtype if isinstance(one, np.generic | np.ndarray) else one)
        found = dtype if found is None else _dtypes.promote(found, dtype)
    if found is None:
        raise ValueError("at least one of them must be an array or a dtype")
    from ._array import scalar_dtype

    for one in numbers:
        found = scalar_dtype(one, found, _devices.default())
    return found


# Functions of elements.


def _pair(x: Any, y: Any) -> tuple[Array, Any, bool]:
    """An array, the other operand, and whether the array is the second of the two."""
    if isinstance(x, Array):
        return x, _operand(y, x), False
    if isinstance(y, Array):
        return y, _operand(x, y), True
    return asarray(x), _operand(y, None), False


def _operand(x: Any, beside: Array | None) -> Any:
    """Lists as arrays: numbers and NumPy's arrays are operands already."""
    return _arguments.array(x, "an operand", beside) if isinstance(x, list | tuple) else x


def _two(op: str, x: Any, y: Any) -> Array:
    first, second, reflected = _pair(x, y)
    result = binary(op, first, second, reflected)
    if result is NotImplemented:
        raise TypeError(f"{op} of an array and {type(second).__name__}")
    return result


def _one(op: str, x: Array) -> Array:
    return (x if isinstance(x, Array) else _arguments.array(x, op, None))._unary(op)


def _floating(op: str, x: Array) -> Array:
    """A function of floats; integers become the default float."""
    if not isinstance(x, Array):
        x = _arguments.array(x, op, None)
    found = x._of_floats(op)
    if found is not None:
        return found
    if x.dtype.kind in "iub":
        x = x.astype(_dtypes.float64 if x._device.has(_dtypes.float64) else _dtypes.float32)
    return _one(op, x)


def _single(op: str, x: Array) -> Array:
    """A function of float32; integers become it."""
    if not isinstance(x, Array):
        x = _arguments.array(x, op, None)
    return _one(op, x.astype(_dtypes.float32) if x.dtype.kind in "iub" else x)


def divide(x1: Any, x2: Any, /) -> Array:
    """Divides x1 by x2; integers become floats.

    >>> import cantus
    >>> cantus.divide(cantus.asarray([1.0, 3.0]), cantus.asarray([2.0, 2.0]))
    array([0.5, 1.5], dtype=float32)
    """
    first, second, reflected = _pair(x1, x2)
    return divided(first, second, reflected)


def floor_divide(x1: Any, x2: Any, /) -> Array:
    """Divides x1 by x2 and rounds down.

    >>> import cantus
    >>> cantus.floor_divide(cantus.asarray([7, -7]), cantus.asarray([2, 2]))
    array([ 3, -4])
    """
    first, second, reflected = _pair(x1, x2)
    return floor_divided(first, second, reflected)


def pow(x1: Any, x2: Any, /) -> Array:
    """Raises x1 to the power of x2.

    >>> import cantus
    >>> cantus.pow(cantus.asarray([2.0, 3.0]), cantus.asarray([3.0, 2.0]))
    array([8., 9.], dtype=float32)
    """
    first, second, reflected = _pair(x1, x2)
    return power(first, second, reflected)


def positive(x: Array, /) -> Array:
    """Returns x.

    >>> import cantus
    >>> cantus.positive(cantus.asarray([1, 2]))
    array([1, 2])
    """
    return +x


def negative(x: Array, /) -> Array:
    """Returns -x; unsigned integers wrap.

    >>> import cantus
    >>> cantus.negative(cantus.asarray([1, -2]))
    array([-1,  2])
    """
    return -x


def signbit(x: Array, /) -> Array:
    """True where the sign bit is set, -0 included.

    >>> import cantus
    >>> cantus.signbit(cantus.asarray([-0.0, 1.0]))
    array([ True, False])
    """
    one = wrap(filled((), 1, x.dtype, x._device)._x.binary("copysign", x._x), x._device)
    return one < 0


def _class_of(op: str, otherwise: bool, x: Array) -> Array:
    if x.dtype.kind in "iub":
        return filled(x.shape, otherwise, _dtypes.bool_, x._device)
    if x.dtype.kind == "c":
        re, im = _one(op, x.real), _one(op, x.imag)
        return re & im if otherwise else re | im
    return _one(op, x)


def isnan(x: Array, /) -> Array:
    """True where x, or a part of a complex x, is NaN.

    >>> import cantus
    >>> cantus.isnan(cantus.asarray([1.0, float('nan')]))
    array([False,  True])
    """
    return _class_of("is_nan", False, x)


def isinf(x: Array, /) -> Array:
    """True where x, or a part of a complex x, is infinite.

    >>> import cantus
    >>> cantus.isinf(cantus.asarray([1.0, float('inf')]))
    array([False,  True])
    """
    return _class_of("is_infinite", False, x)


def isfinite(x: Array, /) -> Array:
    """True where x is neither NaN nor infinite.

    >>> import cantus
    >>> cantus.isfinite(cantus.asarray([1.0, float('inf')]))
    array([ True, False])
    """
    return _class_of("is_finite", True, x)


def round(x: Array, /) -> Array:
    """Rounds to the nearest whole number, half to even.

    >>> import cantus
    >>> cantus.round(cantus.asarray([0.5, 1.5, 2.4]))
    array([0., 2., 2.], dtype=float32)
    """
    if x.dtype.kind == "c":
        return wrap(x._x.unary("real").unary("round").binary("complex", x._x.unary("imag").unary("round")), x._device)
    return _one("round", x)


def clip(x: Array, /, min: Any = None, max: Any = None) -> Array:
    """Limits x to a range, whose ends may be arrays; NaN stays.

    >>> import cantus
    >>> cantus.clip(cantus.asarray([-1.0, 0.5, 2.0]), 0.0, 1.0)
    array([0. , 0.5, 1. ], dtype=float32)
    """
    result = x
    for limit, op in ((min, "maximum"), (max, "minimum")):
        if limit is None:
            continue
        result = _two(op, result, limit)
    return result if result is not x else +x


@overload
def where(condition: Array, /) -> tuple[Array, ...]: ...
@overload
def where(condition: Array, x1: Any, x2: Any, /) -> Array: ...
def where(condition: Array, x1: Any = None, x2: Any = None, /) -> Any:
    """x1 where the condition is true, x2 elsewhere; without both the places where it is true, as `nonzero`.

    >>> import cantus
    >>> x = cantus.asarray([1.0, -2.0])
    >>> cantus.where(x > 0, x, 0.0)
    array([1., 0.], dtype=float32)
    """
    if x1 is None or x2 is None:
        if x1 is not x2:
            raise ValueError("where takes both x1 and x2, or none of them")
        return nonzero(condition)
    if not isinstance(x1, Array):
        x1 = number(x1, x2) if isinstance(x2, Array) else asarray(x1, device=condition._device)
    if not isinstance(x2, Array):
        x2 = number(x2, x1)
    if x1._kind != x2._kind:
        x1, x2 = _alike([x1, x2])
    if condition.dtype is not _dtypes.bool_:
        condition = condition.astype(_dtypes.bool_)
    return condition._call("select", (x1, x2), (), ())


# Indices.


def _axis(axis: int, rank: int) -> int:
    if type(axis) is int and 0 <= axis < rank:
        # What programs ask for most.
        return axis
    axis = operator.index(axis)
    if not -rank <= axis < builtins.max(rank, 1):
        raise np.exceptions.AxisError(f"there is no axis {axis} (there are {rank})")
    return axis % builtins.max(rank, 1)


def take(x: Array, indices: Any, /, axis: int | None = None) -> Array:
    """Returns the elements at these places along an axis.

    >>> import cantus
    >>> cantus.take(cantus.asarray([10, 20, 30]), cantus.asarray([2, 0]))
    array([30, 10])
    """
    if axis is None:
        if x.ndim != 1:
            raise ValueError("axis is needed where there is more than one")
        axis = 0
    axis, shape = _axis(axis, x.ndim), x.shape
    if not shape:
        x, shape = reshape(x, (1,)), (1,)
    if shape[axis] == 0 and indices.size:
        raise IndexError(f"axis {axis} has no elements")
    if 0 in shape or 0 in indices.shape:
        return filled((*shape[:axis], *indices.shape, *shape[axis + 1 :]), 0, x.dtype, x._device)
    return x._call("take", (within(indices, shape[axis], f"axis {axis}"),), (axis,), ())


def take_along_axis(x: Array, indices: Any, /, axis: int = -1) -> Array:
    """Returns the elements at places along an axis, with a list of places for each row; the other axes broadcast.

    >>> import cantus
    >>> cantus.take_along_axis(cantus.asarray([[5, 7]]), cantus.asarray([[1, 0]]))
    array([[7, 5]])
    """
    axis = _axis(axis, x.ndim)
    shape = list(np.broadcast_shapes(*(
        tuple(1 if place == axis else side for place, side in enumerate(of.shape)) for of in (x, indices)
    )))
    sides = [[of.shape[axis] if place == axis else side for place, side in enumerate(shape)] for of in (x, indices)]
    if x.shape[axis] == 0 and 0 not in sides[1]:
        raise IndexError(f"axis {axis} has no elements")
    if 0 in sides[0] or 0 in sides[1]:
        return filled(sides[1], 0, x.dtype, x._device)
    places = call(within(indices, x.shape[axis], f"axis {axis}"), "broadcast_to", ints=sides[1])
    return call(call(x, "broadcast_to", ints=sides[0]), "gather", [places], [axis])


# Shapes.


def broadcast_arrays(*arrays: Array) -> list[Array]:
    """Broadcasts all arrays to their common shape.

    >>> import cantus
    >>> [one.shape for one in cantus.broadcast_arrays(cantus.ones((3, 1)), cantus.ones(2))]
    [(3, 2), (3, 2)]
    """
    shape = np.broadcast_shapes(*(x.shape for x in arrays))
    return [broadcast_to(x, shape) for x in arrays]


def broadcast_to(x: Array, /, shape: Any) -> Array:
    """Repeats x along axes of length 1, without a copy.

    >>> import cantus
    >>> cantus.broadcast_to(cantus.asarray([1, 2]), (2, 2))
    array([[1, 2],
           [1, 2]])
    """
    return call(x, "broadcast_to", ints=_sides(shape))


def concat(arrays: Sequence[Array], /, axis: int | None = 0) -> Array:
    """Joins arrays along an axis; flattens them for None.

    >>> import cantus
    >>> cantus.concat([cantus.asarray([1, 2]), cantus.asarray([3])])
    array([1, 2, 3])
    """
    if axis is None:
        arrays, axis = [reshape(x, (-1,)) for x in arrays], 0
    first, *others = _alike(arrays)
    return call(first, "concat", others, [axis])


def _alike(arrays: Sequence[Array]) -> list[Array]:
    """Converts all to the dtype that holds the elements of each."""
    first, *others = arrays
    kind = first._kind
    for x in others:
        if x._kind != kind:
            break
    else:
        return [first, *others]
    dtype = common(*arrays)
    return [x.astype(dtype, copy=False) for x in arrays]


def stack(arrays: Sequence[Array], /, axis: int = 0) -> Array:
    """Joins arrays along a new axis.

    >>> import cantus
    >>> cantus.stack([cantus.arange(2), cantus.arange(2)]).shape
    (2, 2)
    """
    first, *others = _alike(arrays)
    return call(first, "stack", others, [axis])


def unstack(x: Array, /, axis: int = 0) -> tuple[Array, ...]:
    """Returns the parts along an axis, without that axis.

    >>> import cantus
    >>> cantus.unstack(cantus.asarray([[1, 2], [3, 4]]))[1]
    array([3, 4])
    """
    return tuple(moveaxis(x, axis, 0))


def expand_dims(x: Array, /, axis: int | tuple[int, ...] = 0) -> Array:
    """Inserts an axis of length 1, or several, counted in the result.

    >>> import cantus
    >>> cantus.expand_dims(cantus.arange(2), axis=1).shape
    (2, 1)
    """
    axes = (axis,) if isinstance(axis, int) else axis
    rank = x.ndim + len(axes)
    places = {_axis(one, rank) for one in axes}
    if len(places) != len(axes):
        raise ValueError(f"an axis stands twice in {axis}")
    sides = iter(x.shape)
    return call(x, "reshape", ints=[1 if place in places else next(sides) for place in range(rank)])


def squeeze(x: Array, /, axis: Axes = None) -> Array:
    """Removes axes of length 1, all of them for None.

    >>> import cantus
    >>> cantus.squeeze(cantus.ones((1, 2)), axis=0).shape
    (2,)
    """
    if axis is None:
        axis = tuple(place for place, side in enumerate(x.shape) if side == 1)
    axes = {_axis(one, x.ndim) for one in ((axis,) if isinstance(axis, int) else axis)}
    for one in axes:
        if x.shape[one] != 1:
            raise ValueError(f"axis {one} has {x.shape[one]} elements, not 1")
    return call(x, "reshape", ints=[side for place, side in enumerate(x.shape) if place not in axes])


def flip(x: Array, /, axis: Axes = None) -> Array:
    """Reverses the elements along axes; along all for None.

    >>> import cantus
    >>> cantus.flip(cantus.arange(3))
    array([2, 1, 0])
    """
    wanted = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    axes = [_axis(one, x.ndim) for one in wanted]
    return call(x, "flip", ints=axes) if axes else +x


def moveaxis(x: Array, source: Any, destination: Any, /) -> Array:
    """Moves axes to other places; the others stay in order.

    >>> import cantus
    >>> cantus.moveaxis(cantus.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    sources = [_axis(one, x.ndim) for one in ([source] if isinstance(source, int) else source)]
    targets = [_axis(one, x.ndim) for one in ([destination] if isinstance(destination, int) else destination)]
    if len(sources) != len(targets) or len(set(sources)) != len(sources) or len(set(targets)) != len(targets):
        raise ValueError("source and destination must have the same number of axes, each once")
    order = [axis for axis in range(x.ndim) if axis not in sources]
    for target, axis in sorted(zip(targets, sources, strict=True)):
        order.insert(target, axis)
    return call(x, "permute", ints=order)


def permute_dims(x: Array, /, axes: tuple[int, ...]) -> Array:
    """Reorders the axes.

    >>> import cantus
    >>> cantus.permute_dims(cantus.ones((2, 3)), (1, 0)).shape
    (3, 2)
    """
    return call(x, "permute", ints=list(axes))


def repeat(x: Array, repeats: Any, /, axis: int | None = None) -> Array:
    """Repeats each element, by one number for all or one for each.

    >>> import cantus
    >>> cantus.repeat(cantus.asarray([1, 2]), 2)
    array([1, 1, 2, 2])
    """
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    axis = _axis(axis, x.ndim)
    if np.ndim(repeats) == 0:
        repeats = _arguments.count(repeats, "repeat: repeats")
        if x.size == 0 or repeats == 0:
            return filled((*x.shape[:axis], x.shape[axis] * repeats, *x.shape[axis + 1 :]), 0, x.dtype, x._device)
        return call(x, "repeat", ints=[repeats, axis])
    counts = np.broadcast_to(np.asarray(repeats), (x.shape[axis],))
    if counts.dtype.kind not in "iu" or (counts < 0).any():
        raise (TypeError if counts.dtype.kind not in "iu" else ValueError)("repeat: repeats counts elements: whole numbers, none of them negative")
    return take(x, asarray(np.repeat(np.arange(x.shape[axis]), counts), device=x._device), axis=axis)


def reshape(x: Array, /, shape: Any, *, copy: bool | None = None) -> Array:
    """Changes the shape; one length may be -1.

    >>> import cantus
    >>> cantus.reshape(cantus.arange(6), (2, -1)).shape
    (2, 3)
    """
    sides = list(_sides(shape))
    if -1 in sides:
        rest = math.prod(side for side in sides if side != -1)
        if sides.count(-1) > 1 or rest == 0 or x.size % rest:
            raise ValueError(f"{x.size} elements cannot have the shape {tuple(sides)}")
        sides[sides.index(-1)] = x.size // rest
    return call(x, "reshape", ints=sides)


def roll(x: Array, /, shift: Any, axis: Axes = None) -> Array:
    """Moves elements along axes; those that leave at one end enter at the other.

    >>> import cantus
    >>> cantus.roll(cantus.arange(4), 1)
    array([3, 0, 1, 2])
    """
    if axis is None:
        return reshape(roll(reshape(x, (-1,)), shift, axis=0), x.shape)
    shape = x.shape
    if type(axis) is int and type(shift) is int and 0 not in shape:
        axis = _axis(axis, len(shape))
        return x._call("roll", (), (shift % shape[axis] if shape else 0, axis), ())
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    shifts = (shift,) * len(axes) if isinstance(shift, int) else tuple(shift)
    rolled = x
    for one, by in zip(axes, shifts, strict=True):
        one = _axis(one, len(shape))
        if 0 not in shape:
            rolled = call(rolled, "roll", ints=[by % shape[one], one])
    return +x if rolled is x else rolled


def tile(x: Array, repetitions: tuple[int, ...], /) -> Array:
    """Places copies side by side.

    >>> import cantus
    >>> cantus.tile(cantus.asarray([1, 2]), (2,))
    array([1, 2, 1, 2])
    """
    rank = builtins.max(x.ndim, len(repetitions))
    times = [1] * (rank - len(repetitions)) + list(repetitions)
    wide = call(x, "reshape", ints=[1] * (rank - x.ndim) + list(x.shape))
    shape = [side * time for side, time in zip(wide.shape, times, strict=True)]
    return filled(shape, 0, x.dtype, x._device) if 0 in shape else call(wide, "tile", ints=times)


# Reductions.


def _axes(axis: Axes, rank: int) -> list[int] | None:
    """Returns the axes to reduce; None if there are none."""
    if axis is None:
        return list(range(rank))
    axes = [_axis(one, rank) for one in ((axis,) if isinstance(axis, int) else axis)]
    if len(set(axes)) != len(axes):
        raise ValueError(f"an axis stands twice in {axis}")
    return axes


def _reduced(op: str, x: Array, axis: Axes, keepdims: bool, floats: Any = ()) -> Array:
    rank = x.ndim
    if type(axis) is int and -rank <= axis < rank:
        # What programs ask for most.
        return x._call(op, (), (int(keepdims), axis % rank), floats)
    if axis is None and rank:
        # No axes are all of them.
        return x._call(op, (), (int(keepdims),), floats)
    axes = _axes(axis, rank)
    if not axes:
        if x.ndim and axis == ():
            # Each element by itself: as an axis of one.
            return call(call(x, "reshape", ints=[*x.shape, 1]), op, ints=[0, x.ndim], floats=floats)
        return call(call(x, "reshape", ints=[1]), op, ints=[0, 0], floats=floats)
    return call(x, op, ints=[int(keepdims), *axes], floats=floats)


def _summed(x: Array, dtype: Any) -> Array:
    """Converts to the dtype of sums."""
    if dtype is not None:
        return x.astype(dtype, copy=False)
    if x.dtype.kind in "ib":
        return x.astype(default_int(x._device), copy=False) if x.dtype.itemsize < 8 else x
    if x.dtype.kind == "u":
        return x.astype(_dtypes.uint64 if x._device.has(_dtypes.uint64) else _dtypes.uint32, copy=False)
    return x


def _down_rows(x: Array, axis: Axes) -> Rows | None:
    """Rows by a mask that nobody has looked for, if they are reduced along their first axis."""
    late = x._late
    if type(late) is not Rows:
        return None
    rank = late.x.ndim
    return late if (axis is None and rank == 1) or (type(axis) is int and axis in (0, -rank)) else None


def sum(x: Array, /, axis: Axes = None, *, dtype: Any = None, keepdims: bool = False) -> Array:
    """The sum along axes; all for None. Integers become int64 or uint64.

    >>> import cantus
    >>> cantus.sum(cantus.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    array([4., 6.], dtype=float32)
    """
    rows = _down_rows(x, axis)
    x = x if rows is None else rows.filled()
    if dtype is None and x._kind in ("f32", "f64"):
        # What needs no other dtype: programs ask it often.
        return _reduced("sum", x, axis, keepdims)
    wide = _summed(x, dtype)
    total = _reduced("sum", wide, axis, keepdims)
    return total if total._kind == wide._kind else total.astype(wide.dtype)


def prod(x: Array, /, axis: Axes = None, *, dtype: Any = None, keepdims: bool = False) -> Array:
    """The product along axes; all for None.

    >>> import cantus
    >>> cantus.prod(cantus.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    array([3., 8.], dtype=float32)
    """
    wide = _summed(x, dtype)
    return _reduced("prod", wide, axis, keepdims).astype(wide.dtype, copy=False)


def _extreme(op: str, x: Array, axis: Axes, keepdims: bool) -> Array:
    shape = x.shape
    if 0 in shape and builtins.any(shape[one] == 0 for one in _axes(axis, len(shape)) or []):
        raise ValueError(f"{op} along an axis without elements")
    if x.dtype.kind == "c":
        return _extreme_complex(op, x, axis, keepdims)
    return _reduced(op, x, axis, keepdims)


def _extreme_complex(op: str, x: Array, axis: Axes, keepdims: bool) -> Array:
    """By real parts, and of equal ones by imaginary parts, as NumPy."""
    axes = tuple(_axes(axis, x.ndim) or ())
    re, im = x.real, x.imag
    of = max if op == "max" else min
    real = of(re, axis=axes, keepdims=True)
    among = where(re == real, im, -inf if op == "max" else inf)
    parts = [real, of(among, axis=axes, keepdims=True)]
    lost = any(isnan(re) | isnan(im), axis=axes, keepdims=True)
    parts = [where(lost, nan, part) for part in parts]
    found = wrap(parts[0]._x.binary("complex", parts[1]._x), x._device)
    return found if keepdims else squeeze(found, axes)


def max(x: Array, /, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """The greatest element along axes; NaN if one is.

    >>> import cantus
    >>> cantus.max(cantus.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    array([3., 4.], dtype=float32)
    """
    return _extreme("max", x, axis, keepdims)


def min(x: Array, /, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """The least element along axes; NaN if one is.

    >>> import cantus
    >>> cantus.min(cantus.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    array([1., 2.], dtype=float32)
    """
    return _extreme("min", x, axis, keepdims)


def _floats(x: Array) -> Array:
    if x._kind != "f32" and x.dtype.kind in "iub":
        return x.astype(_dtypes.float64 if x._device.has(_dtypes.float64) else _dtypes.float32)
    return x


def mean(x: Array, /, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """The mean along axes.

    >>> import cantus
    >>> cantus.mean(cantus.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    array([2., 3.], dtype=float32)
    """
    rows = _down_rows(x, axis)
    if rows is None:
        return _reduced("mean", _floats(x), axis, keepdims)
    total = _reduced("sum", _floats(rows.filled()), axis, keepdims)
    of_rows: Array = total / _reduced("count_nonzero", rows.mask, None, False).astype(total.dtype)
    return of_rows


def var(x: Array, /, axis: Axes = None, *, correction: float = 0.0, keepdims: bool = False) -> Array:
    """The variance along axes, over N - correction.

    >>> import cantus
    >>> cantus.var(cantus.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    array([1., 1.], dtype=float32)
    """
    return _reduced("variance", _floats(x), axis, keepdims, [float(correction)])


def std(x: Array, /, axis: Axes = None, *, correction: float = 0.0, keepdims: bool = False) -> Array:
    """The standard deviation along axes, over N - correction.

    >>> import cantus
    >>> cantus.std(cantus.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=1, correction=1).numpy().round(3)
    array([0.707, 0.707], dtype=float32)
    """
    return _reduced("std", _floats(x), axis, keepdims, [float(correction)])


def _made_anew(out: Any) -> None:
    if out is not None:
        raise TypeError("a result is an array of its own: leave out= out")


def any(x: Array, /, axis: Axes = None, *, keepdims: bool = False, out: None = None) -> Array:
    """True where an element along the axes is not 0. `out` is None, which xarray passes on.

    >>> import cantus
    >>> cantus.any(cantus.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    array([ True,  True])
    """
    _made_anew(out)
    return _reduced("any", x, axis, keepdims)


def all(x: Array, /, axis: Axes = None, *, keepdims: bool = False, out: None = None) -> Array:
    """True where no element along the axes is 0. `out` is None, which xarray passes on.

    >>> import cantus
    >>> cantus.all(cantus.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    array([ True,  True])
    """
    _made_anew(out)
    return _reduced("all", x, axis, keepdims)


def count_nonzero(x: Array, /, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """Counts the elements that are not 0.

    >>> import cantus
    >>> cantus.count_nonzero(cantus.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    array([2, 2])
    """
    return _reduced("sum", (x != 0 if x.dtype.kind != "b" else x).astype(default_int(x._device)), axis, keepdims)


def _scanned(op: str, x: Array, axis: int | None, dtype: Any, include_initial: bool, first: int) -> Array:
    if axis is None:
        if x.ndim != 1:
            raise ValueError("axis is needed where there is more than one")
        axis = 0
    axis = _axis(axis, x.ndim)
    wide = _summed(x, dtype)
    result = +wide if 0 in x.shape else wide._call(op, (), (axis,), ())
    if result._kind != wide._kind:
        result = result.astype(wide.dtype)
    if include_initial:
        start = filled([1 if place == axis else side for place, side in enumerate(x.shape)], first, wide.dtype, x._device)
        result = concat([start, result], axis=axis)
    return result


def cumulative_sum(
    x: Array, /, axis: int | None = None, *, dtype: Any = None, include_initial: bool = False
) -> Array:
    """The sum of each element and those before it.

    >>> import cantus
    >>> cantus.cumulative_sum(cantus.asarray([1, 2, 3]))
    array([1, 3, 6])
    """
    return _scanned("cumsum", x, axis, dtype, include_initial, 0)


def cumulative_prod(
    x: Array, /, axis: int | None = None, *, dtype: Any = None, include_initial: bool = False
) -> Array:
    """The product of each element and those before it.

    >>> import cantus
    >>> cantus.cumulative_prod(cantus.asarray([1, 2, 3]))
    array([1, 2, 6])
    """
    return _scanned("cumprod", x, axis, dtype, include_initial, 1)


def diff(x: Array, /, *, axis: int = -1, n: int = 1, prepend: Array | None = None, append: Array | None = None) -> Array:
    """The differences of neighbours, n times.

    >>> import cantus
    >>> cantus.diff(cantus.asarray([1, 4, 9]))
    array([3, 5])
    """
    axis = _axis(axis, x.ndim)
    parts = [part for part in (prepend, x, append) if part is not None]
    if len(parts) > 1:
        x = concat(parts, axis=axis)
    for _ in range(n):
        side = x.shape[axis]
        key = (slice(None),) * axis
        if side < 2:
            return x[(*key, slice(0, 0))]
        later, earlier = x[(*key, slice(1, None))], x[(*key, slice(None, -1))]
        x = later != earlier if x.dtype.kind == "b" else later - earlier
    return x


# Searches, order and sets.


def _index_of(op: str, x: Array, axis: int | None, keepdims: bool) -> Array:
    if 0 in x.shape and (axis is None or x.shape[_axis(axis, x.ndim)] == 0):
        raise ValueError(f"{op} along an axis without elements")
    if x.dtype.kind == "c":
        # The first that is equal to the extreme one; NaN is the extreme.
        if axis is None:
            flat = reshape(x, (-1,))
            found = _index_of(op, flat, 0, False)
            return reshape(found, (1,) * x.ndim) if keepdims else found
        least = _extreme_complex("max" if op == "argmax" else "min", x, axis, True)
        return _index_of("argmax", (x == least) | (isnan(x) & isnan(least)), axis, keepdims)
    if axis is None:
        flat = call(call(x, "reshape", ints=[x.size]), op, ints=[0, 0])
        flat = call(flat, "reshape", ints=[1] * x.ndim if keepdims else [])
        return flat.astype(default_int(x._device))
    return x._call(op, (), (int(keepdims), _axis(axis, x.ndim)), ())._cast(default_int(x._device).core)


def argmax(x: Array, /, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """The place of the first greatest element.

    >>> import cantus
    >>> cantus.argmax(cantus.asarray([1, 5, 3]))
    array(1)
    """
    return _index_of("argmax", x, axis, keepdims)


def argmin(x: Array, /, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """The place of the first least element.

    >>> import cantus
    >>> cantus.argmin(cantus.asarray([4, 1, 3]))
    array(1)
    """
    return _index_of("argmin", x, axis, keepdims)


def nonzero(x: Array, /) -> tuple[Array, ...]:
    """The places of elements that are not 0, an array for each axis.

    >>> import cantus
    >>> cantus.nonzero(cantus.asarray([0, 7, 0, 8]))
    (array([1, 3]),)
    """
    if x.ndim == 0:
        raise ValueError("nonzero needs at least one axis")
    from ._indexing import _places

    return tuple(places.astype(default_int(x._device)) for places in _places(x if x.dtype.kind != "c" else x != 0))


def searchsorted(x1: Array, x2: Any, /, *, side: str = "left", sorter: Array | None = None) -> Array:
    """Returns, for each element of x2, the place in the sorted x1 that keeps the order, before equal elements (left) or after them.

    >>> import cantus
    >>> cantus.searchsorted(cantus.asarray([1, 3, 5]), cantus.asarray([4]))
    array([2])
    """
    if side not in ("left", "right"):
        raise ValueError(f"side is 'left' or 'right', not {side!r}")
    if x1.ndim != 1:
        raise ValueError(f"searchsorted looks in an array of one axis, and this one has {x1.ndim}")
    values = x2 if isinstance(x2, Array) else number(x2, x1)
    dtype = common(x1, values)
    row = take(x1, sorter, axis=0) if sorter is not None else x1
    flat = call(values, "reshape", ints=[values.size]).astype(dtype, copy=False)
    found = call(row.astype(dtype, copy=False), "searchsorted", [flat], [int(side == "right")])
    return call(found, "reshape", ints=values.shape).astype(default_int(x1._device))


def _keys(x: Array) -> list[Array]:
    """The keys that order complex numbers as NumPy does, the least first: imaginary parts, real parts, and NaN behind all numbers."""
    re, im = x.real, x.imag
    lost = isnan(re).astype(_dtypes.int32) * 2 + isnan(im).astype(_dtypes.int32)
    return [im, re, lost]


def argsort(x: Array, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Array:
    """Returns the places that sort the elements; equal ones keep their order.

    >>> import cantus
    >>> cantus.argsort(cantus.asarray([3, 1, 2]))
    array([1, 2, 0])
    """
    if x.size == 0 or x.ndim == 0:
        return filled(x.shape, 0, default_int(x._device), x._device)
    if x.dtype.kind == "c":
        order: Array | None = None
        for key in _keys(x):
            # Every order is stable: the later key decides.
            moved = key if order is None else take_along_axis(key, order, axis=axis)
            next_order = argsort(moved, axis=axis, descending=descending)
            order = next_order if order is None else take_along_axis(order, next_order, axis=axis)
        assert order is not None
        return order
    return call(x, "argsort", ints=[_axis(axis, x.ndim), int(descending)]).astype(default_int(x._device))


def sort(x: Array, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Array:
    """Sorts the elements along an axis; NaN is last in ascending order.

    >>> import cantus
    >>> cantus.sort(cantus.asarray([3, 1, 2]))
    array([1, 2, 3])
    """
    shape = x.shape
    if not shape or 0 in shape:
        return +x
    if x.dtype.kind == "c":
        return take_along_axis(x, argsort(x, axis=axis, descending=descending), axis=axis)
    return x._call("sort", (), (_axis(axis, len(shape)), int(descending)), ())


class UniqueAll(NamedTuple):
    """Distinct elements, the place of each one's first, each element's place among them, and how often each occurs."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """Distinct elements, and how often each occurs."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """Distinct elements, and each element's place among them."""

    values: Array
    inverse_indices: Array


def _order(flat: Array) -> Array:
    if flat.dtype.kind != "c":
        return call(flat, "argsort", ints=[0, 0])
    by_imag = call(flat.imag, "argsort", ints=[0, 0])
    by_real = call(call(flat.real, "take", [by_imag], [0]), "argsort", ints=[0, 0])
    return call(by_imag, "take", [by_real], [0])


def unique_all(x: Array, /) -> UniqueAll:
    """The distinct elements in order, the place of each one's first, each element's place among them, and how often each occurs. Each NaN is
    distinct.

    >>> import cantus
    >>> cantus.unique_all(cantus.asarray([3, 1, 3])).counts
    array([1, 2])
    """
    whole = default_int(x._device)
    if x.size == 0:
        nothing = filled([0], 0, whole, x._device)
        return UniqueAll(filled([0], 0, x.dtype, x._device), nothing, filled(x.shape, 0, whole, x._device), nothing)
    flat = call(x, "reshape", ints=[x.size])
    order = _order(flat).eval()
    ordered = call(flat, "take", [order], [0]).eval()
    first = filled([1], True, _dtypes.bool_, x._device)
    begins = call(first, "concat", [ordered[1:] != ordered[:-1]], [0]).eval()
    starts = _places_of(begins)
    values = call(ordered, "take", [starts], [0])
    group = call(begins.astype(_dtypes.int32), "cumsum", ints=[0]) - 1
    blank = filled([x.size], 0, _dtypes.int32, x._device)
    inverse = call(call(blank, "scatter", [order, group], [0]), "reshape", ints=x.shape)
    ends = concat([starts.astype(_dtypes.int32)[1:], filled([1], x.size, _dtypes.int32, x._device)])
    counts = ends - starts.astype(_dtypes.int32)
    return UniqueAll(values, call(order, "take", [starts], [0]).astype(whole), inverse.astype(whole), counts.astype(whole))


def _places_of(mask: Array) -> Array:
    from ._indexing import _places

    return _places(mask)[0]


def unique_counts(x: Array, /) -> UniqueCounts:
    """The distinct elements in order, and how often each occurs.

    >>> import cantus
    >>> cantus.unique_counts(cantus.asarray([3, 1, 3])).counts
    array([1, 2])
    """
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Array, /) -> UniqueInverse:
    """The distinct elements in order, and each element's place among them.

    >>> import cantus
    >>> cantus.unique_inverse(cantus.asarray([3, 1, 3])).inverse_indices
    array([1, 0, 1])
    """
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Array, /) -> Array:
    """The distinct elements in order.

    >>> import cantus
    >>> cantus.unique_values(cantus.asarray([2, 1, 2]))
    array([1, 2])
    """
    return unique_all(x).values


# Products.


def matrix_transpose(x: Array, /) -> Array:
    """The last two axes exchanged.

    >>> import cantus
    >>> cantus.matrix_transpose(cantus.asarray([[1.0, 2.0], [3.0, 4.0]]))
    array([[1., 3.],
           [2., 4.]], dtype=float32)
    """
    if x.ndim < 2:
        raise ValueError(f"a matrix needs at least two axes; this array has {x.ndim}")
    return x.mT


def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """The sum of products along an axis, the first conjugated.

    >>> import cantus
    >>> cantus.vecdot(cantus.asarray([1, 2]), cantus.asarray([3, 4]))
    array(11)
    """
    dtype = common(x1, x2)
    rank = builtins.max(x1.ndim, x2.ndim)
    if not -builtins.min(x1.ndim, x2.ndim) <= axis < 0 and rank != builtins.min(x1.ndim, x2.ndim):
        raise ValueError(f"there is no axis {axis} of both")
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"the axes have {x1.shape[axis]} and {x2.shape[axis]} elements")
    first = _one("conj", x1) if x1.dtype.kind == "c" else x1
    product = first.astype(dtype, copy=False) * x2.astype(dtype, copy=False)
    return sum(product, axis=axis, dtype=dtype)


def tensordot(x1: Array, x2: Array, /, *, axes: Any = 2) -> Array:
    """The sum of products over pairs of axes, the last of x1 with the first of x2 for a number.

    >>> import cantus
    >>> cantus.tensordot(cantus.ones((2, 3)), cantus.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    if isinstance(axes, int):
        axes = (list(range(x1.ndim - axes, x1.ndim)), list(range(axes)))
    left = [_axis(one, x1.ndim) for one in axes[0]]
    right = [_axis(one, x2.ndim) for one in axes[1]]
    if [x1.shape[one] for one in left] != [x2.shape[one] for one in right]:
        raise ValueError(f"the axes {axes} of {x1.shape} and {x2.shape} have different lengths")
    rest1 = [one for one in range(x1.ndim) if one not in left]
    rest2 = [one for one in range(x2.ndim) if one not in right]
    inner = math.prod(x1.shape[one] for one in left)
    outer1, outer2 = [x1.shape[one] for one in rest1], [x2.shape[one] for one in rest2]
    a = call(call(x1, "permute", ints=rest1 + left), "reshape", ints=[math.prod(outer1), inner])
    b = call(call(x2, "permute", ints=right + rest2), "reshape", ints=[inner, math.prod(outer2)])
    return call(matmul(a, b), "reshape", ints=outer1 + outer2)


class _Info:
    """The capabilities of the namespace, as the standard has them."""

    def capabilities(self) -> dict[str, Any]:
        """Masks, shapes that depend on values, and the most axes."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """The device of new arrays."""
        return _devices.default()

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """The dtypes that Python's numbers become."""
        target = _devices.device(device)
        whole = default_int(target)
        return {"real floating": _dtypes.float32, "complex floating": _dtypes.complex64, "integral": whole, "indexing": whole}

    def devices(self) -> list[Device]:
        """Every device that can be opened by name."""
        return [_devices.device(row["device"]) for row in _devices.devices() if "name" in row]

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """The dtypes that a device computes with."""
        target = _devices.device(device)
        return {
            dtype.name: dtype
            for dtype in _dtypes.STANDARD
            if target.has(dtype) and (kind is None or isdtype(dtype, kind))
        }


def __array_namespace_info__() -> _Info:
    """Information on the namespace: devices, dtypes, capabilities."""
    return _Info()


def abs(x: Array, /) -> Array:
    """The magnitude.

    >>> import cantus
    >>> cantus.abs(cantus.asarray([-1, 2]))
    array([1, 2])
    """
    return _one("abs", x)


def bitwise_invert(x: Array, /) -> Array:
    """Inverts each bit.

    >>> import cantus
    >>> cantus.bitwise_invert(cantus.asarray([0, 5]))
    array([-1, -6])
    """
    return _one("bitwise_not", x)


def ceil(x: Array, /) -> Array:
    """The least whole number that is not below x.

    >>> import cantus
    >>> cantus.ceil(cantus.asarray([1.2, -1.2]))
    array([ 2., -1.], dtype=float32)
    """
    return _one("ceil", x)


def conj(x: Array, /) -> Array:
    """The conjugate.

    >>> import cantus
    >>> cantus.conj(cantus.asarray([1 + 2j]))
    array([1.-2.j], dtype=complex64)
    """
    return _one("conj", x)


def floor(x: Array, /) -> Array:
    """The greatest whole number that is not above x.

    >>> import cantus
    >>> cantus.floor(cantus.asarray([1.2, -1.2]))
    array([ 1., -2.], dtype=float32)
    """
    return _one("floor", x)


def imag(x: Array, /) -> Array:
    """The imaginary part.

    >>> import cantus
    >>> cantus.imag(cantus.asarray([1 + 2j]))
    array([2.], dtype=float32)
    """
    return _one("imag", x)


def logical_not(x: Array, /) -> Array:
    """True for 0.

    >>> import cantus
    >>> cantus.logical_not(cantus.asarray([True, False]))
    array([False,  True])
    """
    return _one("logical_not", x)


def real(x: Array, /) -> Array:
    """The real part.

    >>> import cantus
    >>> cantus.real(cantus.asarray([1 + 2j]))
    array([1.], dtype=float32)
    """
    return _one("real", x)


def sign(x: Array, /) -> Array:
    """-1, 0 or 1; of a complex number x / |x|.

    >>> import cantus
    >>> cantus.sign(cantus.asarray([-2.0, 0.0, 3.0]))
    array([-1.,  0.,  1.], dtype=float32)
    """
    found = _one("sign", x)
    # The core keeps the sign of zeros.
    return where(x == 0, filled((), 0, x.dtype, x._device), found) if x.dtype.kind == "f" else found


def square(x: Array, /) -> Array:
    """x²

    >>> import cantus
    >>> cantus.square(cantus.asarray([2, 3]))
    array([4, 9])
    """
    return _one("square", x)


def trunc(x: Array, /) -> Array:
    """The whole part, towards 0.

    >>> import cantus
    >>> cantus.trunc(cantus.asarray([1.7, -1.7]))
    array([ 1., -1.], dtype=float32)
    """
    return _one("trunc", x)


def acos(x: Array, /) -> Array:
    """The arc cosine.

    >>> import cantus
    >>> cantus.acos(cantus.asarray([1.0, 0.5])).numpy().round(3)
    array([0.   , 1.047], dtype=float32)
    """
    return _floating("acos", x)


def acosh(x: Array, /) -> Array:
    """The inverse of cosh.

    >>> import cantus
    >>> cantus.acosh(cantus.asarray([1.0, 2.0])).numpy().round(3)
    array([0.   , 1.317], dtype=float32)
    """
    return _floating("acosh", x)


def asin(x: Array, /) -> Array:
    """The arc sine.

    >>> import cantus
    >>> cantus.asin(cantus.asarray([0.0, 1.0])).numpy().round(3)
    array([0.   , 1.571], dtype=float32)
    """
    return _floating("asin", x)


def asinh(x: Array, /) -> Array:
    """The inverse of sinh.

    >>> import cantus
    >>> cantus.asinh(cantus.asarray([0.0, 1.0])).numpy().round(3)
    array([0.   , 0.881], dtype=float32)
    """
    return _floating("asinh", x)


def atan(x: Array, /) -> Array:
    """The arc tangent.

    >>> import cantus
    >>> cantus.atan(cantus.asarray([0.0, 1.0])).numpy().round(3)
    array([0.   , 0.785], dtype=float32)
    """
    return _floating("atan", x)


def atanh(x: Array, /) -> Array:
    """The inverse of tanh.

    >>> import cantus
    >>> cantus.atanh(cantus.asarray([0.0, 0.5])).numpy().round(3)
    array([0.   , 0.549], dtype=float32)
    """
    return _floating("atanh", x)


def cos(x: Array, /) -> Array:
    """The cosine of radians.

    >>> import cantus
    >>> cantus.cos(cantus.asarray([0.0, 1.0])).numpy().round(3)
    array([1.  , 0.54], dtype=float32)
    """
    return _floating("cos", x)


def cosh(x: Array, /) -> Array:
    """The hyperbolic cosine.

    >>> import cantus
    >>> cantus.cosh(cantus.asarray([0.0, 1.0])).numpy().round(3)
    array([1.   , 1.543], dtype=float32)
    """
    return _floating("cosh", x)


def digamma(x: Array, /) -> Array:
    """The derivative of the logarithm of the gamma function, of float32 and narrower.

    >>> import cantus
    >>> cantus.digamma(cantus.asarray([1.0, 2.0])).numpy().round(3)
    array([-0.577,  0.423], dtype=float32)
    """
    return _single("digamma", x)


def erf(x: Array, /) -> Array:
    """The error function 2/√π ∫₀ˣ e^(-t²) dt, of float32 and narrower.

    >>> import cantus
    >>> cantus.erf(cantus.asarray([0.0, 1.0])).numpy().round(3)
    array([0.   , 0.843], dtype=float32)
    """
    return _single("erf", x)


def erfc(x: Array, /) -> Array:
    """1 - erf(x), with all its digits where x is large; of float32 and narrower.

    >>> import cantus
    >>> cantus.erfc(cantus.asarray([0.0, 1.0])).numpy().round(3)
    array([1.   , 0.157], dtype=float32)
    """
    return _single("erfc", x)


def lgamma(x: Array, /) -> Array:
    """The logarithm of the gamma function's absolute value, of float32 and narrower.

    >>> import cantus
    >>> cantus.lgamma(cantus.asarray([1.0, 4.0])).numpy().round(3)
    array([0.   , 1.792], dtype=float32)
    """
    return _single("lgamma", x)


def exp(x: Array, /) -> Array:
    """e^x

    >>> import cantus
    >>> cantus.exp(cantus.asarray([0.0, 1.0])).numpy().round(3)
    array([1.   , 2.718], dtype=float32)
    """
    return _floating("exp", x)


def expm1(x: Array, /) -> Array:
    """e^x - 1, with all its digits near 0.

    >>> import cantus
    >>> cantus.expm1(cantus.asarray([0.0, 1.0])).numpy().round(3)
    array([0.   , 1.718], dtype=float32)
    """
    return _floating("expm1", x)


def log(x: Array, /) -> Array:
    """The natural logarithm.

    >>> import cantus
    >>> cantus.log(cantus.asarray([1.0, 10.0])).numpy().round(3)
    array([0.   , 2.303], dtype=float32)
    """
    return _floating("log", x)


def log1p(x: Array, /) -> Array:
    """log(1 + x), with all its digits near 0.

    >>> import cantus
    >>> cantus.log1p(cantus.asarray([0.0, 1.0])).numpy().round(3)
    array([0.   , 0.693], dtype=float32)
    """
    return _floating("log1p", x)


def log2(x: Array, /) -> Array:
    """The logarithm to the base 2.

    >>> import cantus
    >>> cantus.log2(cantus.asarray([1.0, 8.0])).numpy().round(3)
    array([0., 3.], dtype=float32)
    """
    return _floating("log2", x)


def log10(x: Array, /) -> Array:
    """The logarithm to the base 10.

    >>> import cantus
    >>> cantus.log10(cantus.asarray([1.0, 100.0])).numpy().round(3)
    array([0., 2.], dtype=float32)
    """
    return _floating("log10", x)


def reciprocal(x: Array, /) -> Array:
    """1 / x

    >>> import cantus
    >>> cantus.reciprocal(cantus.asarray([2.0, 4.0])).numpy().round(3)
    array([0.5 , 0.25], dtype=float32)
    """
    return _floating("reciprocal", x)


def sin(x: Array, /) -> Array:
    """The sine of radians.

    >>> import cantus
    >>> cantus.sin(cantus.asarray([0.0, 1.0])).numpy().round(3)
    array([0.   , 0.841], dtype=float32)
    """
    return _floating("sin", x)


def sinh(x: Array, /) -> Array:
    """The hyperbolic sine.

    >>> import cantus
    >>> cantus.sinh(cantus.asarray([0.0, 1.0])).numpy().round(3)
    array([0.   , 1.175], dtype=float32)
    """
    return _floating("sinh", x)


def sqrt(x: Array, /) -> Array:
    """The square root; NaN below 0.

    >>> import cantus
    >>> cantus.sqrt(cantus.asarray([4.0, 9.0])).numpy().round(3)
    array([2., 3.], dtype=float32)
    """
    return _floating("sqrt", x)


def tan(x: Array, /) -> Array:
    """The tangent of radians.

    >>> import cantus
    >>> cantus.tan(cantus.asarray([0.0, 1.0])).numpy().round(3)
    array([0.   , 1.557], dtype=float32)
    """
    return _floating("tan", x)


def tanh(x: Array, /) -> Array:
    """The hyperbolic tangent.

    >>> import cantus
    >>> cantus.tanh(cantus.asarray([0.0, 1.0])).numpy().round(3)
    array([0.   , 0.762], dtype=float32)
    """
    return _floating("tanh", x)


def add(x1: Any, x2: Any, /) -> Array:
    """x1 + x2

    >>> import cantus
    >>> cantus.add(cantus.asarray([1, 2]), cantus.asarray([10, 20]))
    array([11, 22])
    """
    return _two("add", x1, x2)


def atan2(x1: Any, x2: Any, /) -> Array:
    """The angle of the point (x2, x1).

    >>> import cantus
    >>> cantus.atan2(cantus.asarray([1.0]), cantus.asarray([1.0])).numpy().round(3)
    array([0.785], dtype=float32)
    """
    return _two("atan2", x1, x2)


def bitwise_and(x1: Any, x2: Any, /) -> Array:
    """The bitwise and.

    >>> import cantus
    >>> cantus.bitwise_and(cantus.asarray([6]), cantus.asarray([3]))
    array([2])
    """
    return _two("bitwise_and", x1, x2)


def bitwise_left_shift(x1: Any, x2: Any, /) -> Array:
    """x1 2^x2

    >>> import cantus
    >>> cantus.bitwise_left_shift(cantus.asarray([3]), cantus.asarray([2]))
    array([12])
    """
    return _two("shift_left", x1, x2)


def bitwise_or(x1: Any, x2: Any, /) -> Array:
    """The bitwise or.

    >>> import cantus
    >>> cantus.bitwise_or(cantus.asarray([6]), cantus.asarray([3]))
    array([7])
    """
    return _two("bitwise_or", x1, x2)


def bitwise_right_shift(x1: Any, x2: Any, /) -> Array:
    """x1 / 2^x2, rounded down.

    >>> import cantus
    >>> cantus.bitwise_right_shift(cantus.asarray([12]), cantus.asarray([2]))
    array([3])
    """
    return _two("shift_right", x1, x2)


def bitwise_xor(x1: Any, x2: Any, /) -> Array:
    """The bitwise exclusive or.

    >>> import cantus
    >>> cantus.bitwise_xor(cantus.asarray([6]), cantus.asarray([3]))
    array([5])
    """
    return _two("bitwise_xor", x1, x2)


def copysign(x1: Any, x2: Any, /) -> Array:
    """The magnitude of x1 with the sign of x2.

    >>> import cantus
    >>> cantus.copysign(cantus.asarray([1.0, 2.0]), cantus.asarray([-1.0, 1.0]))
    array([-1.,  2.], dtype=float32)
    """
    return _two("copysign", x1, x2)


def equal(x1: Any, x2: Any, /) -> Array:
    """True where x1 = x2.

    >>> import cantus
    >>> cantus.equal(cantus.asarray([1, 2]), cantus.asarray([1, 3]))
    array([ True, False])
    """
    return _two("equal", x1, x2)


def greater(x1: Any, x2: Any, /) -> Array:
    """True where x1 > x2.

    >>> import cantus
    >>> cantus.greater(cantus.asarray([1, 4]), cantus.asarray([1, 3]))
    array([False,  True])
    """
    return _two("greater", x1, x2)


def greater_equal(x1: Any, x2: Any, /) -> Array:
    """True where x1 ≥ x2.

    >>> import cantus
    >>> cantus.greater_equal(cantus.asarray([1, 2]), cantus.asarray([1, 3]))
    array([ True, False])
    """
    return _two("greater_equal", x1, x2)


def hypot(x1: Any, x2: Any, /) -> Array:
    """√(x1² + x2²)

    >>> import cantus
    >>> cantus.hypot(cantus.asarray([3.0]), cantus.asarray([4.0])).numpy().round(3)
    array([5.], dtype=float32)
    """
    return _two("hypot", x1, x2)


def less(x1: Any, x2: Any, /) -> Array:
    """True where x1 < x2.

    >>> import cantus
    >>> cantus.less(cantus.asarray([1, 2]), cantus.asarray([1, 3]))
    array([False,  True])
    """
    return _two("less", x1, x2)


def less_equal(x1: Any, x2: Any, /) -> Array:
    """True where x1 ≤ x2.

    >>> import cantus
    >>> cantus.less_equal(cantus.asarray([1, 2]), cantus.asarray([1, 3]))
    array([ True,  True])
    """
    return _two("less_equal", x1, x2)


def logaddexp(x1: Any, x2: Any, /) -> Array:
    """log(e^x1 + e^x2)

    >>> import cantus
    >>> cantus.logaddexp(cantus.asarray([0.0]), cantus.asarray([0.0])).numpy().round(3)
    array([0.693], dtype=float32)
    """
    return _two("log_add_exp", x1, x2)


def logical_and(x1: Any, x2: Any, /) -> Array:
    """True where neither is 0.

    >>> import cantus
    >>> cantus.logical_and(cantus.asarray([True, False]), cantus.asarray([True, True]))
    array([ True, False])
    """
    return _two("logical_and", x1, x2)


def logical_or(x1: Any, x2: Any, /) -> Array:
    """True where one of them is not 0.

    >>> import cantus
    >>> cantus.logical_or(cantus.asarray([True, False]), cantus.asarray([True, False]))
    array([ True, False])
    """
    return _two("logical_or", x1, x2)


def logical_xor(x1: Any, x2: Any, /) -> Array:
    """True where just one of them is 0.

    >>> import cantus
    >>> cantus.logical_xor(cantus.asarray([True, False]), cantus.asarray([True, True]))
    array([False,  True])
    """
    return _two("logical_xor", x1, x2)


def maximum(x1: Any, x2: Any, /) -> Array:
    """The greater; NaN if either is.

    >>> import cantus
    >>> cantus.maximum(cantus.asarray([1, 5]), cantus.asarray([3, 2]))
    array([3, 5])
    """
    return _two("maximum", x1, x2)


def minimum(x1: Any, x2: Any, /) -> Array:
    """The lesser; NaN if either is.

    >>> import cantus
    >>> cantus.minimum(cantus.asarray([1, 5]), cantus.asarray([3, 2]))
    array([1, 2])
    """
    return _two("minimum", x1, x2)


def multiply(x1: Any, x2: Any, /) -> Array:
    """x1 x2

    >>> import cantus
    >>> cantus.multiply(cantus.asarray([1, 2]), cantus.asarray([10, 20]))
    array([10, 40])
    """
    return _two("mul", x1, x2)


def nextafter(x1: Any, x2: Any, /) -> Array:
    """The float next to x1 in the direction of x2.

    >>> import cantus
    >>> cantus.nextafter(cantus.asarray([1.0]), cantus.asarray([2.0])) > 1
    array([ True])
    """
    return _two("next_after", x1, x2)


def not_equal(x1: Any, x2: Any, /) -> Array:
    """True where x1 ≠ x2.

    >>> import cantus
    >>> cantus.not_equal(cantus.asarray([1, 2]), cantus.asarray([1, 3]))
    array([False,  True])
    """
    return _two("not_equal", x1, x2)


def remainder(x1: Any, x2: Any, /) -> Array:
    """The remainder of x1 / x2, with the sign of x2.

    >>> import cantus
    >>> cantus.remainder(cantus.asarray([7, -7]), cantus.asarray([3, 3]))
    array([1, 2])
    """
    return _two("remainder", x1, x2)


def subtract(x1: Any, x2: Any, /) -> Array:
    """x1 - x2

    >>> import cantus
    >>> cantus.subtract(cantus.asarray([1, 2]), cantus.asarray([10, 20]))
    array([ -9, -18])
    """
    return _two("sub", x1, x2)


_arguments.enter(globals())
# As NumPy's functions of elements have them: `cantus.add.reduce(x)`.
for _name in ("add", "subtract", "multiply", "maximum", "minimum", "logical_and", "logical_or"):
    for _method in ("reduce", "accumulate", "outer", "at"):
        setattr(globals()[_name], _method, getattr(getattr(np, _name), _method))
