"""Arguments of functions: a table of parameters, and one entry that checks and converts them before anything is recorded.

An entry is generated from a function's signature: an argument that is already what the function works on costs one test of its type. The kinds:

- array: an array. NumPy's arrays, lists and numbers become one, on the device of the first array of Cantus among the arguments.
- real: an array that isn't complex.
- value: an array, or a number of Python's, which takes the dtype of what it meets.
- arrays: a sequence of arrays.
- target: an array of Cantus, which the function changes.
- axis, whole: a whole number. count: one that isn't negative. axes: one axis, or several. shape: lengths.
- number: a number of Python's. flag: yes or no. dtype: a dtype.

None passes where a parameter's default says that it may be left out.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from . import _dtypes
from ._array import Array
from ._dtypes import DType

# What a parameter of a name takes, where `ROWS` says nothing else of the function.
KINDS: dict[str, str] = {
    **dict.fromkeys(
        "x a m v arr ary array ar filt p f z A b element test_elements ar1 ar2 a1 a2 xp fp indices condition logits target table weight bias mask".split(),
        "array",
    ),
    **dict.fromkeys("x1 x2 min max a_min a_max sorter aweights fweights positions".split(), "value"),
    **dict.fromkeys(("arrays", "tup"), "arrays"),
    **dict.fromkeys("axis axisa axisb axisc".split(), "axis"),
    **dict.fromkeys("axis1 axis2 k offset decimals start deg groups".split(), "whole"),
    **dict.fromkeys("n N num minlength n_rows n_cols".split(), "count"),
    **dict.fromkeys(("axes", "source", "destination"), "axes"),
    **dict.fromkeys(("shape", "dims", "new_shape", "reps", "repetitions", "shift"), "shape"),
    **dict.fromkeys(("dx", "correction", "ddof"), "number"),
    **dict.fromkeys(("keepdims", "descending", "include_initial", "returned", "invert", "full_matrices", "rowvar"), "flag"),
    "dtype": "dtype",
}  # fmt: skip

_SEVERAL = (
    "sum prod all any count_nonzero max min amax amin mean var std nansum nanprod nanmax nanmin nanmean nanvar nanstd ptp average median nanmedian "
    "quantile percentile nanquantile nanpercentile flip roll squeeze expand_dims gradient size linalg.norm vector_norm trim_zeros sliding_window_view"
).split()

# What differs for a function, by parameter; "" is anything.
ROWS: dict[str, dict[str, str]] = {
    **{name: {"axis": "axes"} for name in _SEVERAL},
    **dict.fromkeys(("from_dlpack", "asarray", "array", "asanyarray", "ascontiguousarray", "can_cast", "result_type", "isdtype"), {"x": "", "a": "", "dtype": ""}),
    **dict.fromkeys(("zeros_like", "ones_like", "empty_like", "full_like"), {"a": "", "dtype": "", "shape": ""}),
    **dict.fromkeys(("zeros", "ones", "empty", "full"), {"dtype": ""}),
    "arange": {"start": "number", "stop": "number", "step": "number", "dtype": ""},
    "linspace": {"start": "number", "stop": "number", "dtype": ""},
    "eye": {"k": "whole", "dtype": ""},
    "where": {"others": "value"},
    "stack": {"axis": "axis"},
    "take": {"indices": "array"},
    "searchsorted": {"x1": "real", "x2": "value", "a": "real", "v": "value"},
    "repeat": {"repeats": ""},
    "diff": {"prepend": "", "append": ""},
    "vecdot": {"x1": "array", "x2": "array"},
    "tensordot": {"x1": "array", "x2": "array", "axes": ""},
    "outer": {"x1": "array", "x2": "array"},
    "cross": {"x1": "array", "x2": "array"},
    "solve": {"x1": "array", "x2": "array"},
    "matmul": {"x1": "array", "x2": "array"},
    "matrix_power": {"n": "whole"},
    "diagflat": {"v": "array", "k": "whole"},
    "append": {"arr": "array", "values": "array"},
    "rot90": {"axes": "shape"},
    "rollaxis": {"axis": "whole"},
    "fftshift": {"axes": ""},
    "ifftshift": {"axes": ""},
    **dict.fromkeys(("fill_diagonal", "put", "putmask"), {"a": "target", "mask": "array", "ind": "array"}),
    **dict.fromkeys(("place", "put_along_axis"), {"arr": "target", "mask": "array", "indices": "array"}),
    "bincount": {"x": "array", "weights": "real"},
    "digitize": {"x": "real", "bins": "real", "right": "flag"},
    "block": {"arrays": ""},
    "histogram": {"a": "real", "weights": "array"},
    "interp": {"x": "real", "xp": "real"},
    **{name: {"a": "real", "axis": "axes"} for name in ("quantile", "percentile", "nanquantile", "nanpercentile")},
    "polyfit": {"y": "array", "w": "real"},
    "polyval": {"x": "array"},
    "trapezoid": {"y": "array", "x": "array"},
    "unwrap": {"p": "real"},
    **dict.fromkeys(("polyder", "polyint"), {"m": "count"}),
    **dict.fromkeys(("cov", "corrcoef"), {"m": "array", "x": "array", "y": "array", "rowvar": "flag"}),
    "histogram2d": {"x": "real", "y": "real"},
    "average": {"axis": "axes", "weights": "array"},
    "kron": {"b": "array"},
    "apply_along_axis": {"arr": "array", "axis": "axis"},
    "cross_entropy": {"logits": "array", "target": "array"},
    **dict.fromkeys(("embedding", "one_hot"), {"indices": "array"}),
    "topk": {"k": "whole"},
    "scaled_dot_product_attention": {"q": "array", "k": "array", "v": "array", "mask": "array"},
}  # fmt: skip

_NUMBERS = frozenset({int, float, complex, bool})
_VALUES = frozenset({Array, int, float, complex, bool, type(None), type(np._NoValue)})

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _first(values: Any) -> Array | None:
    for one in values:
        if type(one) is Array:
            return one
        if isinstance(one, list | tuple):
            found = _first(one)
            if found is not None:
                return found
    return None


def _taken(value: Any, what: str, others: Any, numpys: bool) -> Array:
    """An argument as an array."""
    from . import _api

    if isinstance(value, Array):
        return value
    beside = _first(others)
    if value is None or value is np._NoValue or isinstance(value, str | bytes | dict | set | type) or callable(value):
        raise TypeError(f"{what} is an array (or numbers that make one), not {'nothing' if value is np._NoValue else type(value).__name__}")
    device = None if beside is None else beside._device
    if isinstance(value, list | tuple | range) and _first(value) is None:
        # Python's floats: float64 for NumPy's functions, and beside float64.
        host = np.asarray(value)
        is_wide = host.dtype.kind in "fc" and (numpys or beside is not None and beside.dtype.itemsize == (16 if beside.dtype.kind == "c" else 8) and beside.dtype.kind in "fc")
        value = host if is_wide or isinstance(value, range) else value
    if isinstance(value, np.ndarray | np.generic) and beside is not None and value.dtype in ("f8", "c16") and not beside._device.has(_dtypes.float64):
        value = value.astype("f4" if value.dtype.kind == "f" else "c8")
    try:
        return _api.asarray(value, device=device)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{what}: {error}") from None


def _real(value: Any, what: str, others: Any, numpys: bool) -> Array:
    made = _taken(value, what, others, numpys)
    if made.dtype.kind == "c":
        raise TypeError(f"{what} takes real numbers, not {made.dtype}")
    return made


def _value(value: Any, what: str, others: Any, numpys: bool) -> Any:
    return value if type(value) in _VALUES else _taken(value, what, others, numpys)


def _arrays(value: Any, what: str, others: Any, numpys: bool) -> Any:
    if type(value) in (list, tuple) and all(type(one) is Array for one in value):
        return value
    if isinstance(value, Array):
        if not value.ndim:
            raise TypeError(f"{what} is a sequence of arrays, and this array has no axes")
        return list(value)
    try:
        given = list(value)
    except TypeError:
        raise TypeError(f"{what} is a sequence of arrays, not {type(value).__name__}") from None
    return [_taken(one, what, given, numpys) for one in given]


def _target(value: Any, what: str, others: Any, numpys: bool) -> Array:
    if not isinstance(value, Array):
        raise TypeError(f"{what}: only arrays of Cantus can be changed in place here, not {type(value).__name__} (np.asarray for the other arguments)")
    return value


def _whole(value: Any, what: str, others: Any = (), numpys: bool = False) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{what} is a whole number, not {value!r}") from None


def _count(value: Any, what: str, others: Any = (), numpys: bool = False) -> int:
    found = _whole(value, what)
    if found < 0:
        raise ValueError(f"{what} must not be negative, and {found} was given")
    return found


def _several(value: Any, what: str, others: Any = (), numpys: bool = False) -> Any:
    if hasattr(type(value), "__index__") and not (isinstance(value, np.ndarray | Array) and value.ndim):
        return _whole(value, what)
    try:
        given = tuple(value)
    except TypeError:
        raise TypeError(f"{what} takes whole numbers, not {value!r}") from None
    return tuple(_whole(one, what) for one in given)


def _shape(value: Any, what: str, others: Any = (), numpys: bool = False) -> Any:
    if type(value) is int or type(value) is tuple and all(type(one) is int for one in value):
        return value
    return _several(value, what)


def _number(value: Any, what: str, others: Any = (), numpys: bool = False) -> Any:
    if isinstance(value, np.generic) or isinstance(value, np.ndarray | Array) and value.ndim == 0:
        value = value.item()
    if type(value) not in _NUMBERS:
        try:
            return operator.index(value)
        except TypeError:
            raise TypeError(f"{what} is a number, not {type(value).__name__}") from None
    return value


def _flag(value: Any, what: str, others: Any = (), numpys: bool = False) -> bool:
    try:
        return bool(value)
    except ValueError:
        raise TypeError(f"{what} is True or False, not {value!r}") from None


def _dtype(value: Any, what: str, others: Any = (), numpys: bool = False) -> DType:
    return _dtypes.of(value)


def array(value: Any, what: str, beside: Array | None) -> Array:
    """An argument as an array, beside another."""
    return _taken(value, what, (beside,), False)


def count(value: Any, what: str) -> int:
    """A whole number that isn't negative."""
    return _count(value, what)


# The test that an argument passes without a conversion, and the conversion.
_TESTS: dict[str, tuple[str, Callable[..., Any]]] = {
    "array": ("type({0}) is Array", _taken),
    "real": ("type({0}) is Array and {0}.dtype.kind != 'c'", _real),
    "value": ("type({0}) in VALUES", _value),
    "arrays": ("False", _arrays),
    "target": ("type({0}) is Array", _target),
    "axis": ("type({0}) is int", _whole),
    "whole": ("type({0}) is int", _whole),
    "count": ("type({0}) is int and {0} >= 0", _count),
    "axes": ("type({0}) is int", _several),
    "shape": ("type({0}) is int", _shape),
    "number": ("type({0}) in NUMBERS", _number),
    "flag": ("type({0}) is bool", _flag),
    "dtype": ("type({0}) is DType", _dtype),
}
_OF_ARRAYS = {"array", "real", "value", "arrays", "target"}
# Their axis may be None, though it has another default: then they flatten.
_FLATTEN = set("sort argsort partition argpartition concatenate concat append take_along_axis put_along_axis".split())


def entered(function: _Function, name: str, numpys: bool = False) -> _Function:
    """The entry of a function: of the same signature. `numpys` says that Python's floats are NumPy's, float64."""
    row = ROWS.get(name, ROWS.get(name.rpartition(".")[2], {}))
    parameters = list(inspect.signature(function).parameters.values())
    kinds = {one.name: kind for one in parameters if (kind := row.get(one.name, KINDS.get(one.name, "")))}
    if not kinds or hasattr(function, "__wrapped__"):
        return function
    held: dict[str, Any] = {"_of": function, "Array": Array, "VALUES": _VALUES, "NUMBERS": _NUMBERS, "DType": DType}
    arrays = ", ".join(one.name for one in parameters if kinds.get(one.name) in _OF_ARRAYS)
    head, call, lines, kind_before = [], [], [], None
    for place, one in enumerate(parameters):
        if kind_before is one.POSITIONAL_ONLY and one.kind is not one.POSITIONAL_ONLY:
            head.append("/")
        if one.kind is one.KEYWORD_ONLY and kind_before not in (one.KEYWORD_ONLY, one.VAR_POSITIONAL):
            head.append("*")
        kind_before = one.kind
        stars = "*" if one.kind is one.VAR_POSITIONAL else "**" if one.kind is one.VAR_KEYWORD else ""
        default = ""
        if one.default is not one.empty:
            held[f"_d{place}"] = one.default
            default = f"=_d{place}"
        head.append(f"{stars}{one.name}{default}")
        call.append(f"{one.name}={one.name}" if one.kind is one.KEYWORD_ONLY else f"{stars}{one.name}")
        kind = kinds.get(one.name, "")
        if not kind or one.kind is one.VAR_KEYWORD:
            continue
        test, held[f"_to{place}"] = _TESTS[kind]
        convert = f"_to{place}({{0}}, {f'{name}: {one.name}'!r}, ({arrays}{',' if arrays else ''}), {numpys})"
        if one.kind is one.VAR_POSITIONAL:
            if kind == "arrays":
                kind = "array"
                test, held[f"_to{place}"] = _TESTS[kind]
            test, convert = test.format("_one"), convert.format("_one")
            lines.append(f"{one.name} = tuple(_one if {test} else {convert} for _one in {one.name})")
            continue
        test, convert = test.format(one.name), convert.format(one.name)
        if one.default is None or kind == "axis" and name in _FLATTEN:
            test = f"{one.name} is None or {test}"
        elif one.default is np._NoValue:
            test = f"{one.name} is _d{place} or {test}"
        lines.append(f"if not ({test}): {one.name} = {convert}")
    if kind_before is inspect.Parameter.POSITIONAL_ONLY:
        head.append("/")
    title = name.replace(".", "_").replace("<lambda>", "of")
    body = "".join(f"        {line}\n" for line in lines)
    source = f"def _make({', '.join(held)}):\n    def {title}({', '.join(head)}):\n{body}        return _of({', '.join(call)})\n    return {title}\n"
    made: dict[str, Any] = {}
    # In the function's own module, where documentation's examples are looked for.
    exec(compile(source, f"<entry of {name}>", "exec"), function.__globals__, made)
    return functools.update_wrapper(made["_make"](**held), function)  # type: ignore[return-value]


def enter(module: dict[str, Any], prefix: str = "") -> None:
    """Gives every public function of a module its entry."""
    for name, function in list(module.items()):
        if not name.startswith("_") and inspect.isfunction(function) and function.__module__ == module["__name__"]:
            module[name] = entered(function, prefix + name)
