"""Edge cases: singular and huge matrices, infinities, numbers that do not fit, places out of range, panics. The oracle is NumPy."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import cantus

KINDS = ["float32", "float64", "complex64", "complex128"]
NAN, INF = np.nan, np.inf


def has(device, dtype):
    if not device.has(getattr(cantus, dtype)):
        pytest.skip(f"no {dtype}")


def test_a_fault_is_an_error_of_cantus():
    # Products with one value everywhere, recorded and not laid out, once panicked.
    for dtype in ("int8", "uint8", "int16", "int32", "int64", "uint32", "float32", "float16", "complex64"):
        ones, rows = cantus.ones((3, 4), dtype=dtype), cantus.asarray(np.ones((3, 4)).astype(dtype))
        for left, right in ((ones, cantus.full((4, 2), 2, dtype=dtype)), (rows, cantus.full((4, 2), 2, dtype=dtype)), (cantus.ones_like(rows), rows.mT * 2)):
            assert np.all(np.asarray(left @ right) == 8), dtype
    assert issubclass(cantus.Error, Exception)
    for kind in (cantus.DeviceError, cantus.KernelError, cantus.CancelledError):
        assert issubclass(kind, cantus.Error)
    assert issubclass(cantus.KernelError, ValueError) and issubclass(cantus.DeviceError, RuntimeError)


# Each module comes first after a fresh `cantus`: none relies on what others have imported before it.
MODULES_FIRST = """
import importlib, pkgutil, sys, cantus
wrong = []
for name in [found.name for found in pkgutil.iter_modules(cantus.__path__) if not found.name.startswith("_")]:
    for known in [known for known in sys.modules if known.startswith("cantus") and known != "cantus._core"]:
        del sys.modules[known]
    try:
        importlib.import_module(f"cantus.{name}")
    except ModuleNotFoundError as missing:
        if missing.name.startswith("cantus"):
            wrong.append((name, str(missing)))
    except ImportError as error:
        wrong.append((name, str(error)))
assert not wrong, wrong
"""


def test_modules_are_imported_in_any_order():
    done = subprocess.run([sys.executable, "-c", MODULES_FIRST], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


SQUARES = {
    "zeros": np.zeros((2, 2)), "ones": np.ones((3, 3)), "singular": np.array([[1.0, 2, 3], [4, 5, 6], [0, 0, 0]]), "no pivot": np.array([[0.0, 1], [1, 0]]),
    "zero first": np.array([[0.0, 0, 1], [0, 2, 0], [3, 0, 0]]), "zero column": np.array([[0.0, 1, 2], [0, 3, 4], [0, 5, 6]]), "empty": np.zeros((0, 0)),
    "none": np.zeros((0, 3, 3)), "one": np.array([[-2.5]]), "nan": np.array([[1.0, NAN], [2, 3]]), "both": np.stack([np.zeros((2, 2)), np.eye(2) * 3]),
}  # fmt: skip


@pytest.mark.parametrize("name", SQUARES)
@pytest.mark.parametrize("dtype", KINDS)
def test_determinants(device, dtype, name):
    has(device, dtype)
    matrix = SQUARES[name].astype(dtype)
    x = cantus.asarray(matrix)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(np.asarray(cantus.linalg.det(x)), np.linalg.det(matrix), rtol=1e-5)
        for found, expected in zip(cantus.linalg.slogdet(x), np.linalg.slogdet(matrix), strict=True):
            if name == "nan" and found.dtype.kind != "c":
                assert np.isnan(np.asarray(found)) or found is not cantus.linalg.slogdet(x).logabsdet
            else:
                np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("size", [1e-30, 1e-12, 1e12, 1e30, 1e-200, 1e200])
def test_factorisations_of_any_size(device, dtype, size):
    has(device, dtype)
    if dtype in ("float32", "complex64") and not 1e-35 < size < 1e35:
        return
    if size in (1e-30, 1e30) and dtype == "complex64":
        return  # products of its parts leave float32's range in the test itself
    plain = np.array([[4.0, 1, -2], [1, 5, 0.5], [-2, 0.5, 6]])
    matrix = (plain * size).astype(dtype)
    x, tolerance = cantus.asarray(matrix), 1e-4 if dtype in ("float32", "complex64") else 1e-10

    def near(found, expected):
        np.testing.assert_allclose(np.asarray(found).astype("c16"), expected, rtol=tolerance, atol=tolerance)

    near(np.asarray(cantus.linalg.svdvals(x)) / size, np.linalg.svd(plain)[1])
    near(np.asarray(cantus.linalg.eigvalsh(x)) / size, np.linalg.eigvalsh(plain))
    near(cantus.linalg.slogdet(x).logabsdet, np.linalg.slogdet(plain)[1] + 3 * np.log(size))
    near(np.asarray(cantus.linalg.inv(x)) * size, np.linalg.inv(plain))
    near(cantus.linalg.solve(x, x[:, 0]), [1, 0, 0])
    q, r = cantus.linalg.qr(x)
    near(np.asarray(q) @ (np.asarray(r) / size), plain)
    near(np.asarray(cantus.linalg.cholesky(x)) / np.sqrt(size), np.linalg.cholesky(plain))


@pytest.mark.parametrize("dtype", KINDS)
def test_what_has_no_factors_is_nan(device, dtype):
    has(device, dtype)
    for matrix in (np.full((3, 3), NAN), np.array([[1.0, INF], [0, 1]]), np.array([[1.0, 2, NAN], [3, 4, 5]])):
        x = cantus.asarray(matrix.astype(dtype))
        found = [cantus.linalg.svdvals(x), *cantus.linalg.svd(x), *cantus.linalg.qr(x)][:4]
        if matrix.shape[0] == matrix.shape[1]:
            found += [cantus.linalg.inv(x), cantus.linalg.eigvalsh(x), cantus.linalg.cholesky(x)] if matrix.shape[0] == 3 else []
        for one in found[:1] + found[4:]:
            assert np.all(np.isnan(np.asarray(one))), (matrix, one)
    singular = cantus.asarray(np.array([[1.0, 2], [2, 4]]).astype(dtype))
    assert np.all(np.isnan(np.asarray(cantus.linalg.inv(singular)))) and np.all(np.isnan(np.asarray(cantus.linalg.solve(singular, singular))))
    assert np.all(np.isnan(np.asarray(cantus.linalg.cholesky(-singular))))


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (0, 2, 2), (2, 0, 3)])
@pytest.mark.parametrize("dtype", KINDS)
def test_empty_matrices(device, dtype, shape):
    has(device, dtype)
    matrix = np.zeros(shape, dtype)
    x = cantus.asarray(matrix)
    pairs = [(cantus.linalg.svdvals(x), np.linalg.svdvals(matrix)), (cantus.linalg.pinv(x), np.linalg.pinv(matrix)), (cantus.linalg.matrix_rank(x), np.linalg.matrix_rank(matrix) if min(shape[-2:]) else np.zeros(shape[:-2], int))]
    pairs += [(one, other) for one, other in zip(cantus.linalg.qr(x), np.linalg.qr(matrix), strict=True)]
    if shape[-1] == shape[-2]:
        pairs += [(cantus.linalg.inv(x), np.linalg.inv(matrix)), (cantus.linalg.eigvalsh(x), np.linalg.eigvalsh(matrix)), (cantus.linalg.cholesky(x), np.linalg.cholesky(matrix)), (cantus.linalg.det(x), np.linalg.det(matrix))]
    for found, expected in pairs:
        assert found.shape == np.shape(expected)
        np.testing.assert_array_equal(np.asarray(found), expected)


OUT = [7, -6, 2**31, 2**32 + 1, -(2**32)]


@pytest.mark.parametrize("place", OUT)
def test_places_out_of_range_are_errors(device, place):
    x, table = cantus.arange(5.0), cantus.asarray(np.eye(5, dtype="f4"))
    if device.has(cantus.int64):
        one = cantus.asarray(np.array([1, place]))
    elif abs(place) < 2**31:
        one = cantus.asarray(np.array([1, place], "i4"))
    else:
        return
    zero = cantus.zeros_like(one)
    written = cantus.zeros(5)
    programs = {
        "x[...]": lambda: x[one], "of a matrix": lambda: table[one, zero], "of another axis": lambda: table[:, one], "beside a slice": lambda: table[zero, 1:, None][..., one],
        "take": lambda: cantus.take(x, one), "np.take": lambda: np.take(x, one), "take_along_axis": lambda: cantus.take_along_axis(x, one),
        "embedding": lambda: cantus.nn.embedding(one, table), "lazy places": lambda: x[one + zero], "used again": lambda: cantus.sum(cantus.exp(x[one] * 2)) + 1,
        "in a tail": lambda: cantus.concat([x, x[one]])[:2],
    }  # fmt: skip
    for name, program in programs.items():
        for _ in range(2):  # the second evaluation is recorded again
            with pytest.raises(IndexError, match=str(place)):
                np.asarray(program())
    with pytest.raises(IndexError, match=str(place)):
        written[one] = 1
        np.asarray(written)


def test_an_error_stays_with_what_depends_on_it(device):
    x, places = cantus.arange(5.0), cantus.asarray([1, 2] * 40, dtype="int32")
    bad = places // 1 + 5  # not computed: looked at when it is read (a sum alone would be computed at once, on the CPU)
    lost, other = x[bad] + 1, x[places] + 1
    for _ in range(2):
        with pytest.raises(IndexError, match="axis 0"):
            lost.eval()
    assert other.tolist() == [2, 3] * 40 and x[places - 3].tolist() == [3, 4] * 40
    long = x
    for _ in range(3000):
        long = long[places[:1]] * 0 + x
    assert long.tolist() == [0, 1, 2, 3, 4]
    empty = cantus.asarray([], dtype="int32")
    assert x[empty].shape == (0,) and cantus.take(x, empty).shape == (0,)


def test_numbers_that_do_not_fit_are_errors():
    for program in (
        lambda: cantus.asarray([300], dtype="uint8"), lambda: cantus.asarray([[1, -1]], dtype="uint8"), lambda: cantus.asarray((2**31,), dtype="int32"),
        lambda: cantus.full((2,), 300, dtype="uint8"), lambda: cantus.full((2,), -1, dtype="uint64"), lambda: cantus.full_like(cantus.zeros(2, dtype="int8"), 128),
    ):  # fmt: skip
        with pytest.raises(OverflowError):
            program()
    x = cantus.zeros(3, dtype="uint8")
    with pytest.raises(OverflowError):
        x[0] = 300
    with pytest.raises(OverflowError):
        x[:2] = [1, 300]
    assert cantus.asarray([1.7, 2], dtype="uint8").tolist() == [1, 2] and cantus.asarray([True], dtype="int32").tolist() == [1]


def test_uniform_is_below_its_end(device):
    for low, high in ((1.0, 2.0), (1000.0, 1001.0), (-1.0, 0.0), (0.1, 0.3), (-3e38, 3e38), (1e9, 1e9 + 100)):
        u = np.asarray(cantus.random.uniform(cantus.random.key(3), 1 << 16, low, high)).astype("f8")
        assert u.min() >= low and u.max() < high and len(np.unique(u)) > 1, (low, high)
    with pytest.raises(ValueError):
        cantus.random.uniform(cantus.random.key(3), 3, 1.0, 1.0)


def test_truth_of_nan(device):
    x = cantus.asarray([NAN, 0.0, -0.0, 1.0, INF])
    truth = [True, False, False, True, True]
    assert x.astype(cantus.bool_).tolist() == truth and (x != 0).tolist() == truth and cantus.logical_not(x == 0).tolist() == truth
    core = [x._x.unary("logical_not"), x._x.binary("logical_and", x._x), x._x.binary("logical_or", x._x), x._x.binary("logical_xor", (x * 0 + 1)._x)]
    from cantus._array import wrap

    found = [wrap(one, x._device).tolist() for one in core]
    # NaN * 0 + 1 is NaN, and inf * 0 + 1 too.
    assert found == [[not one for one in truth], truth, truth, [False, True, True, False, False]]
    assert cantus.count_nonzero(x).item() == 3 and cantus.any(x[:1]).item() and cantus.all(x[:1]).item()


def test_infinities_between_places():
    for values in ([1.0, INF, INF, INF], [-INF, -INF, 3.0], [INF, INF], [1.0, 2.0, INF, INF], [NAN, 1.0, INF]):
        x = np.array(values)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(np.asarray(np.median(cantus.asarray(x))), np.median(x))
            np.testing.assert_array_equal(np.asarray(np.nanmedian(cantus.asarray(x))), np.nanmedian(x))
    assert np.quantile(cantus.asarray([1.0, INF, INF]), 0.75).item() == INF
    lines = [([1.0, 2.0], [INF, INF]), ([1.0, 2.0], [0.0, INF]), ([1.0, 2.0], [-INF, INF]), ([0.0, 1.5, 3.0], [1.0, INF, 2.0]), ([1.0, 2.0], [1.0, NAN])]
    for xp, fp in lines:
        for x in ([1.5], [1.0], [2.0], [0.5], [9.0], [NAN], [1.25, 1.75]):
            with np.errstate(all="ignore"):
                expected = np.interp(x, xp, fp)
                np.testing.assert_array_equal(np.asarray(np.interp(cantus.asarray(np.array(x)), cantus.asarray(np.array(xp)), np.array(fp))), expected, str((x, xp, fp)))


def test_padding_is_exact():
    big = 2**53 + 1
    assert np.pad(cantus.asarray([1]), 1, constant_values=big).tolist() == [big, 1, big]
    assert np.pad(cantus.asarray([1]), (0, 2), constant_values=-big).tolist() == [1, -big, -big]
    assert np.pad(cantus.asarray([1 + 1j]), 1, constant_values=2j).tolist() == [2j, 1 + 1j, 2j]


def test_nan_to_num_replaces_nothing_else(device):
    x = np.array([NAN, INF, -INF, 500, -1000], "f4")
    for named in ({}, {"nan": 123.0, "posinf": 456.0, "neginf": -789.0}, {"posinf": 0.0, "neginf": 0.0}, {"posinf": NAN}, {"nan": np.arange(5.0)}):
        np.testing.assert_array_equal(np.asarray(np.nan_to_num(cantus.asarray(x), **named)), np.nan_to_num(x, **named))
    z = np.array([complex(NAN, 1), complex(INF, -INF), complex(2, NAN)], "c8")
    np.testing.assert_array_equal(np.asarray(np.nan_to_num(cantus.asarray(z), posinf=9)), np.nan_to_num(z, posinf=9))
    y = cantus.asarray(x)
    assert np.nan_to_num(y, copy=False) is y and y.tolist()[0] == 0
    whole = cantus.arange(3)
    assert np.nan_to_num(whole) is not whole


def test_unique_joins_nan():
    x = np.array([NAN, 2.0, NAN, 1.0, 2.0, NAN])
    for named in ({}, {"equal_nan": False}, {"return_counts": True}, {"return_index": True, "return_inverse": True, "return_counts": True}):
        ours, theirs = np.unique(cantus.asarray(x), **named), np.unique(x, **named)
        for one, other in zip(ours if isinstance(ours, tuple) else (ours,), theirs if isinstance(theirs, tuple) else (theirs,), strict=True):
            np.testing.assert_array_equal(np.asarray(one), other)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_signs_of_zeros(device, dtype):
    has(device, dtype)
    found = np.asarray(cantus.sign(cantus.asarray(np.array([-0.0, 0.0, -3, NAN], dtype))))
    assert not np.signbit(found[:2]).any() and found[2] == -1 and np.isnan(found[3])


ODD = "sin tan asin atan sinh tanh asinh atanh cbrt log1p expm1 sqrt floor ceil trunc rint negative positive square reciprocal deg2rad sinc"


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_functions_keep_the_signs_of_zeros(device, dtype):
    """In short arrays and long ones, whose kernels differ, alone and in a chain; f16 stands for bf16, which is computed as it is. WGSL promises no device's
    zeros a sign: what takes WGSL through a driver that may drop them is asked for the values alone."""
    has(device, dtype)
    keeps = device.name.split(":")[0] in ("cpu", "opencl", "cuda")

    def same(have, want, what):
        have = np.asarray(have)
        np.testing.assert_array_equal(have, want, err_msg=what)
        if keeps:
            np.testing.assert_array_equal(np.signbit(have) & ~np.isnan(have), np.signbit(want) & ~np.isnan(want), err_msg=what)

    with np.errstate(all="ignore"):
        for count in (1, 40_000):
            x = np.tile(np.array([0.0, -0.0], dtype), count)
            a = cantus.asarray(x)
            for name in ODD.split():
                of = getattr(np, name)
                same(of(a), of(x), name)
                same(cantus.where(a == 0, of(a * 1), a), of(x), f"{name} in a chain")
        some = np.array([0.0, -0.0, 1, -1, 3, -3, 2, -2, 0.5, -0.5, INF, -INF], dtype)
        x, y = (part.ravel() for part in np.meshgrid(some, some))
        for count in (1, 300):
            a, b = cantus.asarray(np.tile(x, count)), cantus.asarray(np.tile(y, count))
            for name in ("power", "floor_divide", "remainder", "fmod", "arctan2", "copysign", "hypot"):
                of = getattr(np, name)
                have, want = np.asarray(of(a, b)), of(np.tile(x, count), np.tile(y, count))
                # Where the result is no zero and no infinity, other tests measure it. The whole quotients of infinities are the standard's, not NumPy's NaN.
                told = ((want == 0) | ~np.isfinite(want)) & (np.isfinite(np.tile(x, count)) | (name != "floor_divide"))
                same(have[told], want[told], name)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_at_the_edge(device, dtype):
    has(device, dtype)
    z = np.array([complex(x, y) for x in (INF, -INF, NAN, 0.0, -0.0, 2.0) for y in (INF, -INF, NAN, 0.0, -0.0, 3.0)], dtype)
    with np.errstate(all="ignore"):
        expected, found = np.sqrt(z), np.asarray(cantus.sqrt(cantus.asarray(z)))
    np.testing.assert_allclose(found.real, expected.real, rtol=1e-6)
    np.testing.assert_allclose(abs(found.imag), abs(expected.imag), rtol=1e-6)  # beside NaN the sign is anything
    zero = np.asarray(cantus.expm1(cantus.asarray(np.array([complex(-0.0, 0.0)], dtype))))
    assert not np.signbit(zero.real[0]) and not np.signbit(zero.imag[0])
    huge = np.full((3, 3), 1e38 if dtype == "complex64" else 1e307, dtype)
    assert cantus.linalg.svdvals(cantus.asarray(huge))[0].item() > 2.9 * huge[0, 0].real


def test_masks_without_elements_select_nothing():
    for shape, mask in (((1,), (0,)), ((3,), (0,)), ((3, 4), (0,)), ((3, 4), (3, 0)), ((3, 4), (0, 4)), ((3, 4), (0, 0)), ((0, 3), (0,))):
        x, key = np.ones(shape, "f4"), np.zeros(mask, bool)
        assert cantus.asarray(x)[cantus.asarray(key)].shape == x[key].shape, (shape, mask)
    for shape, mask in (((3, 4), (0, 5)), ((0,), (2,)), ((0, 3), (2, 3)), ((3,), (0, 0))):
        with pytest.raises(IndexError):
            cantus.ones(shape)[cantus.asarray(np.zeros(mask, bool))]


def test_kernels_overwrite_and_what_was_recorded_before_stays(device):
    double = cantus.kernel(
        "@group(0) @binding(0) var<storage, read_write> x: array<f32>;"
        "@compute @workgroup_size(1) fn double(@builtin(workgroup_id) id: vec3u) { x[id.x] *= 2.0; }"
    )
    x = cantus.asarray([1.0, 2.0, 3.0])
    recorded = []
    for step in range(6):
        recorded.append((x + step, np.array([1, 2, 3]) * 2.0**step + step))
        if step % 2:
            recorded[-1][0].eval()
        double(x=x, workgroups=3)
    assert x.tolist() == [64, 128, 192]
    for found, known in recorded:
        assert found.tolist() == known.tolist()


def test_long_loops_are_submitted_while_they_record(device):
    x = cantus.ones((8, 8))
    computed = 0
    for _ in range(1500):
        x = (x + x.T) * 0.49 + 0.01
        computed += x._x.is_computed
    assert computed
    limit = 0.01 / (1 - 0.98)
    np.testing.assert_allclose(np.asarray(x), limit + (1 - limit) * 0.98**1500, rtol=1e-4)
