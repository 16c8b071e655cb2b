"""NumPy's functions of Cantus's arrays that cut and join them, choose elements, and treat arrays as sets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import _api
from ._array import Array
from ._functions import concatenate, moveaxis, nonzero, ravel, reshape, tensordot, unique, vstack
from ._numpy import FUNCTIONS, _array, _common, _first, _numpys, _read, _together, castable

# Cut and joined.


def _cuts(x: Array, sections: Any, axis: int, equal: bool) -> list[Array]:
    side = x.shape[axis]
    if isinstance(sections, int | np.integer):
        if sections <= 0:
            raise ValueError(f"an axis is cut into at least 1 part, not into {sections}")
        if equal and side % sections:
            raise ValueError(f"axis {axis} of {side} elements is not cut into {sections} equal parts (np.array_split)")
        each, more = divmod(side, int(sections))
        places = [part * each + min(part, more) for part in range(1, int(sections))]
    else:
        places = [int(one) for one in np.asarray(_read(sections)).ravel()]
    ahead = (slice(None),) * (axis % x.ndim)
    return [x[(*ahead, slice(start, stop))] for start, stop in zip([0, *places], [*places, None], strict=True)]


@_numpys
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    return _cuts(ary, indices_or_sections, axis, False)


@_numpys
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    return _cuts(ary, indices_or_sections, axis, True)


@_numpys
def hsplit(ary: Any, indices_or_sections: Any) -> Any:
    if not ary.ndim:
        raise ValueError("np.hsplit needs an array of at least one axis")
    return _cuts(ary, indices_or_sections, 1 if ary.ndim > 1 else 0, True)


@_numpys
def vsplit(ary: Any, indices_or_sections: Any) -> Any:
    if ary.ndim < 2:
        raise ValueError(f"np.vsplit needs an array of at least two axes; this one has {ary.ndim}")
    return _cuts(ary, indices_or_sections, 0, True)


@_numpys
def dsplit(ary: Any, indices_or_sections: Any) -> Any:
    if ary.ndim < 3:
        raise ValueError(f"np.dsplit needs an array of at least three axes; this one has {ary.ndim}")
    return _cuts(ary, indices_or_sections, 2, True)


@_numpys
def unstack(x: Any, /, *, axis: int = 0) -> Any:
    return tuple(_api.unstack(x, axis=axis))


@_numpys
def atleast_3d(*arrays: Any) -> Any:
    found = [x if x.ndim > 2 else reshape(x, (1, x.size, 1) if x.ndim < 2 else (*x.shape, 1)) for x in arrays]
    return found[0] if len(found) == 1 else tuple(found)


@_numpys
def column_stack(tup: Any) -> Any:
    return concatenate([one if one.ndim > 1 else reshape(one, (-1, 1)) for one in _together(tup)], axis=1)


@_numpys
def dstack(tup: Any) -> Any:
    return concatenate([atleast_3d(one) for one in _together(tup)], axis=2)


FUNCTIONS["row_stack"] = vstack


@_numpys
def block(arrays: Any) -> Any:
    depth, inner = 0, arrays
    while isinstance(inner, list):
        if not inner:
            raise ValueError("np.block: a list is empty")
        depth, inner = depth + 1, inner[0]
    beside = _first(arrays)
    assert beside is not None

    def rank(part: Any) -> int:
        return max(map(rank, part)) if isinstance(part, list) else np.ndim(_read(part))

    axes = max(depth, rank(arrays))

    def joined(part: Any, level: int) -> Array:
        if isinstance(part, list):
            if level >= depth:
                raise ValueError("np.block: the lists are not nested equally deep")
            return concatenate([joined(one, level + 1) for one in part], axis=level - depth)  # type: ignore[no-any-return]
        if level != depth:
            raise ValueError("np.block: the lists are not nested equally deep")
        found = _api.asarray(part, device=beside._device)
        return reshape(found, (1,) * (axes - found.ndim) + found.shape)  # type: ignore[no-any-return]

    return joined(arrays, 0)


@_numpys
def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    arr, values = _together((arr, values))
    return concatenate([ravel(arr), ravel(values)]) if axis is None else concatenate([arr, values], axis=axis)


@_numpys
def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    if axis is None:
        arr, axis = ravel(arr), 0
    kept = np.delete(np.arange(arr.shape[axis], dtype="i4"), _read(obj))
    return _api.take(arr, _api.asarray(kept, device=arr._device), axis=axis)


@_numpys
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    if axis is None:
        arr, axis = ravel(arr), 0
    axis = _api._axis(axis, arr.ndim)
    side, places = arr.shape[axis], _read(obj)
    values = _api.asarray(_array(values, arr), device=arr._device).astype(arr.dtype)
    if np.ndim(places) == 0 and not isinstance(places, slice):
        # One place takes the whole of the values: their first axis is the array's.
        values = moveaxis(_api.reshape(values, (1,) * (arr.ndim - values.ndim) + values.shape), 0, axis)
        count = values.shape[axis]
    else:
        count = len(np.arange(side)[places]) if isinstance(places, slice) or np.asarray(places).dtype == bool else len(places)
    values = _api.broadcast_to(values, (*arr.shape[:axis], count, *arr.shape[axis + 1 :]))
    source = np.insert(np.arange(side, dtype="i4"), places, np.arange(side, side + count, dtype="i4"))
    return _api.take(_api.concat([arr, values], axis=axis), _api.asarray(source, device=arr._device), axis=axis)


@_numpys
def resize(a: Any, new_shape: Any) -> Any:
    sides = (new_shape,) if isinstance(new_shape, int | np.integer) else tuple(new_shape)
    if any(side < 0 for side in sides):
        raise ValueError(f"new_shape has a negative side: {new_shape}")
    count, flat = math.prod(sides), ravel(a)
    if not flat.size:
        return _api.zeros(sides, dtype=a.dtype, device=a._device)
    return reshape(_api.tile(flat, (-(-count // flat.size),))[:count], sides)


@_numpys
def trim_zeros(filt: Any, trim: str = "fb") -> Any:
    places = np.flatnonzero(np.asarray(ravel(filt) != 0))
    if filt.ndim != 1:
        raise ValueError("np.trim_zeros is of one axis")
    if not places.size:
        return filt[:0]
    first = int(places[0]) if "f" in trim.lower() else 0
    return filt[first : int(places[-1]) + 1 if "b" in trim.lower() else None]


@_numpys
def sliding_window_view(x: Any, window_shape: Any, axis: Any = None) -> Any:
    sides = (window_shape,) if isinstance(window_shape, int | np.integer) else tuple(window_shape)
    axes = tuple(range(x.ndim)) if axis is None else tuple(_api._axis(one, x.ndim) for one in (axis if isinstance(axis, tuple | list) else (axis,)))
    if len(sides) != len(axes):
        raise ValueError(f"sliding_window_view takes a length for each of {len(axes)} axes, not {len(sides)}")
    for side, place in zip(sides, axes, strict=True):
        count = x.shape[place] - side + 1
        if side < 0 or count < 1:
            raise ValueError(f"a window of {side} elements does not fit into axis {place}, which has {x.shape[place]}")
        places = np.arange(count, dtype="i4")[:, None] + np.arange(side, dtype="i4")
        x = moveaxis(x[(slice(None),) * place + (places,)], place + 1, -1)
    return x


@_numpys
def fliplr(m: Any) -> Any:
    if m.ndim < 2:
        raise ValueError(f"np.fliplr needs an array of at least two axes; this one has {m.ndim}")
    return _api.flip(m, axis=1)


@_numpys
def flipud(m: Any) -> Any:
    if m.ndim < 1:
        raise ValueError("np.flipud needs an array of at least one axis")
    return _api.flip(m, axis=0)


@_numpys
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    first, second = (_api._axis(one, m.ndim) for one in axes)
    if first == second:
        raise ValueError(f"np.rot90 turns between two axes, and both are {first}")
    order = list(range(m.ndim))
    order[first], order[second] = second, first
    k %= 4
    if k == 1:
        return _api.permute_dims(_api.flip(m, axis=second), tuple(order))
    if k == 3:
        return _api.flip(_api.permute_dims(m, tuple(order)), axis=second)
    return _api.flip(m, axis=(first, second)) if k else +m


@_numpys
def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    axis, start = _api._axis(axis, a.ndim), start + a.ndim if start < 0 else start
    if not 0 <= start <= a.ndim:
        raise ValueError(f"start is within -{a.ndim} and {a.ndim}")
    return moveaxis(a, axis, start - (axis < start))


# Chosen.


@_numpys
def flatnonzero(a: Any) -> Any:
    return nonzero(ravel(a))[0]


@_numpys
def argwhere(a: Any) -> Any:
    if not a.ndim:
        return argwhere(reshape(a, (1,)))[:, :0]
    return _api.stack(nonzero(a), axis=-1)


@_numpys
def extract(condition: Any, arr: Any) -> Any:
    return _api.take(ravel(arr), flatnonzero(condition), axis=0)


@_numpys
def compress(condition: Any, a: Any, axis: int | None = None) -> Any:
    if condition.ndim != 1:
        raise ValueError(f"np.compress: the condition is a line, not of the shape {condition.shape}")
    places = flatnonzero(condition)
    return _api.take(ravel(a), places, axis=0) if axis is None else _api.take(a, places, axis=axis)


@_numpys
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    if len(condlist) != len(choicelist):
        raise ValueError(f"select has {len(condlist)} conditions and {len(choicelist)} choices: the numbers must be equal")
    if not len(condlist):
        raise ValueError("select needs at least one condition")
    beside = _first((condlist, choicelist, [default]))
    assert beside is not None
    *choices, found = (_api.asarray(one, device=beside._device) for one in _weak([*choicelist, default], beside))
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        condition = _api.asarray(condition, device=beside._device)
        if condition.dtype.kind != "b":
            raise TypeError(f"select: a condition is of bool, not of {condition.dtype}")
        found = _api.where(condition, choice, found)
    return found


def _weak(values: Any, beside: Array) -> list[Array]:
    """Values in NumPy's common dtype, where numbers of Python's have none of their own."""
    found = _common([_array(one, beside) for one in values], beside)
    return [_api.asarray(one, device=beside._device).astype(found, copy=False) for one in values]


@_numpys
def choose(a: Any, choices: Any, mode: str = "raise") -> Any:
    beside, places = a, a
    if places.dtype.kind not in "iub":
        raise TypeError(f"choose takes whole numbers as places, not {places.dtype}")
    choices = _together(list(choices) if not isinstance(choices, Array) else _api.unstack(choices))
    choices = [_api.asarray(one, device=beside._device) for one in choices]
    count = len(choices)
    if mode in ("wrap", "clip"):
        places = places % count if mode == "wrap" else _api.clip(places, 0, count - 1)
    elif mode != "raise":
        raise ValueError(f"mode is 'raise', 'wrap' or 'clip', not {mode!r}")
    elif places.size and not (0 <= int(_api.min(places)) and int(_api.max(places)) < count):
        raise ValueError(f"choose takes places from 0 to {count - 1} (mode='clip' or 'wrap' for others)")
    found = choices[-1]
    for number in range(count - 2, -1, -1):
        found = _api.where(places == number, choices[number], found)
    return _api.broadcast_to(found, np.broadcast_shapes(places.shape, *(one.shape for one in choices)))


@_numpys
def piecewise(x: Any, condlist: Any, funclist: Any, *arguments: Any, **keywords: Any) -> Any:
    plain = isinstance(condlist, list | tuple) and not (len(condlist) and isinstance(condlist[0], bool | np.bool_) and x.ndim)
    conditions = [_api.asarray(one, device=x._device) for one in (condlist if plain else [condlist])]
    for one in conditions:
        if one.ndim and one.shape != x.shape:
            raise IndexError(f"piecewise: a condition has the shape {one.shape}, and the array {x.shape}")
    conditions = [_api.broadcast_to(one if one.dtype.kind == "b" else one != 0, x.shape) for one in conditions]
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise ValueError(f"piecewise takes a function for each of {len(conditions)} conditions, and one more for the rest, not {len(funclist)}")
    if len(funclist) > len(conditions):
        chosen = conditions[0]
        for condition in conditions[1:]:
            chosen = chosen | condition
        conditions.append(~chosen)
    # A function gets the elements that its condition chooses, as one axis.
    flat, found = ravel(x), _api.zeros((x.size,), dtype=x.dtype, device=x._device)
    for condition, of in zip(conditions, funclist, strict=True):
        places = flatnonzero(condition)
        if not places.size:
            continue
        found[places] = of(_api.take(flat, places), *arguments, **keywords) if callable(of) else of
    return reshape(found, x.shape)


@_numpys
def unravel_index(indices: Any, shape: Any, order: str = "C") -> Any:
    sides = (shape,) if isinstance(shape, int) else tuple(shape)
    if order not in ("C", "F"):
        raise ValueError(f"order is 'C' or 'F', not {order!r}")
    if indices.dtype.kind not in "iu":
        raise TypeError(f"unravel_index takes whole numbers, not {indices.dtype}")
    if indices.size and not (0 <= int(_api.min(indices)) and int(_api.max(indices)) < math.prod(sides)):
        raise ValueError(f"unravel_index takes places from 0 to {math.prod(sides) - 1} for the shape {sides}")
    rest, found = indices.astype(_api.default_int(indices._device), copy=False), []
    for side in sides[::-1] if order == "C" else sides:
        found.append(rest % side)
        rest = rest // side
    return tuple(found[::-1] if order == "C" else found)


@_numpys
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Any:
    modes = (mode,) * len(dims) if isinstance(mode, str) else tuple(mode)
    if order not in ("C", "F"):
        raise ValueError(f"order is 'C' or 'F', not {order!r}")
    beside = _first((multi_index,))
    assert beside is not None
    found: Any = 0
    parts = [_api.asarray(one, device=beside._device).astype(_api.default_int(beside._device)) for one in multi_index]
    if len(parts) != len(dims):
        raise ValueError(f"multi_index has {len(parts)} arrays for {len(dims)} axes")
    axes = list(zip(parts, dims, modes, strict=True))
    for part, side, how in axes if order == "C" else axes[::-1]:
        if how == "wrap":
            part = part % side
        elif how == "clip":
            part = _api.clip(part, 0, side - 1)
        elif how != "raise":
            raise ValueError(f"mode is 'raise', 'wrap' or 'clip', not {how!r}")
        elif part.size and not (0 <= int(_api.min(part)) and int(_api.max(part)) < side):
            raise ValueError(f"multi_index has a place outside of 0 to {side - 1} (mode='clip' or 'wrap' for others)")
        found = found * side + part
    return found


# Into an array: it becomes the changed one.


def _into(target: Any, result: Array) -> None:
    target._become(_api.reshape(result, target.shape))


def _values(given: Any, target: Array, name: str) -> Array:
    """Values to put into an array, as one line of its dtype."""
    values = ravel(_api.asarray(_array(given, target), device=target._device))
    if values.dtype.kind == "c" and target.dtype.kind != "c":
        raise TypeError(f"np.{name}: {values.dtype} does not fit into an array of {target.dtype} (take the real part)")
    if name in ("place", "putmask") and isinstance(given, Array | np.ndarray):
        castable(values.dtype, target.dtype, "safe", f"np.{name}")
    return values.astype(target.dtype)  # type: ignore[no-any-return]


@_numpys
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> Any:
    if a.ndim < 2:
        raise ValueError(f"fill_diagonal needs an array of at least two axes; this one has {a.ndim}")
    if a.ndim > 2 and len(set(a.shape)) != 1:
        raise ValueError("a diagonal of more than two axes needs axes of equal length")
    if a.ndim == 2:
        step, end = a.shape[1] + 1, a.size if wrap else min(a.size, a.shape[1] * a.shape[1])
    else:
        step, end = 1 + sum(math.prod(a.shape[:place]) for place in range(1, a.ndim)), a.size
    flat, count = ravel(a), len(range(0, end, step))
    values = _values(val, a, "fill_diagonal")
    flat[0:end:step] = resize(values, count) if values.size > 1 else values
    _into(a, flat)


@_numpys
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> Any:
    places, values = ravel(ind), _values(v, a, "put")
    if places.size and places.dtype.kind not in "iu":
        raise TypeError(f"np.put: places are whole numbers, not {places.dtype}")
    if not places.size or not values.size:
        return
    if mode in ("wrap", "clip"):
        places = places % a.size if mode == "wrap" else _api.clip(places, 0, a.size - 1)
    elif mode != "raise":
        raise ValueError(f"mode is 'raise', 'wrap' or 'clip', not {mode!r}")
    flat = ravel(a)
    flat[places] = resize(values, places.size)
    _into(a, flat)


@_numpys
def place(arr: Any, mask: Any, vals: Any) -> Any:
    if mask.size != arr.size:
        raise ValueError(f"np.place: the mask has {mask.size} elements, and the array {arr.size}")
    places, values = flatnonzero(mask), _values(vals, arr, "place")
    if not places.size:
        return
    if not values.size:
        raise ValueError("place has no values to put there")
    flat = ravel(arr)
    flat[places] = resize(values, places.size)
    _into(arr, flat)


@_numpys
def putmask(a: Any, mask: Any, values: Any) -> Any:
    if mask.size != a.size:
        raise ValueError(f"np.putmask: the mask has {mask.size} elements, and the array {a.size}")
    values = _values(values, a, "putmask")
    if not values.size:
        return
    _into(a, _api.where(ravel(mask != 0 if mask.dtype.kind != "b" else mask), resize(values, a.size), ravel(a)))


@_numpys
def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> Any:
    x = ravel(arr) if axis is None else arr
    axis = 0 if axis is None else _api._axis(axis, x.ndim)
    places = indices
    if places.ndim != x.ndim:
        raise ValueError(f"put_along_axis: the places have {places.ndim} axes, and the array {x.ndim}")
    shape = np.broadcast_shapes((*x.shape[:axis], 1, *x.shape[axis + 1 :]), places.shape)
    places = _api.broadcast_to(places, shape)
    grid = [
        _api.reshape(_api.arange(side, device=arr._device), (1,) * at + (side,) + (1,) * (x.ndim - at - 1)) if at != axis else places
        for at, side in enumerate(x.shape)
    ]
    changed = +x
    changed[tuple(_api.broadcast_to(one, shape) for one in grid)] = _api.broadcast_to(
        _api.asarray(_array(values, arr), device=arr._device).astype(arr.dtype), shape
    )
    _into(arr, changed)


@_numpys
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> Any:
    if not isinstance(dst, Array):
        np.copyto(dst, np.asarray(src), casting=casting, where=_read(where))  # type: ignore[arg-type]
        return
    if isinstance(src, Array | np.ndarray | np.generic):
        castable(src.dtype, dst.dtype, casting, "casting")
    values = _api.broadcast_to(_api.asarray(_array(src, dst), device=dst._device).astype(dst.dtype), dst.shape)
    _into(dst, values if where is True else _api.where(_api.asarray(where, device=dst._device), values, dst))


# Sets.


@_numpys
def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None) -> Any:
    if kind not in (None, "sort", "table"):
        raise ValueError(f"kind is 'sort', 'table' or None, not {kind!r}")
    element, among = _together((element, ravel(test_elements)))
    if not among.size:
        return _api.full(element.shape, bool(invert), device=element._device)
    ordered, flat = _api.sort(among), ravel(element)
    places = _api.clip(_api.searchsorted(ordered, flat), 0, ordered.size - 1)
    found = reshape(_api.take(ordered, places, axis=0) == flat, element.shape)
    return _api.logical_not(found) if invert else found


FUNCTIONS["in1d"] = lambda ar1, ar2, assume_unique=False, invert=False, kind=None: isin(ravel(ar1), ar2, assume_unique, invert, kind=kind)


@_numpys
def union1d(ar1: Any, ar2: Any) -> Any:
    return unique(concatenate([ravel(one) for one in _together((ar1, ar2))]))


def _of_one(x: Any, is_unique: bool) -> Array:
    return ravel(x) if is_unique else unique(ravel(x))  # type: ignore[no-any-return]


@_numpys
def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    ar1, ar2 = (ravel(one) for one in _together((ar1, ar2)))
    if return_indices:
        values, first = unique(ar1, return_index=True)
        others, second = unique(ar2, return_index=True)
        here, there = flatnonzero(isin(values, others)), flatnonzero(isin(others, values))
        return _api.take(values, here, axis=0), _api.take(first, here, axis=0), _api.take(second, there, axis=0)
    values = _api.sort(_of_one(ar1, assume_unique))
    return values[isin(values, ar2)]


@_numpys
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    values = _of_one(ar1, assume_unique)
    return values[isin(values, ar2, invert=True)]


@_numpys
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    ar1, ar2 = (_of_one(one, assume_unique) for one in _together((ar1, ar2)))
    return _api.sort(concatenate([ar1[isin(ar1, ar2, invert=True)], ar2[isin(ar2, ar1, invert=True)]]))


for _name in ("unique_all", "unique_counts", "unique_inverse"):
    FUNCTIONS[_name] = getattr(_api, _name)


@_numpys
def lexsort(keys: Any, axis: int = -1) -> Any:
    keys = list(_api.unstack(keys)) if isinstance(keys, Array) else _lines(keys)
    if not keys:
        raise TypeError("lexsort needs at least one key")
    order = _api.argsort(keys[0], axis=axis)
    for key in keys[1:]:
        # Every order is stable: the later key decides.
        order = _api.take_along_axis(order, _api.argsort(_api.take_along_axis(key, order, axis=axis), axis=axis), axis=axis)
    return order


def _lines(keys: Any) -> list[Array]:
    beside = _first(keys)
    assert beside is not None
    return [_api.asarray(one, device=beside._device) for one in keys]


# Products.


@_numpys
def kron(a: Any, b: Any) -> Any:
    a, b = _together((a, b))
    rank = max(a.ndim, b.ndim)
    first, second = ((1,) * (rank - one.ndim) + one.shape for one in (a, b))
    left = reshape(a, tuple(side for one in first for side in (one, 1)))
    right = reshape(b, tuple(side for one in second for side in (1, one)))
    return reshape(left * right if a.dtype.kind != "b" else left & right, tuple(x * y for x, y in zip(first, second, strict=True)))


@_numpys
def vdot(a: Any, b: Any) -> Any:
    a, b = _together((ravel(a), ravel(b)))
    return tensordot(_api.conj(a) if a.dtype.kind == "c" else a, b, axes=1)


@_numpys
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = _together((a, b))
    a, b = _api.moveaxis(a, axisa, -1), _api.moveaxis(b, axisb, -1)
    if a.shape[-1] not in (2, 3) or b.shape[-1] not in (2, 3):
        raise ValueError(f"cross takes vectors of 2 or 3 elements, not of {a.shape[-1]} and {b.shape[-1]}")
    left, right = ([one[..., place] for place in range(one.shape[-1])] for one in (a, b))
    last = left[0] * right[1] - left[1] * right[0]
    if len(left) == len(right) == 2:
        return last
    # A vector of two elements has 0 as its third.
    if len(right) == 2:
        parts = [-(left[2] * right[1]), left[2] * right[0], last]
    elif len(left) == 2:
        parts = [left[1] * right[2], -(left[0] * right[2]), last]
    else:
        parts = [left[1] * right[2] - left[2] * right[1], left[2] * right[0] - left[0] * right[2], last]
    found = _api.stack(parts, axis=-1)
    return _api.moveaxis(found, -1, axisc) if found.ndim > 1 else found


@_numpys
def tril_indices_from(arr: Any, k: int = 0) -> Any:
    return _triangle(arr, np.tril_indices, k)


@_numpys
def triu_indices_from(arr: Any, k: int = 0) -> Any:
    return _triangle(arr, np.triu_indices, k)


def _triangle(arr: Any, of: Any, k: int) -> Any:
    if arr.ndim != 2:
        raise ValueError(f"a triangle is of a matrix, and this array has {arr.ndim} axes")
    return tuple(_api.asarray(one, device=arr._device) for one in of(arr.shape[0], k, arr.shape[1]))


@_numpys
def diag_indices_from(arr: Any) -> Any:
    if arr.ndim < 2:
        raise ValueError(f"a diagonal needs at least two axes; this array has {arr.ndim}")
    if len(set(arr.shape)) != 1:
        raise ValueError("a diagonal of more than two axes needs axes of equal length")
    return (_api.arange(arr.shape[0], device=arr._device),) * arr.ndim


@_numpys
def diagflat(v: Any, k: int = 0) -> Any:
    return FUNCTIONS["diag"](ravel(v), k)
