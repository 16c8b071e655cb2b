"""NumPy's functions of shapes, parts, products and order, and those that make arrays, of Cantus's arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import _api, _dtypes, linalg
from ._array import Array, call, number, wrap
from ._numpy import FUNCTIONS, _array, _cast, _common, _first, _floating, _like, _numpys, _read, _remedy, _together, castable


@_numpys
def clip(a: Any, a_min: Any = np._NoValue, a_max: Any = np._NoValue, *, min: Any = np._NoValue, max: Any = np._NoValue) -> Any:
    if not (a_min is a_max is np._NoValue) and not (min is max is np._NoValue):
        raise ValueError("np.clip takes a_min and a_max, or min and max")
    low, high = (one if one is not np._NoValue else other for one, other in ((a_min, min), (a_max, max)))
    return _api.clip(a, *(None if one is np._NoValue else _array(one, a) for one in (low, high)))


@_numpys
def round(a: Any, decimals: int = 0) -> Any:
    return _api.round(a) if decimals == 0 or a.dtype.kind in "iu" and decimals > 0 else _api.round(a * 10.0**decimals) / 10.0**decimals


FUNCTIONS["around"] = round


# Shapes and parts.


def _castable(arrays: Any, dtype: Any, casting: str) -> Any:
    for one in arrays if dtype is not None else ():
        castable(one.dtype, dtype, casting, "dtype")
    return arrays


@_numpys
def concatenate(arrays: Any, axis: int | None = 0, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    return _cast(_api.concat(_together(_castable(arrays, dtype, casting)), axis=axis), dtype)


FUNCTIONS["concat"] = concatenate


@_numpys
def stack(arrays: Any, axis: int = 0, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    return _cast(_api.stack(_together(_castable(arrays, dtype, casting)), axis=axis), dtype)


@_numpys
def atleast_1d(*arrays: Any) -> Any:
    found = [x if x.ndim else _api.reshape(x, (1,)) for x in arrays]
    return found[0] if len(found) == 1 else tuple(found)


@_numpys
def atleast_2d(*arrays: Any) -> Any:
    found = [x if x.ndim > 1 else _api.reshape(x, (1, -1)) for x in arrays]
    return found[0] if len(found) == 1 else tuple(found)


@_numpys
def vstack(arrays: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    return concatenate([atleast_2d(x) for x in arrays], dtype=dtype, casting=casting)


@_numpys
def hstack(arrays: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    arrays = [atleast_1d(x) for x in arrays]
    return concatenate(arrays, axis=0 if arrays[0].ndim == 1 else 1, dtype=dtype, casting=casting)


@_numpys
def reshape(a: Any, /, shape: Any, order: str = "C", *, copy: bool | None = None) -> Any:
    found = _api.reshape(transpose(a) if order == "F" else a, _turned(shape, order))
    if order not in ("C", "A", "F"):
        raise ValueError(f"order is 'C', 'A' or 'F', not {order!r}")
    return transpose(found) if order == "F" else found


def _turned(shape: Any, order: str) -> tuple[int, ...]:
    sides = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    return sides[::-1] if order == "F" else sides


@_numpys
def ravel(a: Any, order: str = "C") -> Any:
    # "K" is the order in memory, which is by rows here.
    return reshape(a, (-1,), "C" if order == "K" else order)


@_numpys
def transpose(a: Any, axes: Any = None) -> Any:
    return _api.permute_dims(a, tuple(range(a.ndim))[::-1] if axes is None else tuple(axes))


FUNCTIONS["permute_dims"] = transpose


@_numpys
def matrix_transpose(x: Any, /) -> Any:
    if x.ndim < 2:
        raise ValueError(f"a matrix needs at least two axes; this array has {x.ndim}")
    return x.mT


@_numpys
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    return _api.astype(x, _dtypes.of(dtype), copy=copy, device=device)


@_numpys
def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    axes = list(range(a.ndim))
    axis1, axis2 = _api._axis(axis1, a.ndim), _api._axis(axis2, a.ndim)
    axes[axis1], axes[axis2] = axes[axis2], axes[axis1]
    return call(a, "permute", ints=axes)


@_numpys
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    return _api.moveaxis(a, source, destination)


@_numpys
def expand_dims(a: Any, axis: Any) -> Any:
    return _api.expand_dims(a, axis)


@_numpys
def squeeze(a: Any, axis: Any = None) -> Any:
    return _api.squeeze(a, axis)


@_numpys
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    return _api.broadcast_to(array, shape if isinstance(shape, tuple | list) else (shape,))


@_numpys
def broadcast_arrays(*arrays: Any, subok: bool = False) -> Any:
    return tuple(_api.broadcast_arrays(*arrays))


@_numpys
def where(condition: Any, *others: Any) -> Any:
    if not others:
        return _api.nonzero(condition)
    if len(others) == 2 and isinstance(condition, Array) and condition.dtype.kind == "b":
        # Of one dtype, or floats and Python's numbers.
        arrays = [one for one in others if isinstance(one, Array)]
        if len(arrays) == 2 and arrays[0].dtype is arrays[1].dtype:
            return _api.where(condition, *others)
        if len(arrays) == 1 and arrays[0].dtype.kind == "f" and all(type(one) in (int, float) for one in others if one is not arrays[0]):
            return _api.where(condition, *others)
    beside = _first((condition, *others))
    if beside is None:
        return np.where(condition, *others)
    values = [_array(one, beside) for one in others]
    among = _first(values)
    common = _common(values, beside if among is None else among)
    values = [one.astype(common, copy=False) if isinstance(one, Array) else number(one, _like(common, beside)) for one in values]
    mask = _api.asarray(condition, device=beside._device)
    return _api.where(mask if mask.dtype.kind == "b" else mask != 0, *values)


@_numpys
def nonzero(a: Any) -> Any:
    return _api.nonzero(a)


@_numpys
def take(a: Any, indices: Any, axis: int | None = None, mode: str = "raise") -> Any:
    places = indices
    x = _api.reshape(a, (-1,)) if axis is None else a
    axis = 0 if axis is None else axis
    if mode != "raise":
        places = _bounded(places, x.shape[axis], mode)
    if places.ndim == 1:
        return _api.take(x, places, axis=axis)
    return x[(slice(None),) * (axis % x.ndim) + ((int(places),) if places.ndim == 0 else (places,))]


def _bounded(places: Array, side: int, mode: str) -> Array:
    """Wraps places around an axis, or clamps them to it."""
    if mode not in ("wrap", "clip"):
        raise ValueError(f"mode is 'raise', 'wrap' or 'clip', not {mode!r}")
    if not side:
        raise IndexError("the axis has no elements")
    return places % side if mode == "wrap" else _api.clip(places, 0, side - 1)


_PADS = {"constant": "pad", "edge": "pad_edge", "reflect": "pad_reflect", "wrap": "pad_wrap", "empty": "pad"}
# The arguments that a mode has, and what they are without being given.
_PAD_ARGUMENTS: dict[str, dict[str, Any]] = {
    "constant": {"constant_values": 0}, "linear_ramp": {"end_values": 0}, "reflect": {"reflect_type": "even"}, "symmetric": {"reflect_type": "even"},
    **dict.fromkeys(("maximum", "mean", "median", "minimum"), {"stat_length": None}), **dict.fromkeys(("edge", "wrap", "empty"), {}),
}  # fmt: skip


@_numpys
def pad(array: Any, pad_width: Any, mode: Any = "constant", **given: Any) -> Any:
    if mode not in _PAD_ARGUMENTS:
        raise _remedy(f"np.pad with mode={mode!r}")
    for name in given.keys() - _PAD_ARGUMENTS[mode].keys():
        raise ValueError(f"np.pad with mode={mode!r} takes no {name}")
    if isinstance(pad_width, dict):
        pad_width = [_pair(pad_width.get(axis, pad_width.get(axis - array.ndim, 0))) for axis in range(array.ndim)]
    widths = np.broadcast_to(np.asarray(_read(pad_width)), (array.ndim, 2))
    if widths.dtype.kind not in "iu":
        raise TypeError(f"pad_width counts elements: whole numbers, not {widths.dtype}")
    if (widths < 0).any():
        raise ValueError("pad_width has a negative number (a slice makes an array smaller)")
    if array.ndim == 0:
        return +array
    odd = given.get("reflect_type", "even") == "odd"
    if given.get("reflect_type", "even") not in ("even", "odd"):
        raise ValueError(f"reflect_type is 'even' or 'odd', not {given['reflect_type']!r}")
    if mode in _PADS and not odd and mode != "constant" and array.size:
        return call(array, _PADS[mode], ints=widths.ravel().tolist(), floats=[0.0] if mode == "empty" else [])
    if mode in ("constant", "empty"):
        values = np.broadcast_to(np.asarray(_read(given.get("constant_values", 0))), (array.ndim, 2)).astype(array.dtype.numpy)
        one = values.flat[0].item()
        if (values == one).all() and not isinstance(one, complex) and float(one) == one:
            return call(array, "pad", ints=widths.ravel().tolist(), floats=[float(one)])
    if not array.size and mode not in ("constant", "empty") and any(side == 0 and widths[axis].any() for axis, side in enumerate(array.shape)):
        raise ValueError(f"np.pad with mode={mode!r} takes its elements from the axis, and one has none (mode='constant')")
    # One axis after the other, as NumPy: corners are of what is there already.
    for axis, (ahead, behind) in enumerate(widths.tolist()):
        if mode in ("constant", "empty"):
            sides = [_side(array, axis, count, value) for count, value in ((ahead, values[axis, 0]), (behind, values[axis, 1]))]
        elif mode == "linear_ramp":
            ends = np.broadcast_to(np.asarray(_read(given.get("end_values", 0))), (array.ndim, 2))[axis]
            sides = [_ramp(array, axis, count, end, back) for count, end, back in ((ahead, ends[0], False), (behind, ends[1], True))]
        elif mode in ("reflect", "symmetric"):
            array = _mirrored(array, axis, ahead, behind, mode == "symmetric", odd)
            continue
        else:
            lengths = given.get("stat_length")
            lengths = (None, None) if lengths is None else np.broadcast_to(np.asarray(lengths), (array.ndim, 2))[axis].tolist()
            sides = [_summary(array, axis, count, mode, length, back) for count, length, back in ((ahead, lengths[0], False), (behind, lengths[1], True))]
        array = _api.concat([sides[0], array, sides[1]], axis=axis)
    return array


def _along(array: Array, axis: int, start: int | None, stop: int | None, step: int | None = None) -> Array:
    return array[(slice(None),) * axis + (slice(start, stop, step),)]


def _ramp(array: Array, axis: int, count: int, end: Any, back: bool) -> Array:
    """Returns `count` equal steps from a number to the outermost element, starting with the number."""
    edge = _along(array, axis, -1, None) if back else _along(array, axis, 0, 1)
    wide = _floating(array.dtype, array)
    parts = _api.arange(count, device=array._device).astype(wide) / max(count, 1)
    parts = _api.reshape(_api.flip(parts) if back else parts, (count,) + (1,) * (array.ndim - axis - 1))
    end = _api.asarray(end, device=array._device).astype(array.dtype).astype(wide)
    found = end + (edge.astype(wide) - end) * parts
    return (_api.floor(found) if array.dtype.kind in "iu" else found).astype(array.dtype)


def _summary(array: Array, axis: int, count: int, mode: str, length: int | None, back: bool) -> Array:
    """One number of the elements nearest to an end, `count` times."""
    side = array.shape[axis]
    length = side if length is None else min(int(length), side)
    if length < 1:
        raise ValueError("stat_length, the number of elements of each statistic, must be at least 1")
    part = _along(array, axis, side - length, None) if back else _along(array, axis, 0, length)
    found = FUNCTIONS[{"maximum": "max", "minimum": "min"}.get(mode, mode)](part, axis=axis, keepdims=True)
    if array.dtype.kind in "iu" and mode in ("mean", "median"):
        found = _api.round(found)
    return _api.broadcast_to(found.astype(array.dtype), (*array.shape[:axis], count, *array.shape[axis + 1 :]))


def _mirrored(array: Array, axis: int, ahead: int, behind: int, twice: bool, odd: bool) -> Array:
    """Reflects the elements at both ends, with the end once or twice; an odd reflection continues the line beyond the end."""
    if array.shape[axis] == 1 and not twice:
        return call(array, "pad_edge", ints=[wide for at in range(array.ndim) for wide in ((ahead, behind) if at == axis else (0, 0))])
    while ahead or behind:
        # A reflection is as long as what is there: more takes another.
        side, once = array.shape[axis], 0 if twice else 1
        left, right = min(ahead, side - once), min(behind, side - once)
        parts = [_along(array, axis, once, once + left), _along(array, axis, side - once - right, side - once)]
        parts = [_api.flip(one, axis=axis) for one in parts]
        if odd:
            ends = [_along(array, axis, 0, 1), _along(array, axis, -1, None)]
            parts = [2 * end - one for end, one in zip(ends, parts, strict=True)]
        array = _api.concat([parts[0], array, parts[1]], axis=axis)
        ahead, behind = ahead - left, behind - right
    return array


def _pair(widths: Any) -> tuple[int, int]:
    return (widths, widths) if isinstance(widths, int) else tuple(widths)


def _side(array: Array, axis: int, count: int, value: Any) -> Array:
    if count < 0:
        raise ValueError(f"pad_width must not be negative, and {count} was given")
    shape = (*array.shape[:axis], count, *array.shape[axis + 1 :])
    return _api.full(shape, value, dtype=array.dtype, device=array._device)


@_numpys
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return linalg.diagonal(moveaxis(a, (axis1, axis2), (-2, -1)), offset=offset)


@_numpys
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    return _api.sum(diagonal(a, offset, axis1, axis2), axis=-1, dtype=None if dtype is None else _dtypes.of(dtype))


@_numpys
def tril(m: Any, k: int = 0) -> Any:
    return _api.tril(m, k=k)


@_numpys
def triu(m: Any, k: int = 0) -> Any:
    return _api.triu(m, k=k)


for _name in ("real", "imag", "isdtype", "unique_values"):
    FUNCTIONS[_name] = getattr(_api, _name)


@_numpys
def tile(A: Any, reps: Any) -> Any:
    return _api.tile(A, tuple(reps) if isinstance(reps, tuple | list) else (int(reps),))


@_numpys
def meshgrid(*arrays: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    arrays = tuple(_together([ravel(one) if isinstance(one, Array) else one for one in arrays]))
    if not sparse:
        return tuple(_api.meshgrid(*arrays, indexing=indexing))
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing is 'xy' or 'ij', not {indexing!r}")
    rank = len(arrays)
    turned = (1, 0, *range(2, rank)) if indexing == "xy" and rank > 1 else tuple(range(rank))
    return tuple(
        _api.reshape(one, tuple(-1 if turned[place] == axis else 1 for axis in range(rank))) for place, one in enumerate(arrays)
    )


@_numpys
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    return _api.roll(a, shift, axis=axis)


@_numpys
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    return _api.repeat(a, repeats, axis=axis)


@_numpys
def flip(m: Any, axis: Any = None) -> Any:
    return _api.flip(m, axis=axis)


@_numpys
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = np._NoValue, append: Any = np._NoValue) -> Any:
    if n < 0:
        raise ValueError(f"np.diff: n must not be negative, and {n} was given")

    def beside(part: Any) -> Any:
        if part is np._NoValue:
            return None
        part = _api.asarray(part if isinstance(part, Array) else np.asarray(part), device=a._device)
        side = tuple(1 if place == axis % a.ndim else side for place, side in enumerate(a.shape))
        return _api.broadcast_to(part, side) if part.ndim == 0 else part

    parts = [part for part in (beside(prepend), a, beside(append)) if part is not None]
    return _api.diff(_api.concat(_together(parts), axis=axis) if len(parts) > 1 else a, axis=axis, n=n)


@_numpys
def take_along_axis(arr: Any, indices: Any, axis: int = -1) -> Any:
    return _api.take_along_axis(arr, indices, axis=axis)


# Products.


@_numpys
def dot(a: Any, b: Any) -> Any:
    a, b = _together((a, b))
    if not a.ndim or not b.ndim:
        return a * b
    if a.ndim <= 2 and b.ndim <= 2:
        return linalg.matmul(a, b)
    return _api.tensordot(a, b, axes=1) if b.ndim == 1 else _api.tensordot(a, b, axes=((-1 % a.ndim,), (b.ndim - 2,)))


@_numpys
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    if not isinstance(axes, int):
        axes = tuple((one,) if isinstance(one, int) else tuple(one) for one in axes)
    return _api.tensordot(*_together((a, b)), axes=axes)


FUNCTIONS["linalg.tensordot"] = tensordot


def _svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    return linalg.svd(a, full_matrices=full_matrices) if compute_uv else linalg.svdvals(a)


FUNCTIONS["linalg.svd"] = _svd


@_numpys
def inner(a: Any, b: Any) -> Any:
    a, b = _together((a, b))
    if not a.ndim or not b.ndim:
        return a * b
    return _api.tensordot(a, b, axes=((-1 % a.ndim,), (-1 % b.ndim,)))


@_numpys
def outer(a: Any, b: Any) -> Any:
    return linalg.outer(*_together((ravel(a), ravel(b))))


@_numpys
def einsum(equation: Any, *operands: Any, dtype: Any = None) -> Any:
    if not isinstance(equation, str):
        equation, operands = _lettered((equation, *operands))
    operands = tuple(_cast(one, dtype) for one in _together([one if isinstance(one, Array) else _api.asarray(np.asarray(one)) for one in operands]))
    kind = operands[0].dtype
    # The core counts truths and widens small numbers: NumPy's sums are of the operands' dtype.
    first, *others = [one.astype(_dtypes.int32) if kind.kind == "b" else one for one in operands]
    found = wrap(first._x.einsum(equation.replace(" ", ""), [one._x for one in others]), first._device)
    return found != 0 if kind.kind == "b" else found.astype(kind, copy=False)


def _lettered(given: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The equation in letters for operands that are followed by lists of their axes."""

    def letters(axes: Any) -> str:
        return "".join("..." if axis is Ellipsis else _letter(axis) for axis in axes)

    count = len(given) // 2
    terms = ",".join(letters(given[2 * place + 1]) for place in range(count))
    result = f"->{letters(given[-1])}" if len(given) % 2 else ""
    return terms + result, given[: 2 * count : 2]


def _letter(axis: Any) -> str:
    if not 0 <= axis < 52:
        raise ValueError(f"einsum names axes by 0 to 51, not by {axis}")
    return chr((ord("A") if axis < 26 else ord("a") - 26) + axis)


# Order.


@_numpys
def sort(a: Any, axis: int | None = -1, kind: Any = None, *, stable: Any = None) -> Any:
    # Every order is stable here.
    if not a.ndim and axis is not None:
        raise np.exceptions.AxisError(axis, 0)
    return _api.sort(ravel(a) if axis is None else a, axis=-1 if axis is None else axis)


@_numpys
def argsort(a: Any, axis: int | None = -1, kind: Any = None, *, stable: Any = None) -> Any:
    flat = axis is None or not a.ndim
    return _api.argsort(ravel(a) if flat else a, axis=-1 if axis is None else axis)


@_numpys
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    line, values = _together((a, v))
    return _api.searchsorted(line, values, side=side, sorter=_array(sorter, line))


@_numpys
def unique(
    ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, *, equal_nan: bool = True, sorted: bool = True
) -> Any:
    found = _api.unique_all(ar)
    values, index, inverse, counts = found
    if equal_nan and ar.dtype.kind in "fc" and values.size:
        # Order puts NaN last: all of them become the first.
        last = values.size - int(_api.count_nonzero(_api.isnan(values)))
        if last < values.size - 1:
            rest = _api.sum(counts[last:], keepdims=True).astype(counts.dtype, copy=False)
            values, index, counts = values[: last + 1], index[: last + 1], _api.concat([counts[:last], rest])
            inverse = _api.minimum(inverse, last)
    asked = [part for part, wanted in ((index, return_index), (inverse, return_inverse), (counts, return_counts)) if wanted]
    return (values, *asked) if asked else values


@_numpys
def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    a, b = _together((a, b))
    a, b = (one.astype(_floating(one.dtype, one), copy=False) for one in (a, b))
    near = _api.abs(a - b) <= atol + rtol * _api.abs(b)
    near = _api.logical_and(near, _api.isfinite(b)) | (a == b)
    return near | (_api.isnan(a) & _api.isnan(b)) if equal_nan else near


# Creation, like an array.


def _made(name: str, value: Any) -> None:
    def made(
        a: Any, fill_value: Any, dtype: Any = None, order: str = "K", shape: Any = None, *, device: Any = None
    ) -> Any:
        if not isinstance(a, Array):
            return np.full_like(a, _read(fill_value), dtype=dtype, shape=shape)
        sides = a.shape if shape is None else shape
        kind = a.dtype if dtype is None else _dtypes.of(dtype)
        if np.ndim(_read(fill_value)):
            given = _api.asarray(fill_value, dtype=kind, device=device or a._device)
            return _api.broadcast_to(given, sides if isinstance(sides, tuple | list) else (sides,))
        return _api.full(sides, fill_value, dtype=kind, device=device or a._device)

    def constant(a: Any, dtype: Any = None, order: str = "K", shape: Any = None, *, device: Any = None) -> Any:
        return made(a, value, dtype, order, shape, device=device)

    FUNCTIONS[name] = made if value is None else constant


for _name, _value in (("zeros_like", 0), ("empty_like", 0), ("ones_like", 1), ("full_like", None)):
    _made(_name, _value)


@_numpys
def copy(a: Any, order: str = "K") -> Any:
    return _api.asarray(a, copy=True)


# NumPy's creation functions come here by `like=`.


def _laid(name: str) -> None:
    def laid(
        a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None, subok: bool = False, ndmin: int = 0
    ) -> Any:
        made = _api.asarray(a, dtype=dtype, device=device, copy=copy)
        return _api.reshape(made, (1,) * (ndmin - made.ndim) + made.shape)

    FUNCTIONS[name] = laid


for _name in ("array", "asarray", "asanyarray", "ascontiguousarray"):
    _laid(_name)


def _blank(name: str) -> None:
    ours = getattr(_api, name)

    def blank(shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None) -> Any:
        return ours(shape, dtype=float if dtype is None else dtype, device=device)

    FUNCTIONS[name] = blank


for _name in ("zeros", "ones", "empty"):
    _blank(_name)


@_numpys
def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, device: Any = None) -> Any:
    return _api.full(shape, fill_value, dtype=dtype, device=device)


@_numpys
def arange(*numbers: Any, stop: Any = None, step: Any = 1, dtype: Any = None, device: Any = None) -> Any:
    if len(numbers) == 1 and stop is not None:
        numbers = (*numbers, stop)
    start, end, by = (*numbers, *(None, step)[len(numbers) - 1 :])[:3] if len(numbers) < 3 else numbers
    return _api.arange(start, end, by, dtype=dtype, device=device)


# What is known without computing.

FUNCTIONS |= {
    "shape": lambda a: a.shape,
    "ndim": lambda a: a.ndim,
    "size": lambda a, axis=None: math.prod(a.shape[one] for one in (axis if isinstance(axis, tuple) else (axis,))) if axis is not None else a.size,
    "iscomplexobj": lambda x: x.dtype.kind == "c",
    "isrealobj": lambda x: x.dtype.kind != "c",
    "result_type": lambda *of: np.result_type(*(one.dtype.numpy if isinstance(one, Array) else one for one in of)),
    "can_cast": lambda a, to, casting="safe": np.can_cast(a.dtype.numpy if isinstance(a, Array) else a, _dtypes.of(to).numpy, casting),
}
