"""Every function of NumPy's that takes arrays of Cantus, with every argument away from its default: what NumPy gives, or an error that names the
argument. Nothing is taken and dropped.
"""

from __future__ import annotations

import functools
import inspect

import numpy as np
import pytest

import cantus
from cantus import _numpy, fft, linalg

X = np.random.default_rng(4).uniform(-3, 3, (3, 4)).astype("f4")
CUBE = np.arange(24, dtype="f4").reshape(2, 3, 4)
SQUARE = (X[:, :3] @ X[:, :3].T + 4 * np.eye(3)).astype("f4")
ROW = np.sort(X.ravel())
HOLES = np.where(X > 2, np.nan, X).astype("f4")
WHOLE = np.array([3, 1, 1, 0, 5])
COMPLEX = (X + 1j * X[::-1]).astype("c8")
FIRST = np.argsort(X, axis=1)
FREE = "out", "subok", "like", "optimize", "overwrite_input"

# A call of each function, by required arguments alone.
CALLS = {
    **dict.fromkeys("sum prod all any count_nonzero max min amax amin mean var std argmax argmin cumsum cumprod".split(), (X,)),
    **dict.fromkeys("nansum nanmax nanmin nan_to_num nanmedian".split(), (HOLES,)),
    **dict.fromkeys("round around ravel transpose nonzero real imag atleast_1d atleast_2d sort argsort flip unique copy".split(), (X,)),
    **dict.fromkeys("zeros_like ones_like empty_like shape ndim size iscomplexobj isrealobj tril triu diff median meshgrid".split(), (X,)),
    **dict.fromkeys(("concatenate", "concat", "stack", "vstack", "hstack"), ([X, X * 2],)),
    **dict.fromkeys(("quantile", "percentile"), (X, 0.3)), **dict.fromkeys(("nanquantile", "nanpercentile"), (HOLES, 0.3)),
    **dict.fromkeys(("trace", "diagonal"), (CUBE,)), **dict.fromkeys(("partition", "argpartition"), (X, 1)),
    **dict.fromkeys(("dot", "inner", "tensordot"), (SQUARE, SQUARE)), "isclose": (X, X + 1e-6), "unique_values": (X,),
    "clip": (X, -1.0, 1.0), "reshape": (X, (4, 3)), "swapaxes": (X, 0, 1), "moveaxis": (CUBE, 0, 1), "expand_dims": (X, (-2, -1)), "squeeze": (X[None, :, None],),
    "broadcast_to": (X, (2, 3, 4)), "broadcast_arrays": (X, X[0]), "where": (X > 0, X, X * 2), "take": (X, [1, 0, 2]), "pad": (X, 2),
    "tile": (X, (2, 1)), "repeat": (X, 2), "roll": (X, 2), "take_along_axis": (X, FIRST), "outer": (X[0], X[1]),
    "einsum": ("ij,kj->ik", X, X), "searchsorted": (ROW, X[0]), "full_like": (X, 3), "result_type": (X, np.float64), "can_cast": (np.float32, "f8"),
    "bincount": (WHOLE,), "histogram": (X,), "digitize": (X, np.array([-1.0, 0, 2])), "interp": (X[0], np.array([-1.0, 0, 2]), np.array([3.0, 4, 9])),
    "gradient": (X,), "diag": (X[0],), "apply_along_axis": (lambda row, by=2: row[::2] * by, 0, X),
    **dict.fromkeys("linalg.cholesky linalg.det linalg.eigh linalg.eigvalsh linalg.inv linalg.qr linalg.slogdet linalg.svd".split(), (SQUARE,)),
    **dict.fromkeys("linalg.svdvals linalg.pinv linalg.matrix_rank linalg.matrix_norm linalg.norm linalg.matrix_transpose".split(), (X,)),
    **dict.fromkeys("linalg.diagonal linalg.trace linalg.vector_norm".split(), (CUBE,)), "linalg.matrix_power": (SQUARE, 2),
    "linalg.cross": (X[:, :3], X[:, 1:]), **dict.fromkeys("linalg.matmul linalg.solve linalg.tensordot linalg.vecdot".split(), (SQUARE, SQUARE)),
    "linalg.outer": (X[0], X[1]),
    **dict.fromkeys("nanmean nanvar nanstd nanprod nancumprod".split(), (HOLES,)), "nancumsum": (abs(HOLES),), **dict.fromkeys(("nanargmax", "nanargmin"), (HOLES,)),
    **dict.fromkeys("angle argwhere atleast_3d average cov corrcoef ediff1d fix flatnonzero fliplr flipud iscomplex isneginf isposinf isreal ptp rot90".split(), (X,)),
    **dict.fromkeys("sinc trapezoid tril_indices_from triu_indices_from unique_all unique_counts unique_inverse unstack unwrap histogram_bin_edges".split(), (X,)),
    **dict.fromkeys("cumulative_prod cumulative_sum diagflat vander trim_zeros".split(), (X[0],)), "diag_indices_from": (SQUARE,),
    "split": (X, 3), **dict.fromkeys(("array_split", "hsplit"), (X, 2)), "vsplit": (X, 3), "dsplit": (CUBE, 2), **dict.fromkeys(("block", "column_stack", "dstack"), ([X, X * 2],)),
    "append": (X, X[:1]), "delete": (X, 1), "insert": (X, [1, 2], np.float32(5)), "resize": (X, (5, 3)), "rollaxis": (CUBE, 2), "choose": (WHOLE, [WHOLE] * 6),
    "compress": (np.array([True, False, True]), X), "extract": (X > 0, X), "select": ([X > 1, X < -1], [X, -X]), "piecewise": (X, [X < 0, X > 1], [-1.0, lambda x: x * 2, 3.0]),
    "unravel_index": (WHOLE, (3, 4)), "ravel_multi_index": ((WHOLE, WHOLE), (6, 7)), **dict.fromkeys(("convolve", "correlate"), (X[0], X[1])),
    "copyto": (X, X * 2), "fill_diagonal": (SQUARE, np.float32(5)), "put": (X, [0, 5], np.float32(2)), "place": (X, X > 0, X[0]), "putmask": (X, X > 0, X[0]), "put_along_axis": (X, FIRST[:, :1], np.float32(7), 1),
    **dict.fromkeys(("isin", "setdiff1d", "setxor1d", "union1d"), (WHOLE, np.array([1, 4, 0, 1]))), "intersect1d": (WHOLE[1:] * [2, 1, 1, 1], np.array([1, 4, 0])), "lexsort": ([WHOLE, WHOLE % 2],), "kron": (X, SQUARE),
    "vdot": (COMPLEX, COMPLEX), **dict.fromkeys(("polyadd", "polysub", "polymul"), (X[0], X[1, :3])), **dict.fromkeys(("polyder", "polyint"), (X[0],)),
    **dict.fromkeys(("permute_dims", "matrix_transpose"), (X,)), "astype": (X, "i4"), "cross": (X[:, :3], X[:, 1:]), "polyfit": (ROW.astype("f8"), ROW.astype("f8") ** 2, 2), "polyval": (X[0], X),
    "histogram2d": (X[0], X[1]), "histogramdd": (X,), "linalg.cond": (SQUARE,), "linalg.lstsq": (X, X[:, 0]), "linalg.multi_dot": ([X, X.T, X],),
    **dict.fromkeys([f"fft.{name}" for name in vars(fft) if "ft" in name and "freq" not in name], (COMPLEX,)), "fft.rfft": (X,), "fft.rfftn": (X,), "fft.rfft2": (X,), "fft.ihfft": (X,),
}  # fmt: skip
# Values for each argument; for some functions others.
VALUES = {
    "axis": [0, 1, -1, (0, 1), None], "keepdims": [True], "dtype": ["f8", "f2", "i4"], "initial": [2.0], "where": [X > 0], "ddof": [1], "correction": [1],
    "mean": [X.mean(keepdims=True)], "order": ["F", "C", "A"], "copy": [False, True], "nan": [9.0], "posinf": [1.0], "neginf": [-1.0], "a_min": [-1.0],
    "a_max": [1.0], "min": [-1.0], "max": [1.0], "decimals": [1, -1], "casting": ["no", "unsafe"], "axes": [(1, 0), 1, ((0,), (1,)), 0], "mode": ["wrap", "clip", "raise"],
    "offset": [1, -1], "axis1": [1, 2], "axis2": [0, 2], "k": [1, -1], "sparse": [True], "indexing": ["ij"], "n": [2, 3], "prepend": [X[:, :1], 0.0],
    "append": [X[:, :1]], "kind": ["stable"], "stable": [True], "side": ["right"], "sorter": [np.arange(12)], "return_index": [True],
    "return_inverse": [True], "return_counts": [True], "equal_nan": [False], "sorted": [True], "rtol": [1e-2, 1e-9], "atol": [1e-2, 1e-9],
    "shape": [(2, 5)], "device": ["cpu"], "method": ["nearest", "lower", "midpoint", "hazen", "median_unbiased"], "weights": [np.linspace(0.5, 2, 5)],
    "minlength": [9], "bins": [4, [-3, 0, 1, 3]], "range": [(-1, 1)], "density": [True], "right": [True, 7.5], "left": [-7.5], "period": [2.5],
    "edge_order": [2], "upper": [True], "UPLO": ["U"], "ord": [1, 2, np.inf, "nuc", "fro"], "tol": [1.0], "hermitian": [True], "rcond": [0.5],
    "discont": [1.0], "edge_order": [2], "to_end": [X[0]], "to_begin": [X[0, :2]], "deg": [True], "increasing": [True], "N": [3], "returned": [True], "rowvar": [False],
    "bias": [True], "fweights": [np.array([1, 2, 1, 3])], "aweights": [np.array([0.5, 1, 2, 1])], "y": [X * X], "x": [X[0]], "dx": [0.5], "trim": ["f", "b"], "k": [1, -1],
    "assume_unique": [True], "invert": [True], "return_indices": [True], "wrap": [True], "include_initial": [True], "default": [1.5], "start": [1], "p": [1, 2, np.inf],
    "axisa": [0], "axisb": [0], "axisc": [0], "full": [True], "w": [np.linspace(1, 2, 12)], "cov": [True], "m": [X], "v": [X[0]],
    "full_matrices": [False], "compute_uv": [False], "norm": ["ortho", "forward"], "s": [(2, 3)], "fill_value": [2], "a": [X],
}  # fmt: skip
SPECIAL = {
    ("quantile", "weights"): [abs(X)], ("percentile", "weights"): [abs(X)], ("nanquantile", "weights"): [abs(X)],
    ("nanpercentile", "weights"): [abs(X)], ("histogram", "weights"): [abs(X)], ("searchsorted", "sorter"): [np.argsort(ROW)],
    ("linalg.qr", "mode"): ["complete", "r", "raw"], ("pad", "mode"): ["edge", "reflect", "wrap", "symmetric", "linear_ramp", "mean"],
    ("linalg.pinv", "rtol"): [0.5], ("linalg.matrix_rank", "rtol"): [0.5], ("take", "mode"): ["wrap", "clip"],
    ("can_cast", "casting"): ["no", "unsafe"], ("average", "weights"): [abs(X)], ("unwrap", "period"): [2.5], ("isin", "kind"): ["sort", "table", "none"],
    **{(name, "mode"): ["full", "same", "valid"] for name in ("convolve", "correlate")}, ("histogram2d", "bins"): [3, [3, 4]], ("histogram2d", "range"): [[(-1, 1), (0, 2)]],
    ("histogram2d", "weights"): [abs(X[2])], ("histogramdd", "range"): [[(-1, 1)] * 4], ("histogramdd", "weights"): [abs(X[:, 0])], ("histogramdd", "bins"): [3, (2, 3, 4, 5)],
    **{(name, "m"): [0, 2] for name in ("polyder", "polyint")}, ("polyint", "k"): [3.0], ("histogram_bin_edges", "weights"): [abs(X)], ("rot90", "k"): [2, 3, -1], ("rot90", "axes"): [(1, 0)], ("cross", "axis"): [0, -1],
    **{(name, "ddof"): [0, 2] for name in ("cov", "nanvar", "nanstd")}, ("cov", "dtype"): ["f4"], ("corrcoef", "dtype"): ["f4"], ("copyto", "where"): [X > 0],
}  # fmt: skip
# Other arguments that a function has by `**`, and calls that show what one does.
MORE = {
    "pad": {"constant_values": [5.0, ((1, 2), (3, 4))], "stat_length": [1], "end_values": [1.0], "reflect_type": ["odd"]},
    "einsum": {"dtype": ["f8"], "order": ["F"], "casting": ["no"]}, "clip": {"dtype": ["f8"], "where": [X > 0]},
    "apply_along_axis": {"by": [3]},
}  # fmt: skip
OTHER_CALLS = {"take": (X, [7, -13]), "copy": (COMPLEX,), "max": (CUBE,), "sum": (WHOLE,), "unique": (HOLES,), "nan_to_num": (COMPLEX * np.inf,), "nanmax": (HOLES * np.nan,)}


def ours(value):
    if isinstance(value, np.ndarray):
        return cantus.asarray(value)
    return [ours(one) for one in value] if isinstance(value, list) else value


def numpys(name):
    of = np
    for part in name.split("."):
        of = getattr(of, part, None)
    return of


def same(found, expected, name=""):
    if isinstance(expected, tuple | list):
        for one, other in zip(found, expected, strict=True):
            same(one, other, name)
        return
    if not isinstance(expected, np.ndarray | np.generic) or isinstance(found, int):
        assert found == expected
        return
    assert np.asarray(found).dtype == np.asarray(expected).dtype, (found.dtype, expected.dtype)
    assert np.shape(found) == np.shape(expected)
    if name == "empty_like":
        return
    if name in ("linalg.svd", "linalg.eigh", "linalg.qr"):  # columns may have the other sign
        found, expected = abs(found), abs(expected)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(np.asarray(found), expected, rtol=2e-3 if "float16" in str(np.asarray(expected).dtype) else 3e-5, atol=3e-5)


def heeded(name, of, arguments, argument, value, call=None):
    """NumPy's result, or an error that names the argument."""
    named, theirs = {argument: ours(value)}, {argument: value}
    call = call or of
    with np.errstate(all="ignore"):
        if argument == "out" and arguments is not OTHER_CALLS["take"]:
            plain = np.asarray(of(*arguments))
            named, theirs = {"out": cantus.zeros(plain.shape, dtype=plain.dtype)}, {"out": np.zeros_like(plain)}
        if argument == "where" and isinstance(of, np.ufunc):
            named["out"], theirs["out"] = cantus.ones(X.shape), np.ones_like(X)
        try:
            expected = of(*(one.copy() if isinstance(one, np.ndarray) else one for one in arguments), **theirs)
        except Exception:  # NumPy takes it not: nor do we.
            with pytest.raises(Exception):
                np.asarray(call(*map(ours, arguments), **named))
            return
        try:
            found = call(*map(ours, arguments), **named)
        except Exception as error:
            assert argument in str(error), (name, argument, value, error)
            return
        if argument == "out":
            assert found is named["out"], "the result is not `out`"
    try:
        same(found, expected, name)
    except Exception as error:
        raise AssertionError(f"np.{name} with {argument}={value!r}: {error}") from error


# What changes its first argument, and gives nothing.
CHANGES = "copyto", "fill_diagonal", "put", "place", "putmask", "put_along_axis"


def called(name):
    """A function of NumPy's; one that changes its first argument as one that gives a changed copy."""
    of = numpys(name)
    if name not in CHANGES:
        return of

    @functools.wraps(of)
    def changed(target, *arguments, **named):
        target = target.copy()
        assert of(target, *arguments, **named) is None
        return target

    return changed


def protocol():
    names = [name for name in _numpy.FUNCTIONS if hasattr(numpys(name), "_implementation")]
    for module, of in (("linalg", linalg), ("fft", fft)):
        names += [f"{module}.{name}" for name in vars(of) if hasattr(numpys(f"{module}.{name}"), "_implementation")]
    return sorted(set(names))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", protocol())
def test_functions_heed_their_arguments(name):
    of = called(name)
    assert name in CALLS, f"a call of np.{name} is missing in this test"
    try:
        parameters = list(inspect.signature(of).parameters.values())
    except ValueError:
        pytest.skip("this NumPy does not tell its parameters")
    calls = [CALLS[name]] + ([OTHER_CALLS[name]] if name in OTHER_CALLS else [])
    for arguments in calls:
        if arguments is not OTHER_CALLS["take"]:  # out of range except in some modes
            same(of(*map(ours, arguments)), of(*arguments), name)
        for parameter in parameters[len(arguments) :]:
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
                continue
            if parameter.name in FREE:
                values = [True]
            else:
                values = SPECIAL.get((name, parameter.name)) or VALUES.get(parameter.name)
                assert values, f"a value for {parameter.name} of np.{name} is missing in this test"
            for value in values:
                heeded(name, of, arguments, parameter.name, value)
        for argument, values in MORE.get(name, {}).items():
            for value in values:
                heeded(name, of, arguments, argument, value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", protocol())
def test_arguments_by_place_are_those_by_name(name):
    of, arguments = called(name), CALLS[name]
    try:
        parameters = list(inspect.signature(of).parameters.values())
    except ValueError:
        pytest.skip("this NumPy does not tell its parameters")
    place = len(arguments)
    if place >= len(parameters) or parameters[place].kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD or parameters[place].name == "out":
        return
    for value in SPECIAL.get((name, parameters[place].name)) or VALUES.get(parameters[place].name, []):
        def placed(*given, **named):
            return of(*given, *named.values())

        heeded(name, placed, arguments, parameters[place].name, value)


UFUNCS = sorted(name for name in dir(np) if isinstance(getattr(np, name), np.ufunc))


@pytest.mark.parametrize("name", UFUNCS)
@pytest.mark.parametrize("kind", ["f4", "i4"])
def test_functions_of_elements_heed_theirs(name, kind):
    of = getattr(np, name)
    arguments = (abs(X / 4).astype(kind),) * len(of.types[0].split("->")[0]) if of.signature is None else (SQUARE, SQUARE)
    if name == "reciprocal":  # of the integer 0 it is anything
        arguments = (np.full((3, 4), 2, kind),)
    with np.errstate(all="ignore"):
        try:
            plain = of(*arguments)
            same(of(*map(ours, arguments)), plain)
        except TypeError:  # None of theirs or none of ours, by name.
            return
    for argument, values in {
        "out": [True], "where": [X > 0], "dtype": ["f8", "i8"], "casting": ["no", "unsafe"], "order": ["F"], "subok": [False],
        "signature": ["ff->f"], "axis": [0], "keepdims": [True],
    }.items():  # fmt: skip
        for value in values:
            heeded(name, of, arguments, argument, value)


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "minimum", "logical_and", "logical_or"])
@pytest.mark.parametrize("of", [X, WHOLE])
def test_their_reductions_heed_theirs(name, of):
    reduce = getattr(np, name).reduce
    for argument, values in {
        "axis": [None, -1, 0], "dtype": ["f8"], "out": [True], "keepdims": [True], "initial": [2], "where": [of > 0],
    }.items():  # fmt: skip
        for value in values:
            heeded(f"{name}.reduce", reduce, (of,), argument, value)
    with pytest.raises(TypeError, match="np.asarray"):
        np.add.reduceat(cantus.asarray(X), [0, 1])
    with pytest.raises(TypeError, match="np.asarray"):
        np.power.accumulate(cantus.asarray(X))
    with pytest.raises(TypeError, match="np.asarray"):
        np.multiply.at(cantus.asarray(X), [0, 1], 2)


METHODS = {
    "reshape": ((4, 3),), "swapaxes": (0, 1), "dot": (X.T.copy(),), "take": ([7, -2],), "astype": ("f8",), "item": (3,), "repeat": (2,), "searchsorted": (1.0,), "compress": ([True, False, True],), "fill": (2.0,), "put": ([0, 2], 5.0),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(name for name in dir(cantus.Array) if not name.startswith("_") and name != "to_device" and callable(getattr(np.ndarray, name, None))))
def test_methods_heed_theirs(name):
    try:
        parameters = list(inspect.signature(getattr(np.ndarray, name)).parameters.values())[1:]
    except ValueError:
        pytest.skip("this NumPy does not tell its parameters")

    def method(x, *arguments, **named):
        x = x.copy()
        found = getattr(x, name)(*arguments, **named)
        return x if name in ("fill", "sort", "put") else found

    arguments = (ROW if name == "searchsorted" else X, *METHODS.get(name, ()))
    same(method(*map(ours, arguments)), method(*arguments))
    given = {parameter.name for parameter in parameters[len(arguments) - 1 :] if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)}
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        given |= {"keepdims", "where", "initial"}
    for argument in sorted(given):
        values = [True] if argument in FREE else SPECIAL.get((name, argument)) or VALUES.get(argument)
        assert values, f"a value for {argument} of ndarray.{name} is missing in this test"
        for value in values:
            heeded(f"ndarray.{name}", method, arguments, argument, value)


def test_what_is_made_like_an_array_has_the_axes_asked_for():
    """`np.array(..., like=)` is how dask makes an empty chunk."""
    like = cantus.ones(3)
    for axes in range(4):
        made = np.array([1.0, 2.0], like=like, ndmin=axes, dtype="f4")
        assert isinstance(made, cantus.Array) and made.shape == np.array([1.0, 2.0], ndmin=axes).shape
    assert np.array([], like=like, ndmin=2, dtype="f4").shape == (1, 0)
