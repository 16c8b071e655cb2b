"""Arguments of every kind: each of NumPy's functions with NumPy's arrays and lists in each place, with arrays of each dtype and of other lengths, and with
NumPy's integers as axes. The oracle is NumPy: its values and its dtype, or an error where it has one. Inputs are seeded.
"""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest
from test_arguments import CALLS, called, numpys, ours, protocol

import cantus

DTYPES = ("?", "i1", "u1", "i4", "u4", "i8", "f2", "f4", "f8", "c8", "c16")
# What is an error in a use of the arguments; anything else would be a fault of ours.
REFUSALS = (TypeError, ValueError, IndexError, OverflowError, ZeroDivisionError, RuntimeError)
NAMES = [name for name in protocol() if not name.startswith(("fft.ihfft", "fft.hfft"))]


# What NumPy says by accident, where a result is meant.
ACCIDENTS = ("float16 is unsupported", "values to unpack", "unsized object", "index -1 is out of bounds for axis 0 with size 0")
# Of small numbers ours are wider in some functions.
NARROW = re.compile("with [?iuf][12]?( |$)|^[?iuf][12]? ")


def outcome(of, arguments, named=None):
    with np.errstate(all="ignore"):
        try:
            found = of(*arguments, **(named or {}))
            return found, None
        except Exception as error:
            return None, error


def flat(found):
    if isinstance(found, tuple | list):
        return [one for part in found for one in flat(part)]
    return [found]


def compare(name, found, expected, what, dtypes=True):
    found, expected = flat(found), flat(expected)
    assert len(found) == len(expected), (name, what)
    for one, other in zip(found, expected, strict=True):
        if not isinstance(other, np.ndarray | np.generic):
            assert one == other or isinstance(other, float) and np.isclose(one, other, rtol=1e-3), (name, what, one, other)
            continue
        if isinstance(one, int):
            assert one == other, (name, what)
            continue
        one, other = np.asarray(one), np.asarray(other)
        assert one.shape == other.shape, (name, what, one.shape, other.shape)
        if dtypes and one.dtype.kind == other.dtype.kind and one.dtype.kind in "fc" and one.itemsize > other.itemsize and NARROW.search(what):
            with np.errstate(all="ignore"):
                one = one.astype(other.dtype)
        if dtypes:
            assert one.dtype == other.dtype, (name, what, one.dtype, other.dtype)
        if name == "empty_like":
            continue
        if name in ("partition", "unique_values"):  # of which the order says nothing
            one, other = np.sort(one, -1), np.sort(other, -1)
        if name in ("linalg.svd", "linalg.eigh", "linalg.qr"):
            one, other = abs(one), abs(other)
        narrow = any(of.dtype.kind in "fc" and np.finfo(of.dtype).eps > 1e-4 for of in (one, other))
        loose = 3e-2 if narrow else 2e-3
        if other.dtype.kind in "fc":
            one, other = one.astype("c16" if other.dtype.kind == "c" else "f8"), other.astype("c16" if other.dtype.kind == "c" else "f8")
        np.testing.assert_allclose(one, other, rtol=loose, atol=loose, err_msg=f"{name} {what}", equal_nan=True)


def agrees(name, of, arguments, changed, what, dtypes=True, named=None):
    """NumPy's result of these arguments; an error where NumPy has one; or a refusal of ours, which says what it refuses."""
    expected, wrong = outcome(of, [one.copy() if isinstance(one, np.ndarray) else one for one in arguments], named)
    found, error = outcome(of, changed, named)
    if error is None:
        found, error = outcome(lambda: [np.asarray(one) if isinstance(one, cantus.Array) else one for one in flat(found)], ())
    if isinstance(wrong, np.linalg.LinAlgError) or any(text in str(wrong) for text in ACCIDENTS):
        return "NaN of a singular matrix, and halves"
    if wrong is not None:
        assert error is not None, f"np.{name} {what}: NumPy says {type(wrong).__name__}: {wrong}; here {found}"
        assert isinstance(error, REFUSALS), (name, what, repr(error))
        return "refused by both"
    if error is not None:
        assert isinstance(error, REFUSALS) and "'_" not in str(error), (name, what, repr(error))
        return f"refused: {type(error).__name__}: {error}"
    compare(name, found, expected, what, dtypes)
    return "alike"


def places(name):
    return [place for place, one in enumerate(CALLS[name]) if isinstance(one, np.ndarray)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_an_array_of_numpys_in_each_place(name):
    of, arguments = called(name), CALLS[name]
    for place in places(name):
        changed = [one.copy() if at == place and isinstance(one, np.ndarray) else ours(one) for at, one in enumerate(arguments)]
        if not any(isinstance(one, cantus.Array) for one in changed) or place == 0 and name in ("copyto", "fill_diagonal", "put", "place", "putmask", "put_along_axis"):
            continue
        said = agrees(name, of, arguments, changed, f"with NumPy's array in place {place}")
        assert said == "alike", (name, place, said)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_lists_are_arrays(name):
    of, arguments = called(name), CALLS[name]
    for place in places(name):
        given = [one.tolist() if at == place else one for at, one in enumerate(arguments)]
        changed = [one if at == place else ours(one) for at, one in enumerate(given)]
        if not any(isinstance(one, cantus.Array) for one in changed) or place == 0 and name in ("copyto", "fill_diagonal", "put", "place", "putmask", "put_along_axis"):
            continue
        expected, wrong = outcome(of, given)
        if wrong is not None:
            continue
        said = agrees(name, of, given, changed, f"with a list in place {place}")
        assert said == "alike", (name, place, said)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_each_dtype_in_each_place(name):
    of, arguments = called(name), CALLS[name]
    for place in places(name):
        for dtype in DTYPES:
            if dtype in DEGENERATE.get(name, ()) or (name, place) == ("interp", 1):
                continue
            with np.errstate(all="ignore"):
                cast = arguments[place].astype(dtype)
            if cast.dtype.kind == "c":
                cast = (cast + 1j * arguments[place][::-1].astype(dtype)).astype(dtype)
            given = [cast if at == place else one for at, one in enumerate(arguments)]
            agrees(name, of, given, [ours(one) for one in given], f"with {dtype} in place {place}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_other_lengths_in_each_place(name):
    of, arguments = called(name), CALLS[name]
    for place in places(name):
        whole = arguments[place]
        others = [whole[..., :0], whole[..., :1], whole[..., :-1], np.concatenate([whole, whole[..., :1]], -1), whole[None], whole.ravel(), whole.reshape(-1)[0]]
        for other in others:
            other = np.asarray(other)
            if (name, place) == ("searchsorted", 0) and other.size and not (np.diff(other.ravel()) >= 0).all():
                continue
            given = [other if at == place else one for at, one in enumerate(arguments)]
            agrees(name, of, given, [ours(one) for one in given], f"with the shape {other.shape} in place {place}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_numpys_integers_are_whole_numbers(name):
    of, arguments = called(name), CALLS[name]
    given = [np.int64(one) if type(one) is int else tuple(map(np.int64, one)) if type(one) is tuple and all(type(part) is int for part in one) else one for one in arguments]
    if given != list(arguments) or any(type(one) is np.int64 for one in given):
        said = agrees(name, of, given, [ours(one) for one in given], "with NumPy's integers")
        assert said == "alike", said
    try:
        has_axis = "axis" in inspect.signature(of).parameters
    except ValueError:
        has_axis = False
    for axis in (np.int64(0), np.int32(-1)) if has_axis and name not in ("apply_along_axis", "put_along_axis") else ():
        expected, wrong = outcome(of, arguments, {"axis": int(axis)})
        if wrong is None:
            said = agrees(name, of, arguments, [ours(one) for one in arguments], f"with axis={axis!r}", named={"axis": axis})
            assert said == "alike" or "takes no axis" in said, said


# Matrices that have several factorisations, or lose their rank, and elements that are equal: any order of those is right.
DEGENERATE = {
    "trapezoid": ("?", "i1", "u1", "u4"),  # whose sums wrap in NumPy
    **dict.fromkeys(("linalg.svd", "linalg.qr", "linalg.cond"), ("?", "i1", "u1", "i4", "u4", "i8", "f2")),
    **dict.fromkeys(("linalg.eigh", "linalg.eigvalsh", "argpartition"), ("?", "i1", "u1", "i4", "u4", "i8", "f2", "c8", "c16")),
}  # fmt: skip
STANDARD = sorted(name for name in CALLS if "." not in name and hasattr(cantus, name) and name not in ("astype", "result_type", "can_cast", "unstack", "meshgrid", "round", "clip", "permute_dims", "take"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", STANDARD)
def test_the_modules_own_take_lists_and_arrays_of_numpys(name):
    """`cantus.sum([1, 2])`: values are NumPy's; Python's floats are float32."""
    if name in ("copyto", "fill_diagonal", "put", "place", "putmask", "put_along_axis", "apply_along_axis"):
        return
    arguments = CALLS[name]
    expected, wrong = outcome(numpys(name), arguments)
    assert wrong is None
    for what, changed in (("arrays", arguments), ("lists", [one.tolist() if isinstance(one, np.ndarray) else one for one in arguments])):
        found, error = outcome(getattr(cantus, name), changed)
        assert error is None, (name, what, repr(error))
        compare(name, found, expected, what, dtypes=False)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(name for name in dir(np) if isinstance(getattr(np, name), np.ufunc)))
@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_of_elements_take_each_dtype(name, dtype):
    of = getattr(np, name)
    if of.signature is not None or name == "reciprocal" and np.dtype(dtype).kind in "iu":  # of 0 it is anything
        return
    x = np.arange(-3, 5).astype(dtype)
    for other in DTYPES:
        y = np.array([1, 2, 3, 1, 2, 3, 4, 5]).astype(other)
        given = (x, y)[: of.nin]
        for changed in ([ours(one) for one in given], [ours(given[0]), *given[1:]], [*given[:-1], ours(given[-1])]):
            agrees(name, of, given, changed, f"{dtype} and {other}")
        if of.nin == 1:
            break


BAD = {
    "bincount's weights": lambda xp, i, x: xp.bincount(i, weights=x[:1]), "bincount's length": lambda xp, i, x: xp.bincount(i, minlength=-1),
    "digitize's bins": lambda xp, i, x: np.digitize(x, np.array([1.0, 3, 2])), "partition": lambda xp, i, x: np.partition(x, 9),
    "argpartition": lambda xp, i, x: np.argpartition(x, 9), "diff": lambda xp, i, x: np.diff(x, n=-1), "power": lambda xp, i, x: i**-1,
    "power of an array": lambda xp, i, x: i ** (-i), "interp": lambda xp, i, x: np.interp(x, x[:2], x), "interp of nothing": lambda xp, i, x: np.interp(x, x[:0], x[:0]),
    "zeros": lambda xp, i, x: xp.zeros(2.5), "repeat": lambda xp, i, x: np.repeat(x, -1), "take": lambda xp, i, x: np.take(x, 9),
    "axis": lambda xp, i, x: np.sum(x, axis=1.0), "imaginary": lambda xp, i, x: x.__setitem__(0, 1j), "empty": lambda xp, i, x: x[:0].__setitem__(0, 1),
    "empty rows": lambda xp, i, x: xp.zeros((0, 3)).__setitem__(slice(None), xp.ones(5)), "copy": lambda xp, i, x: np.asarray(x, dtype="f4", copy=False),
    "weights": lambda xp, i, x: np.average(x, weights=x[:2]), "cov": lambda xp, i, x: np.cov(x, fweights=i[:2]), "compress": lambda xp, i, x: np.compress([[True]], x),
    "complex bins": lambda xp, i, x: np.digitize(x * 1j, x), "complex weights": lambda xp, i, x: np.bincount(i, weights=x[:3] * 1j), "complex quantiles": lambda xp, i, x: np.quantile(x * 1j, 0.5),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", BAD)
def test_what_numpy_refuses_is_refused(device, name):
    program = BAD[name]
    i, x = np.array([1, 2, 3]), np.arange(5.0)
    with pytest.raises(Exception) as theirs:
        program(np, i.copy(), x.copy())
    with pytest.raises(REFUSALS) as mine:
        np.asarray(program(cantus, cantus.asarray(i), cantus.asarray(x)))
    assert isinstance(mine.value, theirs.type) or issubclass(theirs.type, ValueError | TypeError), (theirs.value, mine.value)


def test_imaginary_parts_stay(device):
    if not device.has(cantus.float64):
        pytest.skip("no complex128")
    z, x = np.array([1j, 2, 3 + 1j]), np.arange(3.0)
    ours_z, ours_x = cantus.asarray(z), cantus.asarray(x)
    for of in (
        lambda x, z: np.interp(np.array([0.5, -1, 9]), x, z), lambda x, z: np.interp(x, x, z, left=7j, right=2), lambda x, z: np.polyfit(x, z, 1),
        lambda x, z: np.histogram(x, bins=2, weights=z)[0], lambda x, z: np.average(x, weights=z), lambda x, z: np.trapezoid(z, x), lambda x, z: np.convolve(x, z),
        lambda x, z: np.sort(z), lambda x, z: np.argsort(z), lambda x, z: np.max(z), lambda x, z: np.argmin(z), lambda x, z: np.median(z), lambda x, z: np.full_like(z, 1j),
    ):  # fmt: skip
        np.testing.assert_allclose(np.asarray(of(ours_x, ours_z)), of(x, z), rtol=1e-9, atol=1e-9)


def test_numbers_of_numpys_make_arrays(device):
    assert cantus.arange(np.int64(5)).dtype == cantus.arange(5).dtype and cantus.arange(np.prod((3, 2))).shape == (6,)
    assert cantus.arange(np.int64(2**24 + 1), np.int64(2**24 + 4)).tolist() == [16777217, 16777218, 16777219]
    assert cantus.linspace(np.float32(0), np.int64(1), np.int8(3)).tolist() == [0, 0.5, 1]
    assert cantus.zeros(np.int64(2)).shape == (2,) and cantus.eye(np.int32(2), k=np.int8(1)).tolist() == [[0, 1], [0, 0]]
    assert cantus.full(2, [1, 2]).tolist() == [1, 2] and cantus.full((2, 2), cantus.ones(2)).tolist() == [[1, 1], [1, 1]]
    assert cantus.roll(cantus.arange(3), np.int64(1)).tolist() == [2, 0, 1] and cantus.sum(cantus.ones((2, 3)), 0).tolist() == [2, 2, 2]
    with pytest.raises(TypeError, match="whole numbers|whole number"):
        cantus.zeros(2.5)
    with pytest.raises(TypeError, match="key"):
        cantus.random.uniform(7, 3)
