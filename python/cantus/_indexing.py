"""Parts of arrays: integers, slices, Ellipsis, None, masks and arrays of integers; and arrays with other elements there."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from . import _dtypes
from ._array import Array, binary, call, filled, late, wrap


def _as_array(part: Any, like: Array) -> Any:
    """Lists, ranges and NumPy arrays as arrays; a Python bool is a mask without axes."""
    from . import _api

    if isinstance(part, np.ndarray | list | range | bool | np.bool_):
        part = np.asarray(part)
        if part.size == 0 and part.dtype == np.float64:
            part = part.astype(np.int64)
        return _api.asarray(part, device=like._device)
    return part


def _fits(mask: Array, shape: tuple[int, ...], axis: int) -> None:
    """A mask has the lengths of the axes that it chooses from, whatever the form of the key."""
    for place, side in enumerate(mask.shape):
        if axis + place >= len(shape):
            raise IndexError(f"the mask has {mask.ndim} axes, and there are {len(shape) - axis} to choose from")
        # As NumPy: an axis of no length selects nothing of any.
        if side not in (shape[axis + place], 0):
            raise IndexError(f"the mask has {side} elements along axis {axis + place} of the array, which has {shape[axis + place]}")


def _is_mask(part: Any) -> bool:
    return isinstance(part, Array) and part.dtype.kind == "b"


def _parts(x: Array, key: Any) -> list[Any]:
    """One part for each axis of `x`, with None where a new axis goes; masks as places."""
    parts = [_as_array(part, x) for part in (key if isinstance(key, tuple) else (key,))]
    if any(_is_mask(part) and part.ndim == 0 for part in parts):
        raise IndexError("a mask without axes is an index only by itself (use cantus.where)")
    takes = [part.ndim if _is_mask(part) else int(part is not None and part is not Ellipsis) for part in parts]
    rests = [place for place, part in enumerate(parts) if part is Ellipsis]
    if len(rests) > 1:
        raise IndexError("there is more than one ellipsis")
    left = x.ndim - sum(takes)
    if left < 0:
        raise IndexError(f"there are {sum(takes)} indices for {x.ndim} axes")
    at = rests[0] if rests else len(parts)
    parts[at : at + 1], takes[at : at + 1] = [slice(None)] * left, [1] * left
    plain, axis = [], 0
    for part, taken in zip(parts, takes, strict=True):
        if _is_mask(part):
            _fits(part, x.shape, axis)
            plain.extend(_places(part))
        else:
            plain.append(part)
        axis += taken
    return plain


def _places(mask: Array) -> list[Array]:
    """The places where a mask is true, an array for each axis."""
    rows = call(mask, "nonzero")
    return [
        call(call(rows, "slice", ints=[0, rows.shape[0], 1, axis, axis + 1, 1]), "reshape", ints=[rows.shape[0]])
        for axis in range(mask.ndim)
    ]


class Rows:
    """The rows of an array where a mask is true, not looked for yet: a sum or mean down the rows need not know how many they are."""

    __slots__ = ("mask", "x")

    def __init__(self, x: Array, mask: Array) -> None:
        self.x = wrap(x._x.kept(), x._device)
        self.mask = wrap(mask._x.kept(), mask._device)

    def __call__(self) -> Any:
        """Looks for them, and gives what is recorded."""
        if self.x.ndim == 1:
            return call(self.x, "masked_select", [self.mask])._x
        return _gathered(self.x, [(0, _places(self.mask)[0])])._x

    def filled(self) -> Array:
        """The array with zeros in the rows that are not selected."""
        beside = call(self.mask, "reshape", ints=[self.mask.shape[0]] + [1] * (self.x.ndim - 1))
        return wrap(beside._x.select(self.x._x, filled((), 0, self.x.dtype, self.x._device)._x), self.x._device)


def read(x: Array, key: Any) -> Array:
    """x[key]."""
    key = _as_array(key, x)
    if _is_mask(key):
        if key.ndim == 1 and x.ndim and x.size and key.shape[0] == x.shape[0] and key._device is x._device:
            return late(Rows(x, key), x._device)
        if key.ndim == x.ndim and key.ndim and key.shape == x.shape:
            return call(x, "masked_select", [key]) if x.size else call(x, "reshape", ints=[0])
        if key.ndim == 0:
            kept = 1 if bool(key) else 0
            return call(call(x, "reshape", ints=[1, *x.shape]), "slice", ints=[0, kept, 1])
        _fits(key, x.shape, 0)
    parts = _parts(x, key)
    if any(isinstance(part, Array) for part in parts):
        parts = _with_places(x, parts)
    ranges: list[int] = []
    turned: list[int] = []
    shape: list[int] = []
    # Where arrays of places are, counted in the axes of the result.
    lists: list[tuple[int, Array]] = []
    plain = True
    axis = 0
    for part in parts:
        if part is None:
            shape.append(1)
            plain = False
            continue
        side = x.shape[axis]
        if isinstance(part, slice):
            start, stop, step = part.indices(side)
            count = len(range(start, stop, step))
            if step < 0:
                start, stop, step = start + (count - 1) * step, start + 1, -step
                turned.append(axis)
            if count == 0:
                start = stop = 0
            ranges += [start, max(start, min(stop, start + (count - 1) * step + 1)), step]
            shape.append(count)
        elif isinstance(part, Array):
            if part.dtype.kind not in "iu":
                raise IndexError(f"an index must have integers or bool, not {part.dtype}")
            lists.append((len(shape), part))
            ranges += [0, side, 1]
            shape.append(side)
        else:
            try:
                place = operator.index(part)
            except TypeError:
                raise IndexError(
                    f"{part!r} is not an index (use integers, slices, ..., None, masks and arrays of integers)"
                ) from None
            if not -side <= place < side:
                raise IndexError(f"index {place} is out of bounds for axis {axis} with size {side}")
            place %= side
            ranges += [place, place + 1, 1]
            plain = False
        axis += 1
    result = call(x, "slice", ints=ranges) if ranges and not _whole(ranges, x.shape) else wrap(x._x, x._device)
    if turned:
        result = call(result, "flip", ints=turned)
    if not plain:
        result = call(result, "reshape", ints=shape)
    return _gathered(result, lists) if lists else result


def _with_places(x: Array, parts: list[Any]) -> list[Any]:
    """Turns integers next to arrays of places into such arrays."""
    axis, result = 0, []
    for part in parts:
        if part is not None and not isinstance(part, Array | slice):
            place, side = operator.index(part), x.shape[axis]
            if not -side <= place < side:
                raise IndexError(f"index {place} is out of bounds for axis {axis} with size {side}")
            part = filled((), place % side, _dtypes.int32, x._device)
        axis += part is not None
        result.append(part)
    return result


def _whole(ranges: list[int], shape: tuple[int, ...]) -> bool:
    return all(ranges[3 * axis] == 0 and ranges[3 * axis + 1] == side and ranges[3 * axis + 2] == 1 for axis, side in enumerate(shape))


def within(places: Array, side: int, what: str, least: int | None = None) -> Array:
    """Places of an axis as the core takes them. One out of range is an `IndexError`: now, where they are computed on the CPU, else when what depends on
    them is read.
    """
    dtype = places.dtype
    if dtype.kind not in "iu":
        raise IndexError(f"an index must have integers or bool, not {dtype}")
    low = -side if dtype.kind == "i" and least is None else 0
    checked = wrap(places._x.checked(low, side - 1, what), places._device)
    return checked if dtype.core in ("i32", "u32") else checked._cast("u32" if dtype.kind == "u" else "i32")


def _gathered(x: Array, lists: list[tuple[int, Array]]) -> Array:
    """The elements that arrays of places name: NumPy's rule says where their axes go."""
    if len(lists) == 1:
        axis, places = lists[0]
        if x.shape[axis] == 0:
            if places.size:
                raise IndexError(f"axis {axis} has no elements")
            return call(filled((), 0, x.dtype, x._device), "broadcast_to", ints=[*x.shape[:axis], *places.shape, *x.shape[axis + 1 :]])
        return call(x, "take", [within(places, x.shape[axis], f"axis {axis}")], [axis])
    axes = [axis for axis, _ in lists]
    joined = math.prod(x.shape[axis] for axis in axes)
    shape = np.broadcast_shapes(*(places.shape for _, places in lists))
    flat: Any = None
    for axis, places in lists:
        side = x.shape[axis]
        if not side and places.size:
            raise IndexError(f"axis {axis} has no elements")
        at = within(places, side, f"axis {axis}").astype(_dtypes.int32, copy=False)
        if places.dtype.kind == "i":
            at = wrap((at < 0)._x.call("select", [(at + side)._x, at._x], [], [])[0], x._device)
        flat = at if flat is None else binary("add", binary("mul", flat, filled((), side, _dtypes.int32, x._device)), at)
    flat = call(flat, "broadcast_to", ints=shape)
    others = [axis for axis in range(x.ndim) if axis not in axes]
    together = axes == list(range(axes[0], axes[0] + len(axes)))
    front = axes[0] if together else 0
    order = others[:front] + axes + others[front:]
    moved = call(x, "permute", ints=order)
    sides = [x.shape[axis] for axis in others]
    moved = call(moved, "reshape", ints=[*sides[:front], joined, *sides[front:]])
    if joined == 0:
        return call(filled((), 0, x.dtype, x._device), "broadcast_to", ints=[*sides[:front], *shape, *sides[front:]])
    return call(moved, "take", [flat], [front])


def updated(x: Array, key: Any, value: Any) -> Array:
    """`x` with other elements at `key`."""
    from . import _api

    if isinstance(value, bool | int | float | complex) and not isinstance(value, np.generic):
        value = _api.asarray(value, dtype=x.dtype, device=x._device)
    elif type(value) is not Array:
        value = _api.asarray(value, device=x._device) if isinstance(value, np.ndarray | np.generic) else _api.asarray(value, dtype=x.dtype, device=x._device)
    if value.dtype is not x.dtype:
        # As NumPy: every real number fits, cut or rounded.
        if value.dtype.kind == "c" and x.dtype.kind != "c":
            raise TypeError(f"{value.dtype} does not fit into an array of {x.dtype} (take the real part: value.real)")
        value = value.astype(x.dtype)
    if (written := _box(x, key, value)) is not None:
        return written
    key = _as_array(key, x)
    if _is_mask(key) and value.ndim == 0 and key.shape == x.shape and x.size:
        return wrap(key._x.call("select", [value._x, x._x], [], [])[0], x._device)
    if x.size:
        places = call(wrap(x._device.engine.make("arange", [], [0.0, float(x.size), 1.0], "u32"), x._device), "reshape", ints=x.shape)
    else:
        places = filled(x.shape, 0, _dtypes.uint32, x._device)
    named = read(places, key)
    if value.ndim > named.ndim and all(side == 1 for side in value.shape[: value.ndim - named.ndim]):
        value = call(value, "reshape", ints=value.shape[value.ndim - named.ndim :])
    values = call(value, "broadcast_to", ints=named.shape)
    if named.size == 0:
        return x
    flat = call(x, "reshape", ints=[x.size])
    at = call(named, "reshape", ints=[named.size])
    result = call(flat, "scatter", [at, call(values, "reshape", ints=[named.size])], [0])
    return call(result, "reshape", ints=x.shape)


def _box(x: Array, key: Any, value: Array) -> Array | None:
    """`x` with other elements in a box, which integers and slices of step 1 name; None of other keys."""
    parts = key if type(key) is tuple else (key,)
    shape = x.shape
    ranges: list[tuple[int, int]] = []
    kept: list[int] = []
    rest = len(shape) - sum(part is not Ellipsis for part in parts)
    if sum(part is Ellipsis for part in parts) > 1:
        return None
    for part in parts:
        if part is Ellipsis:
            if len(ranges) + rest > len(shape) or rest < 0:
                return None
            for side in shape[len(ranges) : len(ranges) + rest]:
                ranges.append((0, side))
                kept.append(side)
            rest = 0
            continue
        if len(ranges) == len(shape):
            return None
        side = shape[len(ranges)]
        if type(part) is int:
            place = part + side if part < 0 else part
            if not 0 <= place < side:
                return None
            ranges.append((place, place + 1))
        elif type(part) is slice:
            start, stop, step = part.indices(side)
            if step != 1 or stop <= start:
                return None
            ranges.append((start, stop))
            kept.append(stop - start)
        else:
            return None
    for side in shape[len(ranges) :]:
        ranges.append((0, side))
        kept.append(side)
    if not x.size:
        return None
    if value.ndim > len(kept) and all(side == 1 for side in value.shape[: value.ndim - len(kept)]):
        value = call(value, "reshape", ints=value.shape[value.ndim - len(kept) :])
    values = value if value.shape == tuple(kept) else call(value, "broadcast_to", ints=kept)
    if all(start == 0 and stop == side for (start, stop), side in zip(ranges, shape, strict=True)):
        return values if values.shape == shape else call(values, "reshape", ints=shape)
    box = call(values, "reshape", ints=[stop - start for start, stop in ranges])
    return call(x, "slice_scatter", [box], ints=[end for pair in ranges for end in pair])
