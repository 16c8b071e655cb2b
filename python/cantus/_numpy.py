"""NumPy's functions of Cantus's arrays, by NEP 13 and NEP 18: `np.sum(x)` computes on x's device and gives an array of Cantus. Dtypes are those
that NumPy would give. What is not here is an error: nothing turns into an array of NumPy's in silence.
"""

from __future__ import annotations

import builtins
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _api, _dtypes, fft, linalg
from ._array import Array, call, number, wrap
from ._dtypes import DType

_UFUNCS = {
    "absolute": "abs", "fabs": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctanh": "atanh", "arctan2": "atan2", "power": "pow", "float_power": "pow", "invert": "bitwise_invert", "rint": "round",
    "left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift", "conjugate": "conj", "true_divide": "divide",
}  # fmt: skip
_PLAIN = {"cbrt", "exp2"}
# Of whole numbers they are floats.
_FLOATING = set(
    "acos acosh asin asinh atan atanh atan2 cbrt cos cosh divide exp exp2 expm1 hypot log log10 log1p log2 logaddexp sin sinh sqrt tan tanh "
    "copysign nextafter".split()
)
_REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any"}


def _remedy(name: str) -> TypeError:
    return TypeError(f"there is no {name} of Cantus's arrays (np.asarray(x) first, to compute it with NumPy)")


def _first(arguments: Any) -> Array | None:
    for one in arguments:
        if isinstance(one, Array):
            return one
        if isinstance(one, list | tuple):
            found = _first(one)
            if found is not None:
                return found
    return None


def _array(value: Any, beside: Array) -> Any:
    """Arrays and scalars of NumPy's on the same device; numbers of Python's as they are."""
    if isinstance(value, np.ndarray | np.generic):
        return _api.asarray(value, device=beside._device)
    return value


def _common(values: Sequence[Any], beside: Array) -> DType:
    """NumPy's dtype of what is computed from them, but that a device without float64 has float32."""
    if builtins.all(isinstance(one, Array) and one.dtype is beside.dtype for one in values):
        return beside.dtype
    if builtins.any(isinstance(one, Array) and one.dtype is _dtypes.bfloat16 for one in values):
        found = _dtypes.bfloat16
        for one in values:
            found = _dtypes.promote(found, one.dtype) if isinstance(one, Array) else found
        return found
    found = _dtypes.of(np.result_type(*(one.dtype.numpy if isinstance(one, Array) else one for one in values)))
    return _dtypes.float32 if found is _dtypes.float64 and not beside._device.has(found) else found


def _floating(dtype: DType, beside: Array) -> DType:
    if dtype.kind in "fc":
        return dtype
    return _dtypes.float64 if beside._device.has(_dtypes.float64) else _dtypes.float32


def ufunc(array: Array, of: Any, method: str, inputs: Any, keywords: dict[str, Any]) -> Any:
    """A function of elements of NumPy's, or its reduction."""
    known = Array | np.ndarray | np.generic | int | float | complex | bool
    if not builtins.all(isinstance(one, known) for one in inputs):
        return NotImplemented
    out = keywords.pop("out", (None,))
    result = _ufunc(array, of, method, inputs, keywords)
    if result is NotImplemented:
        raise _remedy(f"np.{of.__name__}" + ("" if method == "__call__" else f".{method}"))
    target = out[0] if isinstance(out, tuple) else out
    return result if target is None else _into(target, result)


def _into(target: Any, result: Array) -> Any:
    if isinstance(target, Array):
        return target._become(result.astype(target.dtype))
    np.copyto(target, np.asarray(result))
    return target


def _ufunc(array: Array, of: Any, method: str, inputs: Any, keywords: dict[str, Any]) -> Any:
    name = of.__name__
    if method == "reduce" and name in _REDUCTIONS:
        return FUNCTIONS[_REDUCTIONS[name]](inputs[0], axis=keywords.pop("axis", 0), **keywords)
    if method != "__call__" or keywords.keys() - {"dtype", "casting", "order"}:
        return NotImplemented
    ours = _UFUNCS.get(name, name)
    values = [_array(one, array) for one in inputs]
    beside = _first(values)
    if beside is None:  # an array only as `out`
        beside, values = _api.asarray(inputs[0], device=array._device), [_api.asarray(one, device=array._device) for one in inputs]
    dtype = keywords.get("dtype")
    common = _common(values, beside) if dtype is None else _dtypes.of(dtype)
    if dtype is None and (ours in _FLOATING or name == "rint"):
        common = _floating(common, beside)
    if name.startswith("is") or ours in ("logical_and", "logical_or", "logical_xor", "logical_not", "signbit", "real", "imag"):
        common = beside.dtype if len(values) == 1 else common
    values = [one.astype(common, copy=False) if isinstance(one, Array) else number(one, _like(common, beside)) for one in values]
    if ours.startswith("logical"):
        values = [one if one.dtype.kind == "b" else one != 0 for one in values]
    if ours in ("deg2rad", "radians"):
        return values[0].astype(_floating(common, beside)) * (math.pi / 180)
    if ours in ("rad2deg", "degrees"):
        return values[0].astype(_floating(common, beside)) * (180 / math.pi)
    if ours in _PLAIN:
        return wrap(values[0]._x.unary(ours), beside._device)
    if ours == "fmod":
        return wrap(values[0]._x.binary(ours, values[1]._x), beside._device)
    if ours == "matmul":
        return linalg.matmul(*values)
    function = getattr(_api, ours, None)
    return NotImplemented if function is None or not callable(function) else function(*values)


def _like(dtype: DType, beside: Array) -> Array:
    return beside if dtype is beside.dtype else _api.zeros((), dtype=dtype, device=beside._device)


# NumPy's other functions, by name.

FUNCTIONS: dict[str, Callable[..., Any]] = {}


def _numpys(function: Callable[..., Any]) -> Callable[..., Any]:
    FUNCTIONS[function.__name__] = function
    return function


def function(of: Any, arguments: Any, keywords: dict[str, Any]) -> Any:
    """A function of NumPy's that is none of elements."""
    module = of.__module__.removeprefix("numpy").removeprefix(".")
    name = of.__name__
    if module in ("linalg", "fft"):
        ours = FUNCTIONS.get(f"{module}.{name}") or getattr({"linalg": linalg, "fft": fft}[module], name, None)
        if ours is None:
            raise _remedy(f"np.{module}.{name}")
        beside = _first(arguments)
        given = [_array(one, beside) if beside is not None else one for one in arguments]
        if module == "fft" and given and isinstance(given[0], Array):
            given[0] = given[0].astype(_floating(given[0].dtype, given[0]), copy=False)
        parameters = list(inspect.signature(ours).parameters.values())
        # What NumPy takes by place and the standard by name.
        while given and len(given) <= len(parameters) and parameters[len(given) - 1].kind is inspect.Parameter.KEYWORD_ONLY:
            value = given.pop()
            keywords[parameters[len(given)].name] = value
        return ours(*given, **{name: value for name, value in keywords.items() if value is not None})
    ours = FUNCTIONS.get(name)
    if name in _READERS:
        return of(*(_read(one) for one in arguments), **{key: _read(value) for key, value in keywords.items()})
    if ours is None:
        raise _remedy(f"np.{name}")
    out = keywords.pop("out", None)
    keywords = {key: value for key, value in keywords.items() if value is not np._NoValue}
    result = ours(*arguments, **keywords)
    if out is None:
        return result
    return _into(out, result)


# Their results are no arrays, or are for people: NumPy reads the elements.
_READERS = {
    "allclose", "array_equal", "array_equiv", "array_repr", "array_str", "array2string", "save", "savez", "savez_compressed", "savetxt",
    "may_share_memory", "shares_memory",
}  # fmt: skip


def _read(value: Any) -> Any:
    if isinstance(value, Array):
        return np.asarray(value)
    return type(value)(map(_read, value)) if type(value) in (list, tuple) else value


def _cast(x: Array, dtype: Any) -> Array:
    return x if dtype is None else x.astype(dtype, copy=False)


def _reduction(name: str) -> None:
    ours = getattr(_api, name)
    typed = name in ("sum", "prod")

    def reduced(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, where: Any = True) -> Any:
        if where is not True:
            raise _remedy(f"np.{name} with where")
        if typed:
            return ours(a, axis=axis, dtype=None if dtype is None else _dtypes.of(dtype), keepdims=bool(keepdims))
        return _cast(ours(a, axis=axis, keepdims=bool(keepdims)), dtype)

    FUNCTIONS[name] = reduced


for _name in ("sum", "prod", "all", "any", "count_nonzero"):
    _reduction(_name)


def _extreme(name: str) -> None:
    ours = getattr(_api, name)

    def extreme(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
        return ours(a, axis=axis, keepdims=bool(keepdims))

    FUNCTIONS[name] = FUNCTIONS[f"a{name}"] = extreme


_extreme("max")
_extreme("min")


@_numpys
def mean(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    return _cast(_api.mean(_cast(a, dtype if dtype is not None and _dtypes.of(dtype).kind in "fc" else None), axis=axis, keepdims=bool(keepdims)), dtype)


@_numpys
def var(a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False, **_: Any) -> Any:
    return _api.var(_cast(a, dtype), axis=axis, correction=float(ddof), keepdims=bool(keepdims))


@_numpys
def std(a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False, **_: Any) -> Any:
    return _api.std(_cast(a, dtype), axis=axis, correction=float(ddof), keepdims=bool(keepdims))


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


def _zeroed(a: Any, with_: float = 0.0) -> Any:
    return a if a.dtype.kind not in "fc" else _api.where(_api.isnan(a), _api.full((), with_, dtype=a.dtype, device=a._device), a)


@_numpys
def nansum(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    return FUNCTIONS["sum"](_zeroed(a), axis=axis, dtype=dtype, keepdims=keepdims)


@_numpys
def nanmax(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return FUNCTIONS["max"](_zeroed(a, -math.inf), axis=axis, keepdims=keepdims)


@_numpys
def nanmin(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return FUNCTIONS["min"](_zeroed(a, math.inf), axis=axis, keepdims=keepdims)


@_numpys
def nan_to_num(x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    if x.dtype.kind != "f":
        return x
    most = _api.finfo(x.dtype).max
    return _api.clip(_zeroed(x, nan), -most if neginf is None else neginf, most if posinf is None else posinf)


@_numpys
def clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    return _api.clip(a, a_min if min is None else min, a_max if max is None else max)


@_numpys
def round(a: Any, decimals: int = 0) -> Any:
    return _api.round(a) if decimals == 0 or a.dtype.kind in "iu" and decimals > 0 else _api.round(a * 10.0**decimals) / 10.0**decimals


FUNCTIONS["around"] = round


# Shapes and parts.


def _together(arrays: Any) -> list[Array]:
    beside = _first(arrays)
    if beside is None:
        return list(arrays)
    arrays = [_api.asarray(one, device=beside._device) for one in arrays]
    common = _common(arrays, beside)
    return [one.astype(common, copy=False) for one in arrays]


@_numpys
def concatenate(arrays: Any, axis: int | None = 0, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    return _cast(_api.concat(_together(arrays), axis=axis), dtype)


FUNCTIONS["concat"] = concatenate


@_numpys
def stack(arrays: Any, axis: int = 0, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    return _cast(_api.stack(_together(arrays), axis=axis), dtype)


@_numpys
def atleast_1d(*arrays: Any) -> Any:
    found = [x if x.ndim else _api.reshape(x, (1,)) for x in arrays]
    return found[0] if len(found) == 1 else tuple(found)


@_numpys
def atleast_2d(*arrays: Any) -> Any:
    found = [x if x.ndim > 1 else _api.reshape(x, (1, -1)) for x in arrays]
    return found[0] if len(found) == 1 else tuple(found)


@_numpys
def vstack(arrays: Any, **_: Any) -> Any:
    return concatenate([atleast_2d(x) for x in arrays])


@_numpys
def hstack(arrays: Any, **_: Any) -> Any:
    arrays = [atleast_1d(x) for x in arrays]
    return concatenate(arrays, axis=0 if arrays[0].ndim == 1 else 1)


@_numpys
def reshape(a: Any, /, shape: Any = None, order: str = "C", **_: Any) -> Any:
    if order not in ("C", "A", "K"):
        raise _remedy("np.reshape by columns")
    return _api.reshape(a, shape if isinstance(shape, tuple | list) else (shape,))


@_numpys
def ravel(a: Any, order: str = "C") -> Any:
    return reshape(a, (-1,), order)


@_numpys
def transpose(a: Any, axes: Any = None) -> Any:
    return _api.permute_dims(a, tuple(range(a.ndim))[::-1] if axes is None else tuple(axes))


@_numpys
def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    axes = list(range(a.ndim))
    axes[axis1], axes[axis2] = axes[axis2], axes[axis1]
    return call(a, "permute", ints=axes)


@_numpys
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    return _api.moveaxis(a, source, destination)


@_numpys
def expand_dims(a: Any, axis: Any) -> Any:
    for one in sorted(axis if isinstance(axis, tuple) else (axis,)):
        a = _api.expand_dims(a, one)
    return a


@_numpys
def squeeze(a: Any, axis: Any = None) -> Any:
    return _api.squeeze(a, tuple(at for at, side in enumerate(a.shape) if side == 1) if axis is None else axis)


@_numpys
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    return _api.broadcast_to(array, shape if isinstance(shape, tuple | list) else (shape,))


@_numpys
def broadcast_arrays(*arrays: Any, subok: bool = False) -> Any:
    return tuple(_api.broadcast_arrays(*_together(arrays)))


@_numpys
def where(condition: Any, *others: Any) -> Any:
    if not others:
        return _api.nonzero(condition)
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
    places = _api.asarray(indices, device=a._device)
    x = _api.reshape(a, (-1,)) if axis is None else a
    axis = 0 if axis is None else axis
    if places.ndim == 1:
        return _api.take(x, places, axis=axis)
    return x[(slice(None),) * (axis % x.ndim) + ((int(places),) if places.ndim == 0 else (places,))]


@_numpys
def pad(array: Any, pad_width: Any, mode: str = "constant", **keywords: Any) -> Any:
    names = {"constant": "pad", "edge": "pad_edge", "reflect": "pad_reflect", "wrap": "pad_wrap"}
    if mode not in names or keywords.keys() - {"constant_values"}:
        raise _remedy(f"np.pad by {mode}")
    widths = np.broadcast_to(np.asarray(pad_width), (array.ndim, 2))
    values = np.broadcast_to(np.asarray(keywords.get("constant_values", 0)), (array.ndim, 2))
    if array.ndim == 0 or (values == values[0, 0]).all():
        return call(array, names[mode], ints=widths.ravel().tolist(), floats=[float(values[0, 0]) if array.ndim else 0.0])
    # A number for each side: axis by axis, as NumPy.
    for place in np.ndindex(values.shape):
        alone = np.zeros_like(widths)
        alone[place] = widths[place]
        array = call(array, "pad", ints=alone.ravel().tolist(), floats=[float(values[place])])
    return array


@_numpys
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return linalg.diagonal(moveaxis(a, (axis1, axis2), (-2, -1)), offset=offset)


@_numpys
def trace(a: Any, offset: int = 0, **_: Any) -> Any:
    return linalg.trace(a, offset=offset)


@_numpys
def tril(m: Any, k: int = 0) -> Any:
    return _api.tril(m, k=k)


@_numpys
def triu(m: Any, k: int = 0) -> Any:
    return _api.triu(m, k=k)


for _name in ("tile", "repeat", "roll", "flip", "real", "imag", "meshgrid", "isdtype", "tensordot", "take_along_axis", "diff", "unique_values"):
    FUNCTIONS[_name] = getattr(_api, _name)


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
def diff(a: Any, n: int = 1, axis: int = -1, **keywords: Any) -> Any:
    return _api.diff(a, axis=axis, n=n, **keywords)


@_numpys
def take_along_axis(arr: Any, indices: Any, axis: int = -1) -> Any:
    return _api.take_along_axis(arr, _array(indices, arr), axis=axis)


# Products.


@_numpys
def dot(a: Any, b: Any) -> Any:
    a, b = _together((a, b))
    if not a.ndim or not b.ndim:
        return a * b
    return _api.tensordot(a, b, axes=1) if b.ndim == 1 else _api.tensordot(a, b, axes=((-1 % a.ndim,), (b.ndim - 2,)))


@_numpys
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    if not isinstance(axes, int):
        axes = tuple((one,) if isinstance(one, int) else tuple(one) for one in axes)
    return _api.tensordot(*_together((a, b)), axes=axes)


@_numpys
def inner(a: Any, b: Any) -> Any:
    return _api.tensordot(*_together((a, b)), axes=((-1 % a.ndim,), (-1 % b.ndim,)))


@_numpys
def outer(a: Any, b: Any) -> Any:
    return linalg.outer(*_together((ravel(a), ravel(b))))


@_numpys
def einsum(equation: str, *operands: Any, dtype: Any = None, **_: Any) -> Any:
    first, *others = [_cast(one, dtype) for one in _together(operands)]
    return wrap(first._x.einsum(equation.replace(" ", ""), [one._x for one in others]), first._device)


# Order.


@_numpys
def sort(a: Any, axis: int | None = -1, **_: Any) -> Any:
    return _api.sort(ravel(a) if axis is None else a, axis=-1 if axis is None else axis)


@_numpys
def argsort(a: Any, axis: int | None = -1, **_: Any) -> Any:
    return _api.argsort(ravel(a) if axis is None else a, axis=-1 if axis is None else axis)


@_numpys
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    return _api.searchsorted(a, _api.asarray(v, device=a._device), side=side, sorter=sorter)


@_numpys
def unique(ar: Any, **keywords: Any) -> Any:
    if builtins.any(keywords.get(name) for name in ("return_index", "return_inverse", "return_counts")) or keywords.get("axis") is not None:
        raise _remedy("np.unique with more than the values (cantus.unique_all)")
    return _api.unique_values(ar)


@_numpys
def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    a, b = _together((a, b))
    a, b = (one.astype(_floating(one.dtype, one), copy=False) for one in (a, b))
    near = _api.abs(a - b) <= atol + rtol * _api.abs(b)
    near = _api.logical_and(near, _api.isfinite(b)) | (a == b)
    return near | (_api.isnan(a) & _api.isnan(b)) if equal_nan else near


# Creation, like an array.


def _made(name: str, value: float) -> Callable[..., Any]:
    def made(
        a: Any, fill_value: Any = value, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, device: Any = None
    ) -> Any:
        if not isinstance(a, Array):
            return np.full_like(a, _read(fill_value), dtype=dtype, shape=shape)
        return _api.full(a.shape if shape is None else shape, fill_value, dtype=dtype or a.dtype, device=a._device)

    if name != "full_like":
        return lambda a, *others, **keywords: made(a, value, *others, **keywords)
    return made


for _name, _value in (("zeros_like", 0), ("empty_like", 0), ("ones_like", 1), ("full_like", 0)):
    FUNCTIONS[_name] = _made(_name, _value)


@_numpys
def copy(a: Any, **_: Any) -> Any:
    return _api.asarray(a, copy=True)


for _name in ("array", "asarray", "asanyarray", "ascontiguousarray"):
    FUNCTIONS[_name] = lambda a, dtype=None, **_: _api.asarray(a, dtype=dtype)
for _name in ("zeros", "ones", "empty"):
    FUNCTIONS[_name] = lambda shape, dtype=float, order="C", _of=getattr(_api, _name): _of(shape, dtype=dtype)
FUNCTIONS["full"] = lambda shape, fill_value, dtype=None, order="C": _api.full(shape, fill_value, dtype=dtype)
FUNCTIONS["arange"] = lambda *numbers, dtype=None: _api.arange(*numbers, dtype=dtype)


# What is known without computing.

FUNCTIONS |= {
    "conj": lambda x: _api.conj(x) if x.dtype.kind == "c" else x,
    "shape": lambda a: a.shape,
    "ndim": lambda a: a.ndim,
    "size": lambda a, axis=None: a.size if axis is None else a.shape[axis],
    "iscomplexobj": lambda x: x.dtype.kind == "c",
    "isrealobj": lambda x: x.dtype.kind != "c",
    "result_type": lambda *of: np.result_type(*(one.dtype.numpy if isinstance(one, Array) else one for one in of)),
    "can_cast": lambda a, to, casting="safe": np.can_cast(a.dtype.numpy if isinstance(a, Array) else a, _dtypes.of(to).numpy, casting),
}

from . import _statistics as _statistics  # noqa: E402 - it adds to the table
