"""NumPy's reductions, scans and what they do without NaN, of Cantus's arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _api, _dtypes
from ._array import Array, wrap
from ._numpy import FUNCTIONS, _array, _cast, _common, _floating, _numpys


def _masked(a: Array, where: Any, otherwise: Any) -> Array:
    """Returns the elements where a mask is true, and elsewhere the neutral element."""
    if where is True or where is np._NoValue:
        return a
    mask = _api.asarray(where, device=a._device)
    return _api.where(mask, a, _api.full((), otherwise, dtype=a.dtype, device=a._device))


def _begun(result: Array, initial: Any, join: Callable[[Array, Array], Array]) -> Array:
    if initial is np._NoValue or initial is None:
        return result
    return join(result, _initial(initial, result))


def _initial(initial: Any, beside: Array) -> Array:
    value = _api.asarray(initial, device=beside._device)
    if value.dtype.kind == "c" and beside.dtype.kind != "c":
        raise TypeError(f"initial is {value.dtype}, and the result {beside.dtype}")
    return value.astype(beside.dtype)


def _folded(name: str, nothing: int, join: Callable[[Array, Array], Array]) -> None:
    ours = getattr(_api, name)

    def folded(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, initial: Any = np._NoValue, where: Any = True) -> Any:
        kind = None if dtype is None else _dtypes.of(dtype)
        return _begun(ours(_masked(a, where, nothing), axis=axis, dtype=kind, keepdims=bool(keepdims)), initial, join)

    FUNCTIONS[name] = folded


_folded("sum", 0, lambda x, y: x + y)
_folded("prod", 1, lambda x, y: x * y)


def _truth(name: str, nothing: bool) -> None:
    ours = getattr(_api, name)

    def truth(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, where: Any = True) -> Any:
        if dtype is not None and _dtypes.of(dtype).kind != "b":
            raise TypeError(f"np.{name} returns bool and takes no other dtype")
        return ours(_masked(a if a.dtype.kind == "b" else a != 0, where, nothing), axis=axis, keepdims=bool(keepdims))

    FUNCTIONS[name] = truth


_truth("all", True)
_truth("any", False)


@_numpys
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return _api.count_nonzero(a, axis=axis, keepdims=bool(keepdims))


def _extreme(name: str) -> None:
    ours, join = getattr(_api, name), {"max": _api.maximum, "min": _api.minimum}[name]

    def extreme(a: Any, axis: Any = None, keepdims: bool = False, initial: Any = np._NoValue, where: Any = True) -> Any:
        if initial is np._NoValue:
            if where is not True:
                raise ValueError(f"np.{name} with where=... needs an initial value (initial=...)")
            return ours(a, axis=axis, keepdims=bool(keepdims))
        first = _initial(initial, a)
        empty = 0 in a.shape
        found = first if empty else ours(_masked(a, where, initial), axis=axis, keepdims=bool(keepdims))
        if empty:
            shape = np.sum(np.empty(a.shape, "?"), axis=axis, keepdims=bool(keepdims)).shape
            return _api.broadcast_to(first, shape)
        return join(found, first)

    FUNCTIONS[name] = FUNCTIONS[f"a{name}"] = extreme


_extreme("max")
_extreme("min")


def _chosen(a: Array, where: Any, axis: Any, keepdims: bool) -> tuple[Array, Array]:
    """The elements that a mask chooses, with zeros elsewhere, and how many they are along axes."""
    mask = _api.broadcast_to(_api.asarray(where, device=a._device) != 0, a.shape)
    return _masked(a, mask, 0), _api.count_nonzero(mask, axis=axis, keepdims=keepdims).astype(_dtypes.real_of(a.dtype))


@_numpys
def mean(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, where: Any = True) -> Any:
    if where is not True:
        chosen, count = _chosen(_cast(_api._floats(a), dtype), where, axis, keepdims)
        return _api.sum(chosen, axis=axis, keepdims=keepdims) / count
    return _cast(_api.mean(_cast(a, dtype if dtype is not None and _dtypes.of(dtype).kind in "fc" else None), axis=axis, keepdims=bool(keepdims)), dtype)


def _spread(name: str) -> None:
    ours = getattr(_api, name)

    def spread(
        a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False, correction: Any = None, where: Any = True
    ) -> Any:
        if dtype is not None and _dtypes.of(dtype).kind not in "fc":
            raise TypeError(f"np.{name} is computed in floats, and {dtype} is not a float dtype")
        if where is not True:
            a = _cast(_api._floats(a), dtype)
            chosen, count = _chosen(a, where, axis, True)
            apart = _masked(a - _api.sum(chosen, axis=axis, keepdims=True) / count, where, 0)
            squares = apart * apart if a.dtype.kind == "f" else _api.square(_api.real(apart)) + _api.square(_api.imag(apart))
            left = count - float(ddof if correction is None else correction)
            found = _api.sum(squares, axis=axis, keepdims=True) / _api.where(left > 0, left, math.nan)
            return _without_axes(found if name == "var" else _api.sqrt(found), a, axis, keepdims)
        return ours(_cast(a, dtype), axis=axis, correction=float(ddof if correction is None else correction), keepdims=bool(keepdims))

    FUNCTIONS[name] = spread


_spread("var")
_spread("std")


@_numpys
def argmax(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Any:
    return _api.argmax(a, axis=axis, keepdims=bool(keepdims))


@_numpys
def argmin(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Any:
    return _api.argmin(a, axis=axis, keepdims=bool(keepdims))


@_numpys
def cumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    x = _api.reshape(a, (-1,)) if axis is None else a
    return _api.cumulative_sum(x, axis=0 if axis is None else axis, dtype=None if dtype is None else _dtypes.of(dtype))


@_numpys
def cumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    x = _api.reshape(a, (-1,)) if axis is None else a
    return _api.cumulative_prod(x, axis=0 if axis is None else axis, dtype=None if dtype is None else _dtypes.of(dtype))


# Without NaN.


def _filled(a: Array, value: float) -> Array:
    if a.dtype.kind not in "fc":
        return a
    return _api.where(_api.isnan(a), _api.full((), value, dtype=a.dtype, device=a._device), a)


@_numpys
def nansum(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, initial: Any = np._NoValue, where: Any = True) -> Any:
    return FUNCTIONS["sum"](_filled(a, 0.0), axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)


def _extreme_of_numbers(name: str, least: float) -> None:
    def extreme(a: Any, axis: Any = None, keepdims: bool = False, initial: Any = np._NoValue, where: Any = True) -> Any:
        found = FUNCTIONS[name](_filled(a, least), axis=axis, keepdims=keepdims, initial=initial, where=where)
        if a.dtype.kind != "f" or initial is not np._NoValue:
            return found
        lost = _api.all(_api.isnan(a), axis=axis, keepdims=bool(keepdims))
        return _api.where(lost, _api.full((), math.nan, dtype=a.dtype, device=a._device), found)

    FUNCTIONS[f"nan{name}"] = extreme


_extreme_of_numbers("max", -math.inf)
_extreme_of_numbers("min", math.inf)


@_numpys
def nanprod(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, initial: Any = np._NoValue, where: Any = True) -> Any:
    return FUNCTIONS["prod"](_filled(a, 1.0), axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)


@_numpys
def nancumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    return cumsum(_filled(a, 0.0), axis, dtype)


@_numpys
def nancumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    return cumprod(_filled(a, 1.0), axis, dtype)


def _known(a: Array, axis: Any) -> Array:
    """Counts the numbers along axes, which stay."""
    return _api.sum(_api.logical_not(_api.isnan(a)).astype(_dtypes.real_of(a.dtype)), axis=axis, keepdims=True)


def _without_axes(found: Array, a: Array, axis: Any, keepdims: bool) -> Array:
    return found if keepdims else _api.squeeze(found, tuple(range(a.ndim)) if axis is None else axis)


@_numpys
def nanmean(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    if a.dtype.kind not in "fc":
        return mean(a, axis, dtype, keepdims)
    if dtype is not None and _dtypes.of(dtype).kind not in "fc":
        raise TypeError(f"np.nanmean of {a.dtype} has no dtype {dtype}")
    a = _cast(a, dtype)
    found = _api.sum(_filled(a, 0.0), axis=axis, keepdims=True) / _known(a, axis)
    return _without_axes(found, a, axis, bool(keepdims))


def _spread_of_numbers(name: str) -> None:
    def spread(a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False, correction: Any = None) -> Any:
        if a.dtype.kind not in "fc":
            return FUNCTIONS[name](a, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims, correction=correction)
        if dtype is not None and _dtypes.of(dtype).kind not in "fc":
            raise TypeError(f"np.nan{name} is computed in floats, and {dtype} is not a float dtype")
        a = _cast(a, dtype)
        count = _known(a, axis)
        apart = _filled(a - _api.sum(_filled(a, 0.0), axis=axis, keepdims=True) / count, 0.0)
        squares = apart * apart if a.dtype.kind == "f" else _api.square(_api.real(apart)) + _api.square(_api.imag(apart))
        left = count - float(ddof if correction is None else correction)
        found = _api.sum(squares, axis=axis, keepdims=True) / _api.where(left > 0, left, math.nan)
        return _without_axes(found if name == "var" else _api.sqrt(found), a, axis, bool(keepdims))

    FUNCTIONS[f"nan{name}"] = spread


_spread_of_numbers("var")
_spread_of_numbers("std")


def _place_of_numbers(name: str, least: float) -> None:
    ours = getattr(_api, name)

    def place(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Any:
        if a.dtype.kind in "fc" and bool(_api.any(_api.all(_api.isnan(a), axis=axis))):
            raise ValueError(f"np.nan{name}: a part of the array holds only NaN")
        return ours(_filled(a, least), axis=axis, keepdims=bool(keepdims))

    FUNCTIONS[f"nan{name}"] = place


_place_of_numbers("argmax", -math.inf)
_place_of_numbers("argmin", math.inf)


@_numpys
def ptp(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _api.max(a, axis=axis, keepdims=bool(keepdims)) - _api.min(a, axis=axis, keepdims=bool(keepdims))


@_numpys
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False) -> Any:
    if weights is None:
        found = mean(a, axis, keepdims=keepdims)
        if not returned:
            return found
        count = a.size / max(found.size, 1)
        return found, _api.full(found.shape, count, dtype=found.dtype, device=a._device)
    if weights.shape != a.shape:
        if axis is None:
            raise TypeError(f"weights have the shape {weights.shape} and the array {a.shape}: say along which axis they go")
        axes = [_api._axis(one, a.ndim) for one in (axis if isinstance(axis, tuple) else (axis,))]
        if weights.shape != tuple(a.shape[one] for one in axes):
            raise ValueError(f"weights have the shape {weights.shape}, which is not that of the axes {axes} of {a.shape}")
        order = sorted(range(len(axes)), key=lambda at: axes[at])
        weights = _api.permute_dims(weights, tuple(order))
        weights = _api.reshape(weights, tuple(side if place in axes else 1 for place, side in enumerate(a.shape)))
        weights = _api.broadcast_to(weights, a.shape)
    kind = _common((a, weights), a) if a.dtype.kind in "fc" else _common((a, weights, _api.zeros((), dtype=_floating(a.dtype, a), device=a._device)), a)
    a, weights = a.astype(kind, copy=False), weights.astype(kind, copy=False)
    scale = _api.sum(weights, axis=axis, keepdims=bool(keepdims))
    if bool(_api.any(scale == 0)):
        raise ZeroDivisionError("the weights add up to 0")
    found = _api.sum(a * weights, axis=axis, keepdims=bool(keepdims)) / scale
    return (found, scale) if returned else found


def _accumulated(name: str) -> None:
    ours = getattr(_api, name)

    def accumulated(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
        return ours(x, axis=axis, dtype=None if dtype is None else _dtypes.of(dtype), include_initial=include_initial)

    FUNCTIONS[name] = accumulated


_accumulated("cumulative_sum")
_accumulated("cumulative_prod")


@_numpys
def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    if x.dtype.kind == "c":
        parts = [nan_to_num(part, True, nan, posinf, neginf) for part in (x.real, x.imag)]
        found = wrap(parts[0]._x.binary("complex", parts[1]._x), x._device)
    elif x.dtype.kind == "f":
        most = _api.finfo(x.dtype).max
        found = x
        places = (_api.isnan(x), x == math.inf, x == -math.inf)
        for place, value in zip(places, (nan, most if posinf is None else posinf, -most if neginf is None else neginf), strict=True):
            found = _api.where(place, _api.asarray(_array(value, x), dtype=x.dtype, device=x._device), found)
    else:
        found = +x
    return found if copy else x._become(found)
