"""NumPy's functions of Cantus's arrays, by NEP 13 and NEP 18: `np.sum(x)` computes on x's device and gives an array of Cantus. Dtypes are those
that NumPy would give. Other functions are errors: nothing silently turns into a NumPy array.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _api, _arguments, _dtypes, fft, linalg
from ._array import Array, call, common, number, wrap
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
    "copysign nextafter deg2rad radians rad2deg degrees rint fabs float_power heaviside logaddexp2".split()
)
_TRUTHS = {
    "logical_and", "logical_or", "logical_xor", "logical_not", "signbit", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
}  # fmt: skip
_SCANS = {"add": "cumsum", "multiply": "cumprod", "maximum": "cummax", "minimum": "cummin"}
_CHANGES = {"add", "subtract", "maximum", "minimum"}
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
    """NumPy's dtype of an operation on both, or float32 in place of float64 on a device without it."""
    if builtins.all(isinstance(one, Array) and one.dtype is beside.dtype for one in values):
        return beside.dtype
    if builtins.any(isinstance(one, Array) and one.dtype is _dtypes.bfloat16 for one in values):
        found = _dtypes.bfloat16
        for one in values:
            found = _dtypes.promote(found, one.dtype) if isinstance(one, Array) else found
        return found
    found = _dtypes.of(np.result_type(*(one.dtype.numpy if isinstance(one, Array) else one for one in values)))
    return _dtypes.float32 if found is _dtypes.float64 and not beside._device.has(found) else found


def _together(arrays: Any) -> list[Array]:
    beside = _first(arrays)
    if beside is None:
        return list(arrays)
    dtype, device = beside.dtype, beside._device
    if builtins.all(isinstance(one, Array) and one.dtype is dtype and one._device is device for one in arrays):
        return list(arrays)
    arrays = [_api.asarray(one, device=beside._device) for one in arrays]
    common = _common(arrays, beside)
    return [one.astype(common, copy=False) for one in arrays]


def _floating(dtype: DType, beside: Array) -> DType:
    if dtype.kind in "fc":
        return dtype
    return _dtypes.float64 if beside._device.has(_dtypes.float64) else _dtypes.float32


def ufunc(array: Array, of: Any, method: str, inputs: Any, keywords: dict[str, Any]) -> Any:
    """A function of elements of NumPy's, or its reduction, its scan, its table of two lines, or its changes at places."""
    name = of.__name__
    if method == "__call__":
        if not keywords and (quick := _quick(name, inputs)) is not None:
            return quick
    elif method != "outer" and name not in _METHODS.get(method, ()):
        raise _remedy(f"np.{name}.{method}")
    if method == "at":
        return _changed(name, *inputs)
    inputs = tuple(np.asarray(one) if isinstance(one, list | tuple) else one for one in inputs)
    kinds = Array | np.ndarray | np.generic | int | float | complex | bool
    if not builtins.all(isinstance(one, kinds) for one in inputs):
        return NotImplemented
    if method == "outer":
        first, second = (_api.asarray(one, device=array._device) for one in inputs)
        inputs = (_api.reshape(first, first.shape + (1,) * second.ndim), second)
    out = keywords.pop("out", (None,))
    target = out[0] if isinstance(out, tuple) else out
    if name in _PAIRS and method in ("__call__", "outer"):
        if isinstance(out, tuple) and builtins.any(one is not None for one in out):
            raise _without(f"np.{name}", "out")
        for argument in keywords.keys():
            raise _without(f"np.{name}", argument)
        return _PAIRS[name](*(_api.asarray(one, device=array._device) if isinstance(one, np.ndarray) else one for one in inputs))
    result = _ufunc(array, of, method, inputs, keywords, target)
    if result is NotImplemented:
        raise _remedy(f"np.{name}")
    return result if target is None else into(target, result)


_METHODS: dict[str, Any] = {"reduce": _REDUCTIONS, "accumulate": _SCANS, "at": _CHANGES}
# Of floats they are those of the standard, with its dtypes.
_ONES = set(
    "absolute fabs exp exp2 expm1 log log2 log10 log1p sqrt square sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh floor ceil trunc "
    "rint negative positive sign isnan isinf isfinite signbit".split()
)
_TWOS = set(
    "add subtract multiply divide true_divide floor_divide remainder power maximum minimum arctan2 hypot copysign logaddexp equal not_equal less "
    "less_equal greater greater_equal".split()
)


def _quick(name: str, inputs: Any) -> Any:
    """A function of floats of one dtype, or of them and Python's numbers, which are of that dtype too; None where it takes a longer look."""
    x = inputs[0]
    if len(inputs) == 1:
        if name not in _ONES or x.dtype.kind != "f":
            return None
        return wrap(x._x.unary(name), x._device) if name in _PLAIN else getattr(_api, _UFUNCS.get(name, name))(x)
    if name not in _TWOS or len(inputs) != 2:
        return None
    y = inputs[1]
    plain = (int, float)
    if isinstance(x, Array):
        dtype = x.dtype
        alike = y.dtype is dtype if isinstance(y, Array) else type(y) in plain
    else:
        dtype = y.dtype
        alike = type(x) in plain
    return getattr(_api, _UFUNCS.get(name, name))(x, y) if alike and dtype.kind == "f" else None


# Of two results.
_PAIRS: dict[str, Callable[..., tuple[Any, Any]]] = {
    "divmod": lambda x, y: (np.floor_divide(x, y), np.remainder(x, y)),
    "modf": lambda x: _parted(x.astype(_floating(x.dtype, x), copy=False)),
}


def _parted(x: Array) -> tuple[Array, Array]:
    """The part below 1 and the whole one, both with the sign."""
    whole = _api.trunc(x)
    part = _api.where(_api.isinf(x), x * 0 if x.dtype.kind != "f" else _api.zeros((), dtype=x.dtype, device=x._device), x - whole)
    return _api.copysign(part, x), whole


def _changed(name: str, target: Any, places: Any, values: Any = None) -> None:
    """`np.add.at` and its kin: a place that comes again changes again."""
    if not isinstance(target, Array):
        raise TypeError(f"np.{name}.at changes an array of Cantus's here (np.asarray for the values and the places)")
    values = number(values, target) if isinstance(values, bool | int | float | complex) else _api.asarray(values, device=target._device)
    castable(common(target, values), target.dtype, "same_kind", "at")
    every = _api.reshape(_api.arange(target.size, device=target._device).astype(_dtypes.int32), target.shape)
    named = every[places]
    flat = _api.reshape(target, (-1,))
    values = _api.reshape(_api.broadcast_to(values.astype(target.dtype, copy=False), named.shape), (-1,))
    if not named.size:
        return
    named = _api.reshape(named, (-1,))
    if name in ("maximum", "minimum"):
        # The greatest (or least) for each place is the last of its group in order. NaN comes last: it wins in both.
        turned = values if name == "maximum" else -values if values.dtype.kind in "fc" else ~values
        order = FUNCTIONS["lexsort"]([turned, named])
        named, values = _api.take(named, order), _api.take(values, order)
        last = _api.concat([named[1:] != named[:-1], _api.full((1,), True, device=target._device)])
        named, values = named[last], values[last]
        changed = getattr(_api, name)(_api.take(flat, named), values)
        target._become(_api.reshape(call(flat, "scatter", [named, changed], ints=[0]), target.shape))
        return
    if name == "subtract":
        values = -values
    if named.size:
        target._become(_api.reshape(call(flat, "scatter_add", [_api.reshape(named, (-1,)), values], ints=[0]), target.shape))


def into(target: Any, result: Array, casting: str = "same_kind") -> Any:
    """A result as the elements of `out`."""
    castable(result.dtype, target.dtype, casting, "out")
    if isinstance(target, Array):
        return target._become(result.astype(target.dtype, copy=False))
    np.copyto(target, np.asarray(result), casting=casting)  # type: ignore[arg-type]
    return target


def castable(from_: Any, to: Any, casting: str, argument: str) -> None:
    """NumPy's rule for casts without `astype`."""
    if from_ != to and not np.can_cast(_dtypes.of(from_).numpy, _dtypes.of(to).numpy, casting):  # type: ignore[arg-type]
        raise TypeError(f"{argument}: {_dtypes.of(from_)} is not cast to {_dtypes.of(to)} by the rule casting={casting!r} (x.astype first)")


def _ufunc(array: Array, of: Any, method: str, inputs: Any, keywords: dict[str, Any], target: Any) -> Any:
    name = of.__name__
    if method == "accumulate":
        return _scanned(name, *inputs, **keywords)
    if method == "reduce":
        ours = FUNCTIONS[_REDUCTIONS[name]]
        keywords = {"axis": 0} | {key: value for key, value in keywords.items() if asks(None, key, value)}
        for argument in keywords.keys() - taken(ours)[0]:
            raise _without(f"np.{name}.reduce", argument)
        return ours(inputs[0], **keywords)
    where, dtype, casting = keywords.pop("where", True), keywords.pop("dtype", None), keywords.pop("casting", "same_kind")
    for argument in keywords.keys() - _NEUTRAL - {"order"}:  # Nobody sees the order of elements in memory.
        raise _without(f"np.{name}", argument)
    if where is not True and target is None:
        raise _without(f"np.{name} without out", "where")
    result = _elements(array, name, inputs, dtype, casting)
    if where is True or result is NotImplemented:
        return result
    castable(result.dtype, target.dtype, casting, "out")
    kept = _api.asarray(target, device=result._device)
    return _api.where(_api.asarray(where, device=result._device), result.astype(kept.dtype, copy=False), kept)


def _scanned(name: str, x: Array, axis: int = 0, dtype: Any = None) -> Array:
    """The reduction of each element and those before it. Whole numbers keep their dtype, as in NumPy, except in sums and products of small ones."""
    if not x.ndim:
        raise TypeError(f"np.{name}.accumulate goes along an axis, and this array has none")
    if dtype is not None:
        x = x.astype(_dtypes.of(dtype), copy=False)
    if name in ("add", "multiply"):
        return FUNCTIONS[_SCANS[name]](x, axis=axis, dtype=dtype)  # type: ignore[no-any-return]
    return call(x, _SCANS[name], ints=[_api._axis(axis, x.ndim)]) if x.size else +x


def _elements(array: Array, name: str, inputs: Any, dtype: Any, casting: str) -> Any:
    ours = _UFUNCS.get(name, name)
    values = [_array(one, array) for one in inputs]
    beside = _first(values)
    if beside is None:  # an array only as `out`
        beside, values = _api.asarray(inputs[0], device=array._device), [_api.asarray(one, device=array._device) for one in inputs]
    is_floating = ours in _FLOATING or name in _FLOATING
    is_truth = name.startswith("is") or ours in _TRUTHS
    if dtype is not None and (is_truth or ours in ("real", "imag")):
        raise _without(f"np.{name}", "dtype")
    common = _common(values, beside)
    if dtype is not None:
        castable(common, dtype, casting, "dtype")
        common = _dtypes.of(dtype)
        if common.kind not in "fc" and is_floating:
            raise _without(f"np.{name}", f"dtype={common}")
    elif is_floating:
        common = _floating(common, beside)
    if dtype is None and name == "float_power" and beside._device.has(_dtypes.float64):
        common = _dtypes.promote(common, _dtypes.float64)
    if common.kind == "b" and name in ("positive", "sign"):
        raise TypeError(f"np.{name} is for numbers, not for bool (cast first)")
    if common.kind == "c" and name in ("deg2rad", "radians", "rad2deg", "degrees", "fabs"):
        raise TypeError(f"np.{name} is for real numbers, not for {common}")
    if common.kind == "b" and ours == "reciprocal":
        common = _dtypes.int8
    if is_truth and len(values) == 1 or ours in ("real", "imag"):
        common = beside.dtype
    for one in values:
        if isinstance(one, Array):
            castable(one.dtype, common, casting, "casting")
    values = [one.astype(common, copy=False) if isinstance(one, Array) else number(one, _like(common, beside)) for one in values]
    if ours.startswith("logical"):
        values = [one if one.dtype.kind == "b" else one != 0 for one in values]
    if name in _COMPOSED:
        return _COMPOSED[name](*values)
    if ours in ("deg2rad", "radians"):
        return values[0] * (math.pi / 180)
    if ours in ("rad2deg", "degrees"):
        return values[0] * (180 / math.pi)
    if ours == "reciprocal" and common.kind in "iu":
        return values[0] * (_api.abs(values[0]) == 1).astype(common)
    if ours in _PLAIN:
        return wrap(values[0]._x.unary(ours), beside._device)
    if ours == "fmod":
        return wrap(values[0]._x.binary(ours, values[1]._x), beside._device)
    if ours == "matmul":
        return linalg.matmul(*values)
    function = getattr(_api, ours, None)
    return NotImplemented if function is None or not callable(function) else function(*values)


def _step(x: Array, at: Any) -> Array:
    found = _api.where(x < 0, x * 0, _api.where(x == 0, at, x * 0 + 1))
    return _api.where(_api.isnan(x), x, found)


def _of_numbers(pick: Callable[[Any, Any], Array]) -> Callable[[Any, Any], Any]:
    """Reduces two numbers and ignores NaN."""

    def picked(x: Any, y: Any) -> Any:
        if x.dtype.kind not in "fc":
            return pick(x, y)
        return _api.where(_api.isnan(x), y, _api.where(_api.isnan(y), x, pick(x, y)))

    return picked


def _logaddexp2(x: Array, y: Array) -> Array:
    return _api.logaddexp(x * math.log(2), y * math.log(2)) / math.log(2)


# Functions of elements that are made of others.
_COMPOSED: dict[str, Callable[..., Any]] = {
    "heaviside": _step,
    "fmax": _of_numbers(lambda x, y: _api.maximum(x, y)),
    "fmin": _of_numbers(lambda x, y: _api.minimum(x, y)),
    "logaddexp2": _logaddexp2,
    "matvec": lambda x, y: linalg.matmul(x, y[..., None])[..., 0],
    "vecmat": lambda x, y: linalg.matmul((_api.conj(x) if x.dtype.kind == "c" else x)[..., None, :], y)[..., 0, :],
}


def _like(dtype: DType, beside: Array) -> Array:
    return beside if dtype is beside.dtype else _api.zeros((), dtype=dtype, device=beside._device)


# NumPy's other functions, by name.

FUNCTIONS: dict[str, Callable[..., Any]] = {}


def _numpys(function: Callable[..., Any]) -> Callable[..., Any]:
    FUNCTIONS[function.__name__] = function
    return function


@functools.cache
def _ours(of: Any) -> tuple[str, str, Callable[..., Any] | None]:
    """The name of a function of NumPy's, its module where that is one of two, and ours."""
    module = of.__module__.removeprefix("numpy").removeprefix(".")
    module = module if module in ("linalg", "fft") else ""
    name = f"{module}.{of.__name__}" if module else of.__name__
    ours = FUNCTIONS.get(name)
    if ours is None and module:
        ours = getattr({"linalg": linalg, "fft": fft}[module], of.__name__, None)
        ours = ours if ours is None else _arguments.entered(inspect.unwrap(ours), name, numpys=True)
    return name, module, ours


def function(of: Any, arguments: Any, keywords: dict[str, Any]) -> Any:
    """A NumPy function that is not elementwise."""
    name, module, ours = _ours(of)
    if name in _READERS:
        return of(*(_read(one) for one in arguments), **{key: _read(value) for key, value in keywords.items()})
    if ours is None:
        raise _remedy(f"np.{name}")
    out = keywords.pop("out", None)
    given, named = _heeded(f"np.{name}", of, ours, arguments, keywords)
    result = ours(*given, **named)
    if out is None:
        return result
    return into(out, result, "unsafe" if name in _ROUNDED_INTO else "same_kind")


def names() -> list[str]:
    """NumPy's functions that take arrays of Cantus."""
    return [name for name in dir(np) if name in FUNCTIONS or name in MADE or name in _PREDICATES or isinstance(getattr(np, name), np.ufunc)]


@functools.cache
def named(name: str) -> Callable[..., Any] | None:
    """Returns the `cantus` form of a NumPy function of that name: its arguments become arrays of Cantus."""
    of = getattr(np, name, None)
    if name in MADE:
        return MADE[name]
    if of is None or name not in FUNCTIONS and name not in _PREDICATES and not isinstance(of, np.ufunc):
        return None

    def ours(*arguments: Any, **keywords: Any) -> Any:
        if _first((arguments, list(keywords.values()))) is None:
            # The first that is no text, or all operands of `einsum`.
            at = next((place for place, one in enumerate(arguments) if not isinstance(one, str) and not callable(one)), None)
            if at is None:
                raise TypeError(f"cantus.{name} takes an array")
            first = arguments[at]
            # A sequence of arrays stays one.
            several = isinstance(first, list | tuple) and builtins.any(isinstance(one, np.ndarray) for one in first)
            first = [_api.asarray(one) for one in first] if several else _api.asarray(first)
            arguments = (*arguments[:at], first, *arguments[at + 1 :])
        return of(*arguments, **keywords)

    ours.__name__ = ours.__qualname__ = name
    ours.__doc__ = f"NumPy's `{name}` of Cantus's arrays, on their device: https://numpy.org/doc/stable/reference/generated/numpy.{name}.html"
    return ours


# Means of integers are floats, and NumPy rounds them into any `out`.
_ROUNDED_INTO = {"mean", "var", "std"}
# What says how to compute, or allows something: it asks for nothing that a result shows.
_NEUTRAL = {"subok", "overwrite_input", "optimize", "like"}


@functools.cache
def _theirs(of: Any) -> dict[str, inspect.Parameter]:
    """The parameters of a NumPy function; none if it does not report them."""
    try:
        return dict(inspect.signature(of).parameters)
    except (TypeError, ValueError):
        return {}


@functools.cache
def taken(ours: Any) -> tuple[frozenset[str], bool]:
    """The names of the parameters of our function, and whether it takes any name."""
    parameters = inspect.signature(ours).parameters.values()
    names = frozenset(one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY))
    return names, builtins.any(one.kind is one.VAR_KEYWORD for one in parameters)


def asks(parameter: inspect.Parameter | None, name: str, value: Any) -> bool:
    """Returns whether an argument requests anything."""
    if value is np._NoValue or name in _NEUTRAL or (name == "where" and value is True):
        return False
    if parameter is None or parameter.default is parameter.empty:
        return True
    default = parameter.default
    return not (value is default or (type(value) is type(default) and isinstance(value, bool | int | float | str | tuple) and value == default))


class _Call(NamedTuple):
    """How the arguments of a call of NumPy's go to a function of ours: by their places among all of them, those by name behind the others."""

    given: tuple[int, ...]
    named: tuple[tuple[str, int, inspect.Parameter | None], ...]
    names: frozenset[str]
    spreads: bool


@functools.cache
def _call(what: str, of: Any, ours: Any, count: int, keywords: tuple[str, ...]) -> _Call:
    theirs, (names, spreads), given = _theirs(of), taken(ours), list(range(count))
    named = {name: count + place for place, name in enumerate(keywords)}
    placed = [one for one in theirs.values() if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    if not builtins.any(one.kind is one.VAR_POSITIONAL for one in theirs.values()):
        for one in placed[len(given) :]:
            if one.name not in named or one.default is not one.empty:
                break
            given.append(named.pop(one.name))
        optional = [one for one in placed if one.default is not one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]
        begin = len(placed) - len(optional)
        for one, place in zip(optional, given[begin:]):
            if one.name in named:
                raise TypeError(f"{what} was given {one.name} twice")
            named[one.name] = place
        if placed:
            given = given[:begin] + given[len(placed) :]
    return _Call(tuple(given), tuple((name, place, theirs.get(name)) for name, place in named.items()), names, spreads)


def _heeded(what: str, of: Any, ours: Any, arguments: Any, keywords: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Returns the arguments by place, and by name those that request something. An argument that ours does not take is an error; none is dropped silently."""
    call = _call(what, of, ours, len(arguments), tuple(keywords))
    values, named = (*arguments, *keywords.values()), {}
    for name, place, parameter in call.named:
        value = values[place]
        if value is None and parameter is not None and parameter.default is None or not asks(parameter, name, value):
            continue
        if name not in call.names and not call.spreads:
            raise _without(what, name)
        named[name] = value
    return [values[place] for place in call.given], named


def _without(what: str, argument: str) -> TypeError:
    return TypeError(f"{what} of Cantus's arrays takes no {argument} (np.asarray(x) first, to compute it with NumPy)")


_PREDICATES = {"allclose", "array_equal", "array_equiv"}
# Their results are no arrays, or are for people: NumPy reads the elements.
_READERS = _PREDICATES | {
    "array_repr", "array_str", "array2string", "save", "savez", "savez_compressed", "savetxt",
    "may_share_memory", "shares_memory",
}  # fmt: skip


def _read(value: Any) -> Any:
    if isinstance(value, Array):
        return value._read() if value.dtype is _dtypes.bfloat16 else np.asarray(value)
    return type(value)(map(_read, value)) if type(value) in (list, tuple) else value


def _cast(x: Array, dtype: Any) -> Array:
    return x if dtype is None else x.astype(dtype, copy=False)


from . import (  # noqa: E402 - they fill the table
    _functions as _functions,
    _parts as _parts,
    _reductions as _reductions,
    _signals as _signals,
    _statistics as _statistics,
)

for _name, _function in list(FUNCTIONS.items()):
    FUNCTIONS[_name] = _arguments.entered(_function, _name, numpys=True)

from ._made import MADE as MADE  # noqa: E402 - it uses what is above
