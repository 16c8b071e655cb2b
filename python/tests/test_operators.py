"""Operators of arrays give what NumPy gives, whatever the two sides are; the core takes them where both sides are plain."""

from __future__ import annotations

import gc
import operator
import threading
import weakref

import numpy as np
import pytest

import cantus

ARITHMETIC = (operator.add, operator.sub, operator.mul, operator.truediv)
COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)
DTYPES = ("f4", "i4", "u1", "i8", "u4", "f2", "c8", "?")


def of(dtype: str) -> np.ndarray:
    numbers = np.array([[1, 2, 3], [4, 5, 7]])
    return (numbers % 2 == 0) if dtype == "?" else numbers.astype(dtype)


def both(op, x, y):
    """Return what NumPy and Cantus give, or the exceptions that they raise."""
    found = []
    for one, other in ((x, y), tuple(cantus.asarray(of) if isinstance(of, np.ndarray) else of for of in (x, y))):
        try:
            found.append(op(one, other))
        except (TypeError, ValueError, OverflowError) as error:
            found.append(error)
    return found


@pytest.mark.parametrize("op", ARITHMETIC + COMPARISONS, ids=lambda op: op.__name__)
@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_and_arrays_on_either_side(op, dtype):
    x = of(dtype)
    if dtype == "c8" and op in COMPARISONS[:4] or dtype == "?" and op in ARITHMETIC:
        pytest.skip("complex numbers have no order, and truths no sum")
    others = [x[::-1].copy(), x[0].copy()]
    others += [True] if dtype == "?" else [2, 0.5] if dtype in ("f4", "f2", "c8") else [2]
    for other in others:
        for left, right in ((x, other), (other, x)):
            want, have = both(op, left, right)
            if isinstance(want, Exception):
                assert isinstance(have, Exception), (left, right, have)
                continue
            assert isinstance(have, cantus.Array), (left, right, have)
            np.testing.assert_allclose(np.asarray(have), want, rtol=1e-3 if dtype == "f2" else 1e-6, err_msg=f"{left} {right}")


@pytest.mark.parametrize("dtype", ("c8", "c16"))
def test_complex_numbers_beside_pythons_numbers(dtype):
    x = np.tile(np.array([1 + 2j, complex(-0.0, 3), complex(np.inf, 1), complex(np.nan, -2), 1e-30 - 5j], dtype), 40)
    for op in ARITHMETIC[:3]:
        for number in (2, -3, 0, 0.5, -0.0, 10**6, np.inf):
            for left, right in ((x, number), (number, x)):
                with np.errstate(all="ignore"):
                    want, have = both(op, left, right)
                assert have.dtype == want.dtype
                for part in ("real", "imag"):
                    np.testing.assert_allclose(getattr(np.asarray(have), part), getattr(want, part), rtol=1e-6, err_msg=f"{op} {left} {right}")


def test_a_part_that_is_the_whole():
    for shape in ((5, 1), (300, 1), (7, 40)):
        x = np.arange(np.prod(shape), dtype="f4").reshape(shape)
        y = cantus.asarray(x)
        for key in (np.s_[:], np.s_[...], (), np.s_[:, : shape[1]], np.s_[0:, ...], np.s_[: shape[0] + 3]):
            part = y[key]
            np.testing.assert_array_equal(np.asarray(part), x[key])
            part[0, 0] = 9
            assert float(part[0, 0]) == 9 and float(y[0, 0]) == 0
        y[:, : shape[1]] = 4
        assert (np.asarray(y) == 4).all()


def test_what_is_no_operand_is_refused():
    x = cantus.ones(3)
    for op in ARITHMETIC + COMPARISONS[:4] + (operator.matmul,):
        for other in ("text", None, object(), [1, 2, 3]):
            for left, right in ((x, other), (other, x)):
                with pytest.raises(TypeError):
                    op(left, right)
    assert (x == "text") is False and (x != None) is True  # noqa: E711

    class Other:
        def __radd__(self, array):
            return "added"

        __rmatmul__ = __radd__

        def __rsub__(self, array):
            return NotImplemented

    assert x + Other() == "added" and x @ Other() == "added"
    with pytest.raises(TypeError):
        x - Other()


def test_numbers_that_a_dtype_does_not_have():
    small = cantus.asarray(of("u1"))
    for work in (lambda: small + 300, lambda: small - (-1), lambda: 2**70 * small):
        with pytest.raises(OverflowError):
            work()
    whole = cantus.asarray(of("i4"))
    floating = cantus.float64 if whole.device.has(cantus.float64) else cantus.float32
    assert (whole + 0.5).dtype is floating and (whole + 0.5).tolist() == (of("i4") + 0.5).tolist()
    assert (whole / 2).dtype is (cantus.float64 if whole.device.has(cantus.float64) else cantus.float32)
    np.testing.assert_array_equal(np.asarray(-small), -of("u1"))


def test_products_and_transposes():
    x = of("f4")
    a = cantus.asarray(x)
    np.testing.assert_allclose(np.asarray(a @ a.T), x @ x.T)
    np.testing.assert_allclose(np.asarray(a.T @ a), x.T @ x)
    np.testing.assert_allclose(np.asarray(cantus.asarray(of("f2")) @ a.T), x @ x.T)
    with pytest.raises(AttributeError, match="T is for two axes"):
        _ = a[0].T
    with pytest.raises(TypeError):
        cantus.asarray(of("?")) @ cantus.asarray(of("?")).T
    x = np.arange(24, dtype="i4").reshape(2, 3, 4)
    a = cantus.asarray(x)
    for key in (0, -1, slice(None), (0, 1), (..., 0), (slice(0, 2), None, 1), [1, 0], x > 3, (slice(None), slice(None, None, -1))):
        mine = cantus.asarray(key) if isinstance(key, np.ndarray) else key
        np.testing.assert_array_equal(np.asarray(a[mine]), x[key], err_msg=repr(key))


def test_an_array_that_changes_is_another_one_to_those_who_read_it_before():
    x = cantus.zeros(3)
    y, z = x + 1, x
    x += 2
    x[0] = 9
    np.testing.assert_array_equal(np.asarray(y), [1, 1, 1])
    np.testing.assert_array_equal(np.asarray(x), [9, 2, 2])
    assert z is x
    assert (x.shape, x.ndim, x.dtype) == ((3,), 1, cantus.float32)


def test_an_array_changes_while_another_thread_computes_from_it():
    x = cantus.ones((500, 500))
    for _ in range(1000):
        x *= 1.0001
    y, found = x + 0, []

    def work():
        # Together they are long enough to be computed where they are recorded.
        z = x
        for _ in range(100):
            z = z * 1.0001
        found.append(x + z)

    thread = threading.Thread(target=work)
    thread.start()
    while thread.is_alive():
        x *= 1.0
    thread.join()
    assert len(found) == 1
    np.testing.assert_allclose(np.asarray(found[0]), np.asarray(y) * (1 + 1.0001**100), rtol=1e-3)


def test_an_array_is_freed_with_its_last_name():
    x = cantus.ones(3) + 1
    seen = weakref.ref(x)
    gc.disable()
    try:
        del x
        assert seen() is None
    finally:
        gc.enable()
    with pytest.raises(TypeError, match="asarray"):
        cantus.Array()
    with pytest.raises(TypeError):
        type("More", (cantus.Array,), {})()
