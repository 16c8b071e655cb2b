"""Faults that others' programs have met, each as its class: masks, dtypes, small differences from NumPy, writes, halves, memory, interrupts. The oracle is NumPy."""

from __future__ import annotations

import operator
import subprocess
import sys
import warnings

import numpy as np
import pytest

import cantus

A = cantus.asarray
RANDOM = np.random.default_rng(57)


# Masks.


def keys(shape):
    """Keys with a mask in some place, of the right length and of others, in each form."""
    for axis in range(len(shape)):
        for length in {shape[axis], shape[axis] - 1, shape[axis] + 1, 0, 1, 7}:
            mask = np.arange(max(length, 0)) % 2 == 0
            for form in (mask, mask.tolist()) if length else (mask,):
                yield (slice(None),) * axis + (form,)
                yield (Ellipsis, form) + (slice(None),) * (len(shape) - axis - 1)
                if axis == 0:
                    yield form
                for other in (0, None):
                    yield (other,) * axis + (form,) + (other,)
    yield np.ones(shape, bool)
    yield np.ones((shape[0], shape[1] + 1), bool)
    yield np.ones((shape[0] + 1, *shape[1:]), bool)
    yield (slice(None), np.ones(shape[1:], bool))
    yield (slice(None), np.ones((shape[1] - 1, *shape[2:]), bool))
    yield np.ones((*shape, 2), bool)


def ours(key):
    return tuple(map(ours, key)) if isinstance(key, tuple) else A(key) if isinstance(key, np.ndarray) else key


def test_masks_have_the_axes_lengths(device):
    count = 0
    for shape in ((4, 5), (5, 4, 3)):
        x = RANDOM.uniform(size=shape).astype("f4")
        for key in keys(shape):
            for form in (key, ours(key)):
                count += 1
                try:
                    expected = x[key]
                except IndexError:
                    with pytest.raises(IndexError):
                        np.asarray(A(x)[form])
                    with pytest.raises(IndexError):
                        A(x)[form] = 0
                    continue
                np.testing.assert_array_equal(np.asarray(A(x)[form]), expected, err_msg=str(key))
                y, z = A(x), x.copy()
                y[form], z[key] = 7, 7
                np.testing.assert_array_equal(np.asarray(y), z, err_msg=str(key))
    assert count > 150


# Writes.


def test_writes_are_numpys(device):
    """Boxes, steps, places and masks, of every form; what NumPy refuses is an error."""
    shape = (4, 5, 3)
    parts = [0, -1, 2, slice(None), slice(1, 3), slice(-2, None), slice(None, None, 2), slice(3, 0, -1), slice(2, 2), Ellipsis, None, np.array([0, 2]), np.int64(1), 9]
    for number in range(400):
        key = tuple(parts[place] for place in RANDOM.integers(0, len(parts), RANDOM.integers(0, 4)))
        x = RANDOM.integers(0, 99, shape).astype(RANDOM.choice(["f4", "i4", "u1"]))
        try:
            held = x[key].shape
        except IndexError:
            with pytest.raises(IndexError):
                A(x)[key] = 1
            continue
        wide = RANDOM.integers(0, 4)
        value = [7, RANDOM.integers(0, 9, held), RANDOM.integers(0, 9, held[-1:]), RANDOM.uniform(0, 9, held).astype("f4")][wide]
        expected, found = x.copy(), A(x)
        expected[key] = value
        found[key] = A(value) if isinstance(value, np.ndarray) and number % 2 else value
        np.testing.assert_array_equal(np.asarray(found), expected, err_msg=f"{key} {value}")


def test_writes_take_every_real_dtype(device):
    for dtype in ("f4", "i4", "u1", "i8", "f2", "?"):
        for other in ("f4", "f8", "i4", "u1", "i8", "?", "f2"):
            if any(np.dtype(of).itemsize == 8 and not device.has(getattr(cantus, np.dtype(of).name)) for of in (dtype, other)):
                continue
            x, y = np.zeros(4, dtype), np.array([0, 1, 2.75, 3]).astype(other)
            z = A(x)
            x[:], z[:] = y, A(y)
            np.testing.assert_array_equal(np.asarray(z), x)
    with pytest.raises(TypeError, match="real"):
        z[:] = A(np.ones(4, "c8"))


def test_coupled_programs_write_in_place(device):
    g, x = np.ones((20, 8), "u1"), A(np.ones((20, 8), "u1"))
    for t in range(19):
        g[t + 1] = np.roll(g[t], 1) ^ g[t]
        x[t + 1] = cantus.roll(x[t], 1) ^ x[t]
    np.testing.assert_array_equal(np.asarray(x), g)
    u, v = np.linspace(0, 1, 50, dtype="f4"), cantus.linspace(0, 1, 50)
    for _ in range(30):
        u = u + np.float32(0.1) * u
        v = v + 0.1 * v
        u[0] = u[-1] = 0
        v[0], v[-1] = 0, 0
    np.testing.assert_allclose(np.asarray(v), u, rtol=1e-5)


# Dtypes.


def test_dtypes_hash_as_numpys():
    for dtype in cantus._dtypes.ALL:
        if dtype.name == "bfloat16":
            continue
        assert hash(dtype) == hash(dtype.numpy) and dtype in {dtype.numpy} and dtype.numpy in {dtype} and isinstance(dtype, np.dtype)
    assert {cantus.float32: 1}[np.dtype("f4")] == 1


def test_missing_attributes_are_attribute_errors():
    x = cantus.ones(3)
    assert hasattr(x > 0, "real") and hasattr(x > 0, "imag") and not hasattr(x, "T") and not hasattr(x, "mT") and not hasattr(cantus.ones((2, 2, 2)), "T")
    np.testing.assert_array_equal(np.asarray((x > 0).imag), [False] * 3)
    np.testing.assert_array_equal(np.asarray(cantus.arange(3).real), [0, 1, 2])
    for dtype in cantus._dtypes.ALL:
        for name in ("real", "imag", "T", "mT", "nbytes", "itemsize", "device", "size", "no_such_name"):
            for of in (cantus.ones(2).astype(dtype), cantus.ones((2, 2)).astype(dtype), dtype):
                hasattr(of, name)
    code = "import sys; sys.modules['ml_dtypes'] = None; import cantus; d = cantus.bfloat16; x = cantus.ones(2).astype(d)\n"
    code += "assert not hasattr(d, 'hasobject') and not hasattr(d, 'dtype') and hash(d) and x.tolist() == [1, 1] and x[0].item() == 1 and cantus.finfo(d).eps == 2**-7; repr(x), str(x)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_promotion_is_numpys(device):
    """Arrays of two dtypes, and of one and a number: NumPy's dtype, float32 where the device has no float64."""
    dtypes = [dtype for dtype in cantus._dtypes.STANDARD + (cantus.float16,) if device.has(dtype)]
    for a in dtypes:
        x = np.ones(3).astype(a.numpy)
        for b in dtypes:
            if {a.name, b.name} >= {"uint64"} and "i" in (a.kind, b.kind):
                continue
            y = np.ones(3).astype(b.numpy)
            for of in (np.equal,) if a.kind + b.kind == "bb" else (np.multiply, np.equal) if "c" in a.kind + b.kind else (np.multiply, np.equal, np.maximum):
                found, expected = of(A(x), A(y)), of(x, y)
                assert found.dtype == expected.dtype or not device.has(cantus.float64), (of, a, b, found.dtype)
            if "b" in (a.kind, b.kind):
                continue
            found, expected = A(x) * A(y), x * y
            assert found.dtype == expected.dtype or not device.has(cantus.float64), (a, b, found.dtype)
        for number in (2, 2.5, 1 + 2j):
            if a.kind == "b" and number == 2:
                continue
            found, expected = A(x) * number, x * number
            wanted = expected.dtype
            assert found.dtype == wanted or not device.has(cantus.float64), (a, number, found.dtype, wanted)
            np.testing.assert_allclose(np.asarray(found), expected)
            np.testing.assert_allclose(np.asarray(number / A(x)), number / x)


def test_numbers_beyond_a_dtype_compare(device):
    for dtype in ("u1", "i1", "u2", "i2", "i4", "u4", "i8"):
        if np.dtype(dtype).itemsize == 8 and not device.has(cantus.int64):
            continue
        x = np.array([0, 1, 100], dtype)
        for number in (300, -1, -300, 70000, -70000, 2**33, -(2**33), 2**70, -(2**70), 100):
            for of in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne):
                np.testing.assert_array_equal(np.asarray(of(A(x), number)), of(x, number), err_msg=f"{dtype} {of.__name__} {number}")
                np.testing.assert_array_equal(np.asarray(of(number, A(x))), of(number, x), err_msg=f"{number} {of.__name__} {dtype}")


def test_kinds_mixed_in_place(device):
    x = cantus.zeros(3)
    np.add.at(x, A(np.array([0, 0])), 1)
    assert x.tolist() == [2, 0, 0]
    for of in (np.maximum, np.minimum):
        y, z = np.zeros(4, "f4"), cantus.zeros(4)
        places, values = np.array([0, 0, 2, 3, 0]), np.array([5, 7, -1, np.nan, -9], "f4")
        of.at(y, places, values)
        of.at(z, places, values)
        np.testing.assert_array_equal(np.asarray(z), y)
    whole = cantus.arange(3)
    with pytest.raises(TypeError, match="float"):
        whole += 0.5
    if device.has(cantus.float64):
        single = cantus.ones(3)
        single += A(np.ones(3))
        assert single.dtype == cantus.float32 and single.tolist() == [2, 2, 2]
    assert cantus.array([cantus.ones(2)[0], 0, 1.5]).tolist() == [1, 0, 1.5]


# Small differences.


def test_piecewise_hands_over_what_its_condition_chooses(device):
    x = np.array([-3.0, -1, 2, 5], "f4")
    for conditions, functions in (
        (lambda x: [x < 0, x >= 0], [lambda v: v - v.mean(), lambda v: v * 2]), (lambda x: [x < 0], [lambda v: v * 0 + v.size, 5]),
        (lambda x: [x < 9, x > 1], [lambda v: v.max() + v, 7]), (lambda x: x > 99, [lambda v: v.max(), -1]), (lambda x: [x > 0], [lambda v, w=1: v * w]),
    ):  # fmt: skip
        np.testing.assert_array_equal(np.asarray(np.piecewise(A(x), conditions(A(x)), functions)), np.piecewise(x, conditions(x), functions))


def test_small_differences(device):
    assert np.polymul(A(np.array([0, 1, 2], "f4")), A(np.array([1, 1], "f4"))).tolist() == [1, 3, 2]
    assert np.polymul(A(np.zeros(3, "f4")), A(np.array([1, 1], "f4"))).tolist() == np.polymul(np.zeros(3), [1.0, 1]).tolist()
    for dtype in ("u1", "i2", "i4", "f4", "?", "f2"):
        m = np.ones((2, 2), dtype)
        for equation in ("ij->i", "ij,jk->ik", "ii", "ij->ji"):
            given = [m] * (equation.partition("->")[0].count(",") + 1)
            found, expected = np.einsum(equation, *map(A, given)), np.einsum(equation, *given)
            assert found.dtype == expected.dtype and found.tolist() == expected.tolist(), (dtype, equation)
    assert np.inner(A(np.float32(2)), A(np.ones(3, "f4"))).tolist() == [2, 2, 2]


def test_nothing_overflows_between(device):
    for top in (3e38, np.finfo("f4").max, 1.0, 0.0):
        found = np.asarray(cantus.linspace(-top, top, 5)).astype("f8")
        np.testing.assert_allclose(found, np.linspace(-1, 1, 5) * float(np.float32(top)), rtol=1e-6)
    assert cantus.linspace(0, 10, 5, dtype=cantus.int32).tolist() == np.linspace(0, 10, 5, dtype="i4").tolist()
    x = A(np.array([-3e38, 3e38], "f4"))
    assert float(np.median(x)) == 0 and float(np.quantile(x, 0.5)) == 0 and float(np.percentile(x, 75)) == pytest.approx(1.5e38)
    for values in ([-np.inf, np.inf], [1, np.inf], [-np.inf, 3], [np.inf, np.inf]):
        y = np.array(values, "f4")
        with np.errstate(all="ignore"):
            np.testing.assert_equal(float(np.median(A(y))), float(np.median(y)))


MISSING = {
    "matrix_power": (lambda m, f, z: np.linalg.matrix_power(m, 10)), "inv": (lambda m, f, z: np.linalg.inv(m)), "det": (lambda m, f, z: np.linalg.det(m)),
    "solve": (lambda m, f, z: np.linalg.solve(m, m)), "svd": (lambda m, f, z: np.linalg.svd(f, compute_uv=False)), "sort": (lambda m, f, z: np.sort(z)),
    "argsort": (lambda m, f, z: np.argsort(z, axis=0)), "max": (lambda m, f, z: np.max(z)), "min": (lambda m, f, z: np.min(z, axis=0)), "argmax": (lambda m, f, z: np.argmax(z, axis=0)),
    "einsum": (lambda m, f, z: np.einsum("i,i", f[:, 0] > 0, f[:, 0] > 0)), "mean": (lambda m, f, z: np.mean(f, where=f > 1)), "var": (lambda m, f, z: np.var(f, axis=0, where=f > 1)),
    "std": (lambda m, f, z: np.std(f, where=f > 1, ddof=1)), "range": (lambda m, f, z: f[range(2)]), "True": (lambda m, f, z: f[True]), "norm": (lambda m, f, z: np.linalg.norm(m)),
    "reduce": (lambda m, f, z: np.add.reduce(f)), "round": (lambda m, f, z: np.round(f, 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", MISSING)
def test_what_was_missing(device, name):
    if not device.has(cantus.float64):
        pytest.skip("no float64")
    m, f = np.array([[1, 1], [1, 0]]), np.array([[1.25, 2], [3, 0.5], [2, 1]], "f4")
    z = np.array([2 + 1j, 1 + 2j, np.nan, 1 - 3j, 2 - 1j, complex(1, np.nan)])
    z = z[:2] if name in ("max", "min", "argmax") else z
    with np.errstate(all="ignore"):
        found, expected = MISSING[name](A(m), A(f), A(z)), MISSING[name](m, f, z)
    assert found.dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5, atol=1e-6)


def test_names_that_were_missing():
    for name in "allclose array_equal logspace geomspace tri tril_indices triu_indices diag_indices indices identity ix_ hanning hamming".split():
        assert hasattr(cantus, name) and name in dir(cantus), name
    assert cantus.allclose(cantus.ones(3), np.ones(3)) and not cantus.array_equal(cantus.ones(3), cantus.zeros(3))
    np.testing.assert_allclose(np.asarray(cantus.logspace(0, 2, 5)), np.logspace(0, 2, 5), rtol=1e-6)
    assert cantus.tri(3).dtype == cantus.float32 and cantus.identity(2, dtype="f8").dtype == cantus.float64 and len(cantus.ix_([0, 1], [2])) == 2
    f = cantus.ones((3, 2))
    assert float(cantus.linalg.norm(f)) == pytest.approx(6**0.5) and cantus.sum(f, 0).tolist() == [3, 3] and cantus.roll(f, 1, 0).shape == (3, 2)
    assert cantus.squeeze(f[None]).shape == (3, 2) and len(cantus.where(f > 0)) == 2 and round(cantus.ones(()) * 2.66, 1).tolist() == pytest.approx(2.7) and round(cantus.ones(()) * 2.66) == 3


# Kernels.

def test_a_file_is_given_by_path():
    with pytest.raises(ValueError, match="path="):
        cantus.kernel("saxpy.wgsl")


# Neighbours.


@pytest.mark.filterwarnings("ignore")
def test_xarray():
    xr = pytest.importorskip("xarray")
    values = RANDOM.normal(size=(6, 8)).astype("f4")

    def of(values):
        return xr.DataArray(values, dims=("t", "x"), coords={"x": np.arange(8.0)})

    programs = dict(
        where=lambda d: d.where(d > 0), where_0=lambda d: d.where(d > 0, 0), shift=lambda d: d.shift(x=1), pad=lambda d: d.pad(x=1), reindex=lambda d: d.reindex(x=[0.0, 99]),
        corr=lambda d: xr.corr(d, d * 2, "x"), rolling=lambda d: d.rolling(x=3).mean(), any=lambda d: (d > 0).any("x"), idxmax=lambda d: d.idxmax("x"),
        weighted=lambda d: d.weighted(xr.DataArray(np.arange(8.0), dims="x")).mean("x"), mean=lambda d: d.mean("t"), sum=lambda d: d.sum(), polyfit=lambda d: d.polyfit("x", 2).polyfit_coefficients, std=lambda d: d.std("x"), sel=lambda d: d.sel(x=slice(1, 3)),
    )  # fmt: skip
    wrong = {}
    for name, program in programs.items():
        expected = np.asarray(program(of(values)).data)
        try:
            found = np.asarray(program(of(A(values))).data)
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
        except Exception as error:
            wrong[name] = repr(error)[:200]
    assert not wrong, wrong


def test_scipy_interpolates():
    interpolate = pytest.importorskip("scipy.interpolate")
    k, v, q = np.arange(30.0), np.random.default_rng(0).normal(size=30), np.array([3.3, 7.7])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = interpolate.Akima1DInterpolator(A(k), A(v))(A(q))
    np.testing.assert_allclose(np.asarray(found), interpolate.Akima1DInterpolator(k, v)(q), rtol=1e-6)


@pytest.mark.parametrize("read", ["float(y[0])", "np.asarray(y)", "y.eval()", "pass"])
def test_writes_in_a_loop_leave_nothing(device, read):
    code = f"""
import cantus, gc, numpy as np
rss = lambda: int(next(line for line in open("/proc/self/status") if line.startswith("VmRSS")).split()[1])
with cantus.device({device.name!r}):
    y = cantus.zeros(100)
    for step in range(12_001):
        y[step % 100] = 1.0
        if step % 10 == 0: {read}
        if step == 4_000: begin = rss()
    float(y[0])
    print(rss() - begin)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 6000, f"{done.stdout} KiB in 8,000 steps"
