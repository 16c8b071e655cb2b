"""NumPy's functions of Cantus's arrays that go by order and by places: quantiles, histograms, interpolation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _api, _dtypes, linalg
from ._array import Array, call, wrap
from ._numpy import FUNCTIONS, _array, _first, _floating, _numpys, _read, _remedy, _together


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    return tuple(_api._axis(one, ndim) for one in (axis if isinstance(axis, tuple | list) else (axis,)))


def _rows(a: Array, axes: tuple[int, ...]) -> Array:
    """Joins these axes into the last one."""
    others = [place for place in range(a.ndim) if place not in axes]
    moved = _api.permute_dims(a, (*others, *axes))
    return _api.reshape(moved, (*(a.shape[place] for place in others), math.prod(a.shape[place] for place in axes)))


def _apart(place: Any, xp: Any) -> tuple[Any, Any, Any]:
    """The place below, the one above, and how far between them."""
    below = xp.floor(place)
    return below, below + 1, place - below


def _weighed(alpha: float, beta: float) -> Callable[[Any, Any, Any], tuple[Any, Any, Any]]:
    """The continuous methods of Hyndman and Fan (1996), by their two numbers."""
    return lambda n, q, xp: _apart(n * q + (alpha + q * (1 - alpha - beta)) - 1, xp)


def _halved(place: Any, xp: Any) -> tuple[Any, Any, Any]:
    below, above, part = _apart(place, xp)
    return below, above, part * 0 + xp.where(part == 0, 0.5, 1.0)


def _stepped(place: Any, stays: Callable[[Any, Any], Any], xp: Any) -> tuple[Any, Any, Any]:
    """Returns one element: the one below where `stays` says so, else the next."""
    below, above, part = _apart(place, xp)
    chosen = xp.where(stays(part, below), below, above)
    return chosen, chosen, part * 0


# By the number of elements and the quantile: the place below, the one above, and how far between them.
_PLACES: dict[str, Callable[[Any, Any, Any], tuple[Any, Any, Any]]] = {
    "linear": lambda n, q, xp: _apart((n - 1) * q, xp),
    "lower": lambda n, q, xp: (xp.floor((n - 1) * q),) * 2 + (n * 0.0,),
    "higher": lambda n, q, xp: (xp.ceil((n - 1) * q),) * 2 + (n * 0.0,),
    "midpoint": lambda n, q, xp: (xp.floor((n - 1) * q), xp.ceil((n - 1) * q), n * 0.0 + 0.5),
    "nearest": lambda n, q, xp: (xp.round((n - 1) * q),) * 2 + (n * 0.0,),
    "inverted_cdf": lambda n, q, xp: _stepped(n * q - 1, lambda part, below: part == 0, xp),
    "closest_observation": lambda n, q, xp: _stepped(n * q - 1.5, lambda part, below: (part == 0) & (below % 2 == 1), xp),
    "averaged_inverted_cdf": lambda n, q, xp: _halved(n * q - 1, xp),
    "interpolated_inverted_cdf": _weighed(0, 1),
    "hazen": _weighed(0.5, 0.5),
    "weibull": _weighed(0, 0),
    "median_unbiased": _weighed(1 / 3, 1 / 3),
    "normal_unbiased": _weighed(3 / 8, 3 / 8),
}
# Their results are elements.
_ELEMENTS = {"lower", "higher", "nearest", "inverted_cdf", "closest_observation"}


def _between(low: Array, high: Array, part: Any) -> Array:
    """Interpolates between two values; equal ones, infinities included, are returned as they are."""
    if isinstance(part, float) and part in (0.0, 1.0):
        return high if part else low
    apart = high - low
    # Two numbers whose difference has none are weighed.
    way = _api.where(_api.isinf(apart), low * (1 - part) + high * part, low + apart * part)
    way = _api.where(low == high, low, way)
    return way if isinstance(part, float) else _api.where(part == 0, low, _api.where(part == 1, high, way))


def _quantiles(name: str, a: Array, q: Any, axis: Any, method: str, keepdims: bool, skips: bool) -> Array:
    if method not in _PLACES:
        raise _remedy(f"np.{name} with method={method!r}")
    asked = np.asarray(q, dtype="f8")
    if not ((asked >= 0) & (asked <= 1)).all():
        raise ValueError("quantiles must be from 0 to 1 (percentiles from 0 to 100)")
    axes = _axes(axis, a.ndim)
    ordered = _api.sort(_rows(a.astype(_floating(a.dtype, a), copy=False), axes), axis=-1)
    count, floating = ordered.shape[-1], ordered.dtype
    if not count:
        # As NumPy: of nothing it is NaN.
        sides = tuple(side for place, side in enumerate(a.shape) if place not in axes)
        kept = tuple(1 if place in axes else side for place, side in enumerate(a.shape))
        return _api.full((*asked.shape, *(kept if keepdims else sides)), math.nan, dtype=floating, device=a._device)
    # Order puts NaN last.
    missing = _api.isnan(ordered)
    found = []
    if skips:
        wide = _dtypes.float64 if a._device.has(_dtypes.float64) else _dtypes.float32
        known = _api.sum(_api.logical_not(missing).astype(wide), axis=-1, keepdims=True)
        for one in asked.ravel().tolist():
            below, above, part = _PLACES[method](known, one, _api)
            last = _api.maximum(known - 1, known * 0)
            places = (_api.minimum(_api.maximum(place, known * 0), last).astype(_dtypes.int32) for place in (below, above))
            low, high = (_api.take_along_axis(ordered, place, axis=-1)[..., 0] for place in places)
            found.append(_between(low, high, part[..., 0].astype(floating)))
    else:
        lost = missing[..., -1]
        nan = _api.full((), math.nan, dtype=floating, device=a._device)
        for one in asked.ravel().tolist():
            below, above, part = _PLACES[method](np.float64(count), one, np)
            low, high = (ordered[..., min(max(int(place), 0), count - 1)] for place in (below, above))
            found.append(_api.where(lost, nan, _between(low, high, float(part))))
    kept = tuple(1 if place in axes else side for place, side in enumerate(a.shape))
    if keepdims:
        found = [_api.reshape(one, kept) for one in found]
    if a.dtype.kind in "iu" and method in _ELEMENTS:
        found = [one.astype(a.dtype) for one in found]
    return _api.reshape(_api.stack(found), (*asked.shape, *found[0].shape)) if asked.ndim else found[0]


def _family(name: str, skips: bool) -> None:
    def quantile(a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False, weights: Any = None) -> Any:
        if weights is not None:
            raise _remedy(f"np.{name} with weights")
        if a.dtype.kind == "b":
            raise TypeError(f"np.{name}: truths have no quantiles (cast first)")
        scale = 100 if "percentile" in name else 1
        # As NumPy: a number of Python's leaves the dtype, and so does a method that gives elements; other quantiles make it float64.
        if not isinstance(q, int | float) and method not in _ELEMENTS and a.dtype.kind == "f" and a._device.has(_dtypes.float64):
            a = a.astype(_dtypes.float64, copy=False)
        return _quantiles(name, a, np.asarray(q, "f8") / scale, axis, method, keepdims, skips)

    quantile.__name__ = name
    _numpys(quantile)


for _name in ("quantile", "percentile", "nanquantile", "nanpercentile"):
    _family(_name, _name.startswith("nan"))


@_numpys
def median(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return _quantiles("median", a, 0.5, axis, "midpoint" if _count(a, axis) % 2 == 0 else "lower", keepdims, False)


@_numpys
def nanmedian(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return _quantiles("nanmedian", a, 0.5, axis, "linear", keepdims, True)


def _count(a: Array, axis: Any) -> int:
    return math.prod(a.shape[place] for place in _axes(axis, a.ndim))


def _only(kind: str) -> None:
    if kind != "introselect":
        raise ValueError(f"kind is 'introselect', not {kind!r}")


def _parted(a: Array, kth: Any, axis: int | None, kind: str) -> tuple[Array, int]:
    """An array to put in order, which is parted everywhere then."""
    _only(kind)
    a, axis = (a, axis) if axis is not None else (_api.reshape(a, (-1,)), -1)
    side = a.shape[_api._axis(axis, a.ndim)] if a.ndim else 1
    places = np.asarray(_read(kth))
    if places.dtype.kind not in "iu":
        raise TypeError(f"kth is a place, a whole number, not {places.dtype}")
    if ((places < -side) | (places >= side)).any():
        raise ValueError(f"kth={_read(kth)} is out of bounds: the axis has {side} elements")
    return a, axis


@_numpys
def partition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect") -> Any:
    a, axis = _parted(a, kth, axis, kind)
    return _api.sort(a, axis=axis)


@_numpys
def argpartition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect") -> Any:
    a, axis = _parted(a, kth, axis, kind)
    return _api.argsort(a, axis=axis)


# Counts.


def _counts(places: Array, size: int, weights: Array | None) -> Array:
    """Counts each place below `size`, or sums the weights of each."""
    places = _api.reshape(places, (-1,)).astype(_dtypes.int32)
    if weights is None:
        return call(places, "bincount", ints=[size]).astype(_dtypes.int64)
    if weights.dtype.kind == "c":
        parts = [_counts(places, size, part) for part in (weights.real, weights.imag)]
        return wrap(parts[0]._x.binary("complex", parts[1]._x), places._device)
    wide = _dtypes.float64 if places._device.has(_dtypes.float64) else _dtypes.float32
    sums = _api.zeros((size,), dtype=wide, device=places._device)
    return call(sums, "scatter_add", [places, _api.reshape(weights, (-1,)).astype(wide)], ints=[0])


@_numpys
def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    if x.dtype.kind == "b" or x.size == 0 and x.dtype.kind == "f":
        x = x.astype(_dtypes.int32)
    if x.dtype.kind not in "iu" or x.ndim != 1:
        raise TypeError(f"np.bincount counts whole numbers along one axis, not {x.dtype} of the shape {x.shape}")
    least, greatest = x._x.extent() or (0, -1)
    if least < 0:
        raise ValueError("np.bincount needs non-negative numbers")
    if weights is not None and weights.shape != x.shape:
        raise ValueError(f"np.bincount: weights have the shape {weights.shape}, and the numbers {x.shape}")
    size = max(minlength, greatest + 1)
    if not size or not x.size:
        kind = _api.default_int(x._device) if weights is None else _floating(_dtypes.int32, x)
        return _api.zeros((size,), dtype=kind, device=x._device)
    return _counts(x, size, weights)


def _edges(a: Array, bins: Any, limits: Any) -> Any:
    if isinstance(bins, str):
        raise _remedy(f"np.histogram with bins by {bins!r}")
    bins = np.asarray(_read(bins))
    if bins.ndim:
        if bins.ndim > 1:
            raise ValueError("np.histogram: bins is a number, or a line of edges")
        if (bins[:-1] > bins[1:]).any():
            raise ValueError("the edges of bins must increase")
        return bins
    if bins.dtype.kind not in "iu":
        raise TypeError(f"np.histogram: the number of bins is whole, not {bins.dtype}")
    low, high = limits if limits is not None else (float(_api.min(a)), float(_api.max(a))) if a.size else (0.0, 1.0)
    return np.histogram_bin_edges(np.asarray([low, high], a.dtype.numpy if a.dtype.kind == "f" else "f8"), int(bins), (low, high))


@_numpys
def histogram(a: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None) -> Any:
    edges = _api.asarray(_edges(a, bins, range), device=a._device)
    if weights is not None and weights.shape != a.shape:
        raise ValueError(f"np.histogram: weights have the shape {weights.shape}, and the numbers {a.shape}")
    x, line = _together((_api.reshape(a, (-1,)), edges))
    size = edges.size - 1
    if weights is None and np.ndim(bins) == 0 and line.dtype.kind == "f" and line.dtype.itemsize <= 4:
        counts = call(x, "histogram_by", [line], floats=[float(line[-1])]).astype(_dtypes.int64)
    else:
        places = _api.searchsorted(line, x, side="right")
        # The last bin holds its upper end too; what is outside of all, or no number, is counted behind them.
        places = _api.where(x == line[-1], _api.full((), size, dtype=places.dtype, device=a._device), places) - 1
        inside = (x >= line[0]) & (x <= line[-1])
        places = _api.where(inside, places, _api.full((), size, dtype=places.dtype, device=a._device))
        counts = _counts(places, size + 1, weights)[:size]
    counts = counts if weights is None else counts.astype(weights.dtype, copy=False)
    if density:
        wide = _dtypes.float64 if a._device.has(_dtypes.float64) else _dtypes.float32
        counts = counts.astype(wide)
        counts = counts / _api.diff(edges).astype(wide) / _api.sum(counts)
    return counts, edges


@_numpys
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    x, bins = _together((x, bins))
    if bins.ndim != 1:
        raise ValueError(f"np.digitize: bins is one axis, not of the shape {bins.shape}")
    if bins.size > 1 and not bool(_api.all(bins[1:] >= bins[:-1])) and not bool(_api.all(bins[1:] <= bins[:-1])):
        raise ValueError("np.digitize: bins must increase or decrease")
    if bins.size > 1 and bool(bins[0] > bins[-1]):
        return bins.size - _api.searchsorted(_api.flip(bins), x, side="left" if right else "right")
    return _api.searchsorted(bins, x, side="left" if right else "right")


# Along an axis.


@_numpys
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    if fp.dtype.kind == "c":
        # As pairs of real numbers; what lies beyond the ends too.
        parts = []
        for of in ("real", "imag"):
            ends = (None if one is None else getattr(np.asarray(_read(one)), of).item() for one in (left, right))
            parts.append(interp(x, xp, getattr(fp, of), *ends, period))
        return wrap(parts[0]._x.binary("complex", parts[1]._x), x._device)
    if any(np.iscomplexobj(_read(one)) for one in (left, right) if one is not None):
        raise TypeError("np.interp: left and right are real numbers beside real ones")
    if xp.ndim != 1 or fp.ndim != 1 or xp.size != fp.size:
        raise ValueError(f"np.interp: xp and fp are lines of one length, not of the shapes {xp.shape} and {fp.shape}")
    if not xp.size:
        raise ValueError("np.interp: xp has no elements")
    wide = _dtypes.float64 if x._device.has(_dtypes.float64) else _dtypes.float32
    x, xp, fp = (one.astype(wide) for one in (x, xp, fp))
    flat = _api.reshape(x, (-1,))
    if period is not None:
        # Around: the places in order, one of them before and one behind.
        if period == 0:
            raise ValueError("period must not be 0")
        period, left, right = abs(float(period)), None, None
        flat, xp = flat % period, xp % period
        order = _api.argsort(xp)
        xp, fp = _api.take(xp, order, axis=0), _api.take(fp, order, axis=0)
        xp, fp = _api.concat([xp[-1:] - period, xp, xp[:1] + period]), _api.concat([fp[-1:], fp, fp[:1]])
    last = xp.size - 1
    below = _api.clip(_api.searchsorted(xp, flat, side="right") - 1, 0, max(last - 1, 0))
    above = _api.clip(below + 1, 0, last)
    x0, x1, y0, y1 = (_api.take(of, places) for of, places in ((xp, below), (xp, above), (fp, below), (fp, above)))
    width = x1 - x0
    slope = (y1 - y0) / _api.where(width == 0, width + 1, width)
    # From the place below, then from the one above, as NumPy: between infinities one of them may be a number.
    found = y0 + slope * (flat - x0)
    found = _api.where(_api.isnan(found), y1 + slope * (flat - x1), found)
    level = (flat == x0) | (_api.isnan(found) & (y0 == y1) & ~_api.isnan(flat))
    found = _api.where(level, y0, found)
    first = fp[0] if left is None else _api.full((), left, dtype=wide, device=x._device)
    end = fp[-1] if right is None else _api.full((), right, dtype=wide, device=x._device)
    found = _api.where(flat < xp[0], first, _api.where(flat > xp[-1], end, _api.where(flat == xp[-1], fp[-1], found)))
    return _api.reshape(found, x.shape)


@_numpys
def gradient(f: Any, *spacing: Any, axis: Any = None, edge_order: int = 1) -> Any:
    axes = _axes(axis, f.ndim)
    steps = list(spacing) or [1.0]
    steps = steps * len(axes) if len(steps) == 1 else steps
    if len(steps) != len(axes):
        raise TypeError(f"gradient takes one step, or one for each of {len(axes)} axes, not {len(steps)}")
    if edge_order not in (1, 2):
        raise ValueError(f"edge_order is 1 or 2, not {edge_order}")
    if f.dtype.kind == "b":
        raise TypeError("truths have no difference (cast first, or use ^)")
    f = f.astype(_floating(f.dtype, f), copy=False)
    found = [_slope(f, place, step, edge_order) for place, step in zip(axes, steps, strict=True)]
    return found[0] if len(found) == 1 else tuple(found)


def _slope(f: Array, axis: int, step: Any, edge_order: int) -> Array:
    """Differences of second order inside, of `edge_order` at both ends; `step` is one number, or a place for each element."""
    side = f.shape[axis]
    if side < edge_order + 1:
        raise ValueError(f"gradient takes {edge_order + 1} elements along an axis for edge_order={edge_order}, and axis {axis} has {side}")

    def part(start: int | None, stop: int | None) -> Array:
        return f[(slice(None),) * axis + (slice(start, stop),)]

    places = np.asarray(_read(step), "f8")
    if places.ndim and places.shape != (side,):
        raise ValueError(f"axis {axis} has {side} elements, and places of the shape {places.shape} were given for it")
    widths = np.diff(places) if places.ndim else np.full(side - 1, float(places))

    def along(values: Any) -> Array:
        given = _api.asarray(np.asarray(values).astype(f.dtype.numpy), device=f._device)
        return _api.reshape(given, (-1,) + (1,) * (f.ndim - axis - 1))

    inner = []
    if side > 2:
        if (widths == widths[0]).all():
            inner = [(part(2, None) - part(None, -2)) / (2 * float(widths[0]))]
        else:
            # Divided differences of unequal steps.
            ahead, behind = widths[:-1], widths[1:]
            below, here, above = -behind / (ahead * (ahead + behind)), (behind - ahead) / (ahead * behind), ahead / (behind * (ahead + behind))
            inner = [along(below) * part(None, -2) + along(here) * part(1, -1) + along(above) * part(2, None)]
    if edge_order == 1:
        ends = [(part(1, 2) - part(0, 1)) / float(widths[0]), (part(-1, None) - part(-2, -1)) / float(widths[-1])]
    else:
        one, two = float(widths[0]), float(widths[1])
        first = part(0, 1) * (-(2 * one + two) / (one * (one + two))) + part(1, 2) * ((one + two) / (one * two))
        first = first - part(2, 3) * (one / (two * (one + two)))
        one, two = float(widths[-2]), float(widths[-1])
        last = part(-3, -2) * (two / (one * (one + two))) - part(-2, -1) * ((two + one) / (one * two))
        last = last + part(-1, None) * ((2 * two + one) / (two * (one + two)))
        ends = [first, last]
    return _api.concat([ends[0], *inner, ends[1]], axis=axis)


@_numpys
def diag(v: Any, k: int = 0) -> Any:
    if v.ndim == 2:
        return linalg.diagonal(v, offset=k)
    if v.ndim != 1:
        raise ValueError(f"np.diag takes a line or a matrix, and this array has {v.ndim} axes")
    column = call(v, "pad", ints=[max(-k, 0), max(k, 0)], floats=[0.0])[:, None]
    side = column.shape[0]
    where = _api.eye(side, k=k, dtype=_dtypes.float32, device=v._device) != 0
    return _api.where(where, column, _api.zeros((), dtype=v.dtype, device=v._device))


@_numpys
def apply_along_axis(func1d: Any, axis: int, arr: Any, *arguments: Any, **keywords: Any) -> Any:
    moved = _api.moveaxis(arr, axis, -1)
    rows = _api.reshape(moved, (-1, moved.shape[-1]))
    found = _api.stack([_api.asarray(func1d(row, *arguments, **keywords), device=arr._device) for row in rows])
    inner = found.shape[1:]
    found = _api.reshape(found, (*moved.shape[:-1], *inner))
    ahead = axis % arr.ndim
    return _api.moveaxis(found, list(range(found.ndim - len(inner), found.ndim)), list(range(ahead, ahead + len(inner)))) if inner else found
