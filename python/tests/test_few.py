"""Arrays of few numbers are computed at once on the host: up to 64 beside a device with memory of its own, up to 96 KiB where the CPU is the device. They
give what NumPy gives, whatever they meet."""

from __future__ import annotations

import copy
import operator

import numpy as np
import pytest

import cantus

RANDOM = np.random.default_rng(5)
SHAPES = ((), (1,), (4,), (3, 4), (1, 4), (3, 1), (2, 3, 4), (0,), (2, 0), (64,), (65,), (9, 8))


def of(shape) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype("f4")


def same(have, want: np.ndarray, tolerance: float = 1e-6) -> None:
    have = np.asarray(have)
    assert have.dtype == np.float32 and have.shape == want.shape
    np.testing.assert_allclose(have, want, rtol=tolerance, atol=tolerance)


def wide(x):
    return x.astype("f8") if isinstance(x, np.ndarray) else x


@pytest.mark.parametrize("op", (operator.add, operator.sub, operator.mul, operator.truediv), ids=lambda op: op.__name__)
def test_functions_of_two(device, op):
    for shape in SHAPES:
        x = of(shape)
        for other in [of(other) for other in SHAPES] + [3, -0.25]:
            try:
                want = [op(wide(x), wide(other)), op(wide(other), wide(x))]
            except ValueError:
                with pytest.raises(ValueError):
                    op(cantus.asarray(x), cantus.asarray(other))
                continue
            a, b = cantus.asarray(x), cantus.asarray(other) if isinstance(other, np.ndarray) else other
            same(op(a, b), want[0])
            same(op(b, a), want[1])


def test_functions_of_one(device):
    for shape in SHAPES:
        x = of(shape)
        a = cantus.asarray(x)
        for have, want in ((-a, -x), (cantus.abs(a), np.abs(x)), (cantus.sqrt(a * a), np.sqrt(wide(x) ** 2)), (abs(-a), np.abs(x))):
            same(have, np.asarray(want))


def test_what_has_no_value(device):
    x = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e38, 1e-38], "f4")
    with np.errstate(all="ignore"):
        for op in (operator.add, operator.sub, operator.mul, operator.truediv):
            have, want = op(cantus.asarray(x)[:, None], cantus.asarray(x)[None, :]), op(x[:, None], x[None, :])
            np.testing.assert_array_equal(np.asarray(have), want)
        np.testing.assert_array_equal(np.asarray(cantus.sqrt(cantus.asarray(x))), np.sqrt(x))


def test_products(device):
    sides = (1, 2, 3, 5, 8, 64, 65)
    for m in sides:
        for k in sides:
            x = of((m, k))
            for n in (None, 1, 3, 8):
                y = of((k,) if n is None else (k, n))
                a, b = cantus.asarray(x), cantus.asarray(y)
                same(a @ b, wide(x) @ wide(y), 1e-5)
                if n is not None:
                    same(b.T @ a.T, (wide(x) @ wide(y)).T, 1e-5)
                same(a[0] @ b, wide(x)[0] @ wide(y), 1e-5)
    for one, other in (((2, 3), (2, 3)), ((3,), (2,)), ((), (2,)), ((2, 0), (1, 2))):
        with pytest.raises(ValueError):
            cantus.zeros(one) @ cantus.zeros(other)
    same(cantus.zeros((2, 0)) @ cantus.zeros((0, 3)), np.zeros((2, 3)))


def test_parts(device):
    x = of((7, 3, 5))
    a = cantus.asarray(x)
    keys = (0, -1, (2, 1), (2, 1, 4), slice(1, 3), (slice(None), 2), (slice(1, 6, 2), slice(0, 2), 3), (..., 1), (None, 4, ..., None))
    keys += ((slice(3, 3), 1), slice(5, 100, 3), (..., slice(None, None, 4)), (slice(None, None, -2), 0), slice(None))
    for key in keys:
        same(a[key], x[key])
        same(a[key] + 1, wide(x)[key] + 1)
    for key in (7, (0, 3), (0, 0, 0, 0)):
        with pytest.raises(IndexError):
            a[key]


def test_inverses(device):
    for n in range(1, 10):
        x = of((n, n)) + 2 * np.eye(n, dtype="f4")
        same(cantus.linalg.inv(cantus.asarray(x)), np.linalg.inv(wide(x)), 1e-4)
    for large in (1e-30, 1e30):
        x = of((3, 3))
        same(cantus.linalg.inv(cantus.asarray(x * np.float32(large))) * large, np.linalg.inv(wide(x)), 1e-4)
    # The first pivot is 0, and the second: rows are exchanged.
    turned = np.array([[0, 0, 2], [3, 0, 0], [0, 4, 0]], "f4")
    same(cantus.linalg.inv(cantus.asarray(turned)), np.linalg.inv(wide(turned)))
    for nothing in ([[1, 2], [2, 4]], [[0]], [[1, np.nan], [0, 1]], [[np.inf, 0], [0, 1]]):
        assert np.isnan(np.asarray(cantus.linalg.inv(cantus.asarray(np.array(nothing, "f4"))))).all()
    with pytest.raises(ValueError):
        cantus.linalg.inv(cantus.ones((2, 3)))


def test_what_is_made(device):
    same(cantus.zeros((2, 3)) + cantus.full((3,), 0.1), np.full((2, 3), np.float32(0.1)))
    for rows, columns, k in ((3, 3, 0), (2, 4, 1), (4, 2, -1), (3, 3, 5), (3, 3, -5), (0, 3, 0), (3, 0, 0)):
        same(2 * cantus.eye(rows, columns, k=k), 2 * np.eye(rows, columns, k))


def test_they_meet_what_is_recorded(device):
    x, y = of((4, 4)), of((4, 300))
    a, b = cantus.asarray(x), cantus.asarray(y)
    few, wanted = (a @ a + 1) / 3, (wide(x) @ wide(x) + 1) / 3
    same(few @ b, wanted @ wide(y), 1e-5)
    same(cantus.exp(few), np.exp(wanted), 1e-5)
    same(cantus.sum(few, axis=0) + few[1], wanted.sum(0) + wanted[1], 1e-5)
    same(few.eval() + few, 2 * wanted, 1e-5)
    same(cantus.from_dlpack(few, copy=True) * 2, 2 * wanted, 1e-5)
    assert few[0, 0].item() == pytest.approx(wanted[0, 0], rel=1e-5)
    assert np.asarray(few.copy()).tolist() == few.tolist()
    few[1] = 7
    wanted[1] = 7
    same(few + 1, wanted + 1, 1e-5)


def test_what_a_kernel_writes(device):
    text = """
    @group(0) @binding(0) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(64)
    fn fill(@builtin(global_invocation_id) id: vec3u) { if id.x < arrayLength(&y) { y[id.x] += 10.0; } }
    """
    kernel = cantus.kernel(text)
    x = cantus.asarray([1.0, 2.0, 3.0, 4.0])
    before, recorded = x + 1, cantus.exp(x)
    kernel(y=x, invocations=4)
    assert x.tolist() == [11, 12, 13, 14] and (x * 2).tolist() == [22, 24, 26, 28]
    assert before.tolist() == [2, 3, 4, 5]
    same(recorded, np.exp([1.0, 2.0, 3.0, 4.0]))


def test_memory_that_a_tensor_shares(device):
    """Of many numbers a tensor has the memory itself: whoever writes, in Python, by a kernel or through DLPack, leaves the others theirs."""
    kernel = cantus.kernel(
        "@group(0) @binding(0) var<storage, read_write> y: array<f32>;"
        "@compute @workgroup_size(64) fn fill(@builtin(global_invocation_id) id: vec3u) { if id.x < arrayLength(&y) { y[id.x] += 10.0; } }"
    )

    def equal(have, want):
        np.testing.assert_array_equal(np.asarray(have), want)

    for count in (4, 1500, 24_576, 40_000):
        want = np.arange(count, dtype="f4")
        x = cantus.asarray(want.copy()).eval()
        x[1] = want[1] = 5
        recorded = cantus.exp(x * 0) + x
        twin, other, alias = copy.copy(x), x.copy(), x[...]
        kernel(y=x, invocations=count)
        equal(x, want + 10)
        x[2] = 7
        kernel(y=x, invocations=count)
        written = want + 20
        written[2] = 17
        equal(x, written)
        kernel(y=other, invocations=count)
        equal(other, want + 10)
        equal(twin, want)
        equal(alias, want)
        equal(recorded, want + 1)
        if str(device).startswith("cpu"):
            lent = np.from_dlpack(twin)
            if (mine := np.from_dlpack(twin, copy=True)).flags.writeable:
                mine[...] = -1
            twin[0] = 99
            equal(lent, want)
        else:
            twin[0] = 99
        equal(alias, want)
        changed = want.copy()
        changed[0] = 99
        equal(twin, changed)
        # Used, written, used: what was recorded before keeps what it saw.
        first = cantus.sum(twin * 2 + cantus.exp(twin * 0))
        for step in range(5):
            twin[step % 3] = step
        second = np.asarray(twin).sum(dtype="f8")
        np.testing.assert_allclose(float(first), 2 * changed.sum(dtype="f8") + count, rtol=1e-5)
        changed[:3] = 3, 4, 2
        assert second == changed.sum(dtype="f8")


def test_any_byte_of_a_bool_is_true(device):
    a = cantus.asarray(np.array([0, 1, 2, 255], "u1").view(bool))
    b = cantus.asarray(np.array([1, 1, 1, 1], "u1").view(bool))
    assert (a & b).tolist() == [False, True, True, True] and (a == b).tolist() == [False, True, True, True] and (a ^ b).tolist() == [True, False, False, False]


def test_a_long_loop(device):
    """A filter of position and speed, against NumPy in float64."""
    f, h = np.array([[1, 0.1], [0, 1]]), np.array([[1.0, 0]])
    z = RANDOM.standard_normal((400, 1, 1))

    def filtered(xp, f, h, z, x, p):
        for t in range(400):
            x, p = f @ x, f @ p @ f.T + 0.01 * xp.eye(2, dtype=x.dtype)
            gain = p @ h.T @ xp.linalg.inv(h @ p @ h.T + 0.5 * xp.eye(1, dtype=x.dtype))
            x, p = x + gain @ (z[t] - h @ x), p - gain @ h @ p
        return x

    inputs = (f, h, z, np.zeros((2, 1)), np.eye(2))
    want = filtered(np, *inputs)
    same(filtered(cantus, *(cantus.asarray(one.astype("f4")) for one in inputs)), want, 1e-4)


DTYPES = ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", "c8", "f2")


def key_of(random: np.random.Generator, shape: tuple[int, ...]):
    """A key of integers and slices that names some elements."""
    parts: list[object] = []
    for side in shape[: random.integers(1, len(shape) + 1)]:
        kind = random.integers(4)
        if kind < 2:
            parts.append(int(random.integers(-side, side)))
        elif kind == 2:
            first = int(random.integers(side))
            parts.append(slice(first, int(random.integers(first + 1, side + 1)), int(random.integers(1, 4))))
        else:
            parts.append(slice(None, None, int(random.integers(1, 3))))
    return parts[0] if len(parts) == 1 and random.integers(2) else tuple(parts)


@pytest.mark.parametrize("seed", range(24))
def test_writes_of_parts(device, seed):
    """Checks random writes, beside others who have the array and what is made of it, against NumPy."""
    random = np.random.default_rng(seed)
    print("seed", seed)
    dtype = np.dtype(DTYPES[seed % len(DTYPES)])
    shape = [(7,), (3, 5), (2, 3, 4), (1500,), (40, 50)][random.integers(5)]
    x = random.integers(0, 2 if dtype == bool else 100, shape).astype(dtype)
    try:
        a = cantus.asarray(x)
        a.eval()
    except (TypeError, ValueError, RuntimeError):
        pytest.skip(f"the device has no {dtype}")
    kept: list[tuple[object, np.ndarray]] = []
    for _ in range(60):
        key, what = key_of(random, shape), random.integers(9)
        if what == 0:
            # Someone else has it, each in another way.
            holders = [lambda: a + 0 * a if dtype != bool else a | False, a.copy, lambda: np.asarray(a), lambda: a.reshape(-1), lambda: a[...]]
            other = [*holders, lambda: a.T if a.ndim == 2 else a.copy()][random.integers(6)]()
            turned = isinstance(other, cantus.Array) and other.shape == x.T.shape and other.shape != x.shape
            want = x.T if turned else x.reshape(other.shape)
            kept.append((other, want.copy()))
        elif what == 1:
            np.testing.assert_array_equal(np.asarray(a), x)
        elif what == 2:
            b = cantus.asarray(random.integers(0, 2, x[key].shape).astype(dtype))
            a[key], x[key] = b, np.asarray(b)
        elif what == 3 and dtype != bool:
            a[key], x[key] = a[key] + a[key], x[key] + x[key]
        elif what == 4 and dtype.kind in "iuf" and dtype.itemsize > 1:
            a[key], x[key] = a[key] * 2, x[key] * 2
        elif what == 5:
            np.testing.assert_array_equal(np.asarray(a[key]), x[key])
        elif what == 6:
            a = a.reshape(shape) if random.integers(2) else a.copy()
        else:
            number = [1, True, 0][random.integers(3)] if dtype.kind != "f" else [1, 0.5, -2.25][random.integers(3)]
            a[key] = number
            x[key] = number
    np.testing.assert_array_equal(np.asarray(a), x)
    for other, want in kept:
        np.testing.assert_array_equal(np.asarray(other), want)


def test_writes_in_loops(device):
    """Recurrences by element, as NumPy has them; in float64 where the device has it."""
    for dtype in ("f4", "f8", "i8"):
        try:
            a = cantus.asarray(np.zeros(1200, dtype))
            a.eval()
        except (TypeError, ValueError, RuntimeError):
            continue
        x = np.zeros(1200, dtype)
        for y in (a, x):
            y[0] = y[1] = 1
            for i in range(2, 80):
                y[i] = (y[i - 1] + y[i - 2]) if dtype == "i8" else (y[i - 1] + y[i - 2]) * 0.625
        np.testing.assert_array_equal(np.asarray(a), x)
        assert a.dtype == cantus.asarray(x).dtype


def test_what_does_not_fit_is_refused_as_before(device):
    a = cantus.asarray(np.arange(6, dtype="i4"))
    with pytest.raises(IndexError):
        a[6] = 1
    with pytest.raises(ValueError):
        a[0:2] = cantus.asarray(np.arange(3, dtype="i4"))
    a[0] = 2.75
    np.testing.assert_array_equal(np.asarray(a), [2, 1, 2, 3, 4, 5])
    b = cantus.asarray(np.arange(6, dtype="u1"))
    b[1] = np.uint8(200)
    b[2] = cantus.asarray(7, dtype=cantus.uint8)
    np.testing.assert_array_equal(np.asarray(b), [0, 200, 7, 3, 4, 5])


SIDES = ((), (64,), (65,), (7, 300), (1, 300), (7, 1), (12288,), (12289,), (24576,), (24577,), (98304,), (98305,), (181, 182))


def many(random: np.random.Generator, dtype: str, shape) -> np.ndarray:
    """Numbers of all kinds that a dtype has."""
    kind = np.dtype(dtype).kind
    if kind == "f":
        return random.choice([0.0, -0.0, 1.5, -2.25, np.inf, np.nan, 3e38, 1e-30], shape).astype(dtype)
    bounds = (0, 1) if kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return random.integers(*bounds, shape, dtype=np.int64 if dtype != "u8" else np.uint64, endpoint=True).astype(dtype)


def taken(x: np.ndarray):
    try:
        return cantus.asarray(x).eval()
    except (TypeError, ValueError, RuntimeError):
        pytest.skip(f"the device has no {x.dtype}")


def equal(have, want: np.ndarray, zeros: bool = True) -> None:
    """Checks each number, and the sign of a 0 where the function defines it."""
    have = np.asarray(have)
    assert have.dtype == want.dtype and have.shape == want.shape
    np.testing.assert_array_equal(have, want)
    if want.dtype.kind == "f" and zeros:
        np.testing.assert_array_equal(np.signbit(have), np.signbit(want) | np.isnan(want) & np.signbit(have))


@pytest.mark.parametrize("dtype", DTYPES[:11])
def test_many_at_once(device, dtype):
    """Functions of two arrays and of one, parts, rolls and writes, of sizes on both sides of what is computed at once."""
    random = np.random.default_rng(7)
    kind = np.dtype(dtype).kind
    ops = [operator.and_, operator.or_, operator.xor] if kind in "iub" else []
    ops += [operator.add, operator.sub, operator.mul] if kind != "b" else []
    ops += [operator.truediv] if kind == "f" else []
    ops += [operator.lt, operator.ge, operator.eq, operator.ne]

    def of(shape):
        return many(random, dtype, shape)

    with np.errstate(all="ignore"):
        for shape in SIDES:
            x = of(shape)
            a = taken(x)
            for other in SIDES:
                y = of(other)
                try:
                    np.broadcast_shapes(shape, other)
                except ValueError:
                    continue
                for op in ops:
                    equal(op(a, taken(y)), op(x, y))
            if kind == "f" or dtype in ("i4", "i8"):
                equal(-a, -x)
                equal(cantus.square(a), np.square(x))
                equal(2 * a - 3, 2 * x - 3)
            if x.ndim:
                for by in (1, -1, 5, 1000, 0):
                    equal(cantus.roll(a, by, axis=-1), np.roll(x, by, axis=-1))
                    equal(cantus.roll(a, by), np.roll(x, by))
                for key in (slice(3, 9), slice(1, -1), slice(None, None, 3), (Ellipsis, slice(2, 40)), (Ellipsis, 0), slice(0, 0)):
                    equal(a[key], x[key])
                b, y = a + a if kind != "b" else a | a, x + x if kind != "b" else x | x
                for key in (slice(3, 9), (Ellipsis, slice(2, 40, 3)), slice(1, None), -1):
                    b[key], y[key] = 1, 1
                    equal(b, y)
                    b[key], y[key] = a[key], x[key]
                    equal(b, y)
                equal(a, x)


@pytest.mark.parametrize("dtype", DTYPES[:11])
def test_choices_at_once(device, dtype):
    """Choices, joins, conversions and folds, of sizes on both sides of what is computed at once."""
    random = np.random.default_rng(8)
    kind = np.dtype(dtype).kind
    wide = device.has(cantus.int64)
    with np.errstate(all="ignore"):
        for shape in (*SIDES, (3, 5, 7), (2, 4000, 3), (0,), (3, 0)):
            x = many(random, dtype, shape)
            a = taken(x)
            if kind in "iuf":
                equal(cantus.abs(a), np.abs(x))
            for to in DTYPES[:11]:
                if kind != "f" or to in ("f4", "f8", "?"):
                    if np.dtype(to).itemsize < 8 or device.has(cantus._dtypes.of(np.dtype(to))):
                        equal(a.astype(np.dtype(to)), x.astype(to))
            for other in (shape, (), (1,), (1, 300), (7, 1)):
                y, mask = many(random, dtype, other), random.integers(2, size=shape) == 1
                try:
                    np.broadcast_shapes(shape, other)
                except ValueError:
                    continue
                b = taken(y)
                equal(cantus.maximum(a, b), np.maximum(x, y), zeros=False)
                equal(cantus.minimum(b, a), np.minimum(y, x), zeros=False)
                equal(cantus.where(taken(mask), a, b), np.where(mask, x, y))
                equal(cantus.where(taken(mask), b, a), np.where(mask, y, x))
                equal(cantus.where(b == b, a, b), np.where(y == y, x, y))
            for axis in range(-x.ndim, x.ndim):
                y = x.take(range(min(3, x.shape[axis])), axis=axis)
                equal(cantus.concat([a, taken(y), a], axis=axis), np.concatenate([x, y, x], axis=axis))
                for places in ([0, -1, 2], [[1, 0], [-2, -3]], random.integers(-3, 3, 4097)):
                    if x.shape[axis] >= 3:
                        at = np.array(places, "i4")
                        equal(np.take(a, taken(at), axis=axis), np.take(x, at, axis=axis))
            axes = [None, *range(x.ndim), *((0, 1), (1, 2), (0, 2))[: 3 * (x.ndim == 3)]]
            for axis in [axis for axis in axes if x.size]:
                for keep in (False, True):
                    for name in ("max", "min", "any", "all"):
                        if name in ("any", "all") or kind != "b":
                            equal(getattr(cantus, name)(a, axis=axis, keepdims=keep), np.asarray(getattr(np, name)(x, axis=axis, keepdims=keep)), zeros=False)
                    if kind in "iu" and wide:
                        equal(cantus.sum(a, axis=axis, keepdims=keep), np.asarray(x.sum(axis=axis, keepdims=keep)))
                    if not isinstance(axis, tuple):
                        for name in ("argmax", "argmin"):
                            found, wanted = getattr(cantus, name)(a, axis=axis, keepdims=keep), getattr(np, name)(x, axis=axis, keepdims=keep)
                            np.testing.assert_array_equal(np.asarray(found), wanted)
            equal(a, x)


def test_places_that_lead_outside(device):
    """A place out of range is an error, however few there are, and however it is reached."""
    x, places = cantus.asarray([1.0, 2.0, 3.0]), cantus.asarray(np.array([0, 3], "i4"))
    for use in (lambda: cantus.take(x, places), lambda: x[places], lambda: cantus.take(x, places) + 1, lambda: cantus.maximum(x[places], 0), lambda: x[places].astype(cantus.int32)):
        with pytest.raises(IndexError):
            np.asarray(use())
    with pytest.raises(IndexError):
        np.asarray(cantus.take(x, cantus.asarray(np.array([-4], "i4"))))
    assert np.asarray(cantus.take(x, cantus.asarray(np.array([-3, 2], "i4")))).tolist() == [1, 3]
