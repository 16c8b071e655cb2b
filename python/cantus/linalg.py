"""The array API's extension for linear algebra."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from . import _api, _arguments, _dtypes
from ._api import matrix_transpose, tensordot, vecdot
from ._array import Array, call, calls, common, filled, wrap
from ._array import matmul as _product

__all__ = [
    "cholesky", "cond", "cross", "det", "diagonal", "eigh", "eigvalsh", "expm", "inv", "lstsq", "matmul", "matrix_norm", "matrix_power",
    "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace",
    "vecdot", "vector_norm",
]  # fmt: skip


class EighResult(NamedTuple):
    """Eigenvalues, ascending, and the vectors as columns."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """Q with columns at right angles, and the upper triangular R."""

    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """The sign and the logarithm of the magnitude."""

    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """U, the singular values, descending, and V transposed and conjugated."""

    U: Array
    S: Array
    Vh: Array


def _matrix(x: Array) -> Array:
    if x.ndim < 2:
        raise ValueError(f"a matrix needs at least two axes; this array has {x.ndim}")
    if x._kind == "f32":
        return x
    if x.dtype.kind in "iub":
        # As NumPy: whole numbers become floats.
        return x.astype(_dtypes.float64 if x._device.has(_dtypes.float64) else _dtypes.float32)
    if x.dtype.itemsize == 2:
        return x.astype(_dtypes.float32)
    return x


def matmul(x1: Array, x2: Array, /) -> Array:
    """The matrix product.

    >>> import cantus
    >>> cantus.linalg.matmul(cantus.ones((2, 3)), cantus.ones(3))
    array([3., 3.], dtype=float32)
    """
    return _product(x1, x2)


def cholesky(x: Array, /, *, upper: bool = False) -> Array:
    """The lower triangular L with x = L Lᴴ, or the upper U with x = Uᴴ U; NaN where x is not positive definite.

    >>> import cantus
    >>> cantus.linalg.cholesky(cantus.asarray([[2.0, 1.0], [1.0, 2.0]])).numpy().round(3)
    array([[1.414, 0.   ],
           [0.707, 1.225]], dtype=float32)
    """
    lower = call(_matrix(x), "cholesky")
    return _adjoint(lower) if upper else lower


def _adjoint(x: Array) -> Array:
    turned = x.mT
    return wrap(turned._x.unary("conj"), x._device) if x.dtype.kind == "c" else turned


def cross(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """The vector product of vectors of three elements.

    >>> import cantus
    >>> cantus.linalg.cross(cantus.asarray([1.0, 0.0, 0.0]), cantus.asarray([0.0, 1.0, 0.0]))
    array([0., 0., 1.], dtype=float32)
    """
    dtype = common(x1, x2)
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError("vector products need vectors of three elements")
    a = _api.moveaxis(x1.astype(dtype, copy=False), axis, -1) if x1.ndim > 1 else x1.astype(dtype, copy=False)
    b = _api.moveaxis(x2.astype(dtype, copy=False), axis, -1) if x2.ndim > 1 else x2.astype(dtype, copy=False)
    parts = [a[..., (k + 1) % 3] * b[..., (k + 2) % 3] - a[..., (k + 2) % 3] * b[..., (k + 1) % 3] for k in range(3)]
    result = _api.stack(parts, axis=-1)
    return _api.moveaxis(result, -1, axis) if result.ndim > 1 else result


def det(x: Array, /) -> Array:
    """The determinants of square matrices.

    >>> import cantus
    >>> cantus.linalg.det(cantus.asarray([[2.0, 1.0], [1.0, 2.0]])).numpy().round(3)
    np.float32(3.0)
    """
    return call(_matrix(x), "det")


def diagonal(x: Array, /, *, offset: int = 0) -> Array:
    """The diagonal that begins `offset` columns to the right.

    >>> import cantus
    >>> cantus.linalg.diagonal(cantus.asarray([[2.0, 1.0], [1.0, 2.0]]))
    array([2., 2.], dtype=float32)
    """
    rows, columns = x.shape[-2:]
    length = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    if length == 0:
        return filled((*x.shape[:-2], 0), 0, x.dtype, x._device)
    return call(x, "diagonal", ints=[offset])


def eigh(x: Array, /) -> EighResult:
    """Eigenvalues and vectors of Hermitian matrices, of which the lower triangle is read.

    >>> import cantus
    >>> cantus.linalg.eigh(cantus.asarray([[2.0, 1.0], [1.0, 2.0]])).eigenvalues.numpy().round(3)
    array([1., 3.], dtype=float32)
    """
    values, vectors = calls(_matrix(x), "eigh")
    return EighResult(values, vectors)


def eigvalsh(x: Array, /) -> Array:
    """The eigenvalues of Hermitian matrices, ascending.

    >>> import cantus
    >>> cantus.linalg.eigvalsh(cantus.asarray([[2.0, 1.0], [1.0, 2.0]])).numpy().round(3)
    array([1., 3.], dtype=float32)
    """
    return eigh(x).eigenvalues


def expm(x: Array, /) -> Array:
    """The exponential of float32 matrices.

    >>> import cantus
    >>> cantus.linalg.expm(cantus.zeros((2, 2)))
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return call(_matrix(x), "expm")


def inv(x: Array, /) -> Array:
    """The inverses; NaN where a matrix is singular.

    >>> import cantus
    >>> cantus.linalg.inv(cantus.asarray([[2.0, 0.0], [0.0, 4.0]]))
    array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    return call(_matrix(x), "inverse")


def vector_norm(x: Array, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Array:
    """The p-norm along axes, of all elements for None.

    >>> import cantus
    >>> cantus.linalg.vector_norm(cantus.asarray([3.0, 4.0]))
    array(5., dtype=float32)
    """
    if x.dtype.kind in "iub":
        x = x.astype(_dtypes.float64 if x._device.has(_dtypes.float64) else _dtypes.float32)
    magnitude = _api.abs(x) if x.dtype.kind == "c" or ord not in (2, 0) else x
    if ord == math.inf or ord == -math.inf:
        if axis == () or magnitude.ndim == 0:
            return +magnitude
        if magnitude.size == 0 and ord > 0:
            return _api.sum(magnitude, axis=axis, keepdims=keepdims)
        return (_api.max if ord > 0 else _api.min)(magnitude, axis=axis, keepdims=keepdims)
    if ord == 0:
        return _api.sum((magnitude != 0).astype(_dtypes.real_of(x.dtype)), axis=axis, keepdims=keepdims)
    if ord == 1:
        return _api.sum(magnitude, axis=axis, keepdims=keepdims)
    if ord == 2:
        return _api.sqrt(_api.sum(magnitude * magnitude, axis=axis, keepdims=keepdims))
    power = _api.sum(magnitude ** float(ord), axis=axis, keepdims=keepdims)
    return power ** (1.0 / float(ord))


def matrix_norm(x: Array, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """A norm of matrices: fro, nuc, 1, -1, 2, -2, inf, -inf.

    >>> import cantus
    >>> cantus.linalg.matrix_norm(cantus.asarray([[2.0, 1.0], [1.0, 2.0]])).numpy().round(3)
    np.float32(3.162)
    """
    x = _matrix(x)
    if ord == "fro":
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord in ("nuc", 2, -2):
        values = svdvals(x)
        reduce = {"nuc": _api.sum, 2: _api.max, -2: _api.min}[ord]
        result = reduce(values, axis=-1)
    elif ord in (1, -1, math.inf, -math.inf):
        across = -2 if abs(ord) == 1 else -1
        sums = _api.sum(_api.abs(x), axis=across)
        result = (_api.max if ord > 0 else _api.min)(sums, axis=-1)
    else:
        raise ValueError(f"there is no matrix norm {ord!r}")
    return _api.reshape(result, (*result.shape, 1, 1)) if keepdims else result


def norm(x: Array, /, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    """The norm of a vector, a matrix, or of vectors or matrices along one axis or two. None is the 2-norm of all elements or of vectors.

    >>> import cantus
    >>> cantus.linalg.norm(cantus.asarray([[3.0, 0.0], [0.0, 4.0]]))
    array(5., dtype=float32)
    """
    x = _matrix(x) if x.ndim > 1 else x.astype(_dtypes.float64 if x._device.has(_dtypes.float64) else _dtypes.float32) if x.dtype.kind in "iub" else x
    if axis is None:
        axes = tuple(range(x.ndim))
    else:
        axes = tuple(_api._axis(one, x.ndim) for one in (axis if isinstance(axis, tuple | list) else (axis,)))
    if ord is None or len(axes) == 1:
        return vector_norm(x, axis=axes, keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise ValueError(f"the norm {ord!r} is of vectors and matrices, and {len(axes)} axes were given")
    found = matrix_norm(_api.moveaxis(x, axes, (-2, -1)), ord=ord)
    return _api.reshape(found, tuple(1 if place in axes else side for place, side in enumerate(x.shape))) if keepdims else found


def matrix_power(x: Array, n: int, /) -> Array:
    """The n-th power; of the inverse for n below 0.

    >>> import cantus
    >>> cantus.linalg.matrix_power(cantus.asarray([[2.0, 1.0], [1.0, 2.0]]), 2)
    array([[5., 4.],
           [4., 5.]], dtype=float32)
    """
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"powers are of square matrices, not of the shape {x.shape}")
    if x.dtype.kind == "b":
        raise TypeError("powers of matrices need numbers, not bool (cast first: x.astype)")
    base = inv(x) if n < 0 else x if x.dtype.kind in "iu" else _matrix(x)
    result = None
    n = abs(n)
    if n == 0:
        side = x.shape[-1]
        return _api.broadcast_to(_api.eye(side, dtype=base.dtype, device=x._device), x.shape)
    while n:
        if n & 1:
            result = base if result is None else matmul(result, base)
        n >>= 1
        if n:
            base = matmul(base, base)
    assert result is not None
    return result


def svd(x: Array, /, *, full_matrices: bool = True) -> SVDResult:
    """Decomposes x into U diag(S) Vh.

    >>> import cantus
    >>> cantus.linalg.svd(cantus.asarray([[2.0, 1.0], [1.0, 2.0]])).S.numpy().round(3)
    array([3., 1.], dtype=float32)
    """
    u, values, vh = calls(_matrix(x), "svd", ints=[int(full_matrices)])
    return SVDResult(u, values, vh)


def svdvals(x: Array, /) -> Array:
    """The singular values, descending.

    >>> import cantus
    >>> cantus.linalg.svdvals(cantus.asarray([[2.0, 1.0], [1.0, 2.0]])).numpy().round(3)
    array([3., 1.], dtype=float32)
    """
    return svd(x, full_matrices=False).S


def _limit(values: Array, x: Array, rtol: Any) -> Array:
    eps = _api.finfo(values.dtype).eps
    factor = max(x.shape[-2:]) * eps if rtol is None else rtol
    greatest = _api.max(values, axis=-1, keepdims=True)
    if isinstance(factor, Array):
        return greatest * _api.expand_dims(factor, axis=-1)
    return greatest * float(factor)


def matrix_rank(x: Array, /, *, rtol: Any = None) -> Array:
    """The number of singular values above the tolerance.

    >>> import cantus
    >>> cantus.linalg.matrix_rank(cantus.asarray([[2.0, 1.0], [1.0, 2.0]]))
    array(2)
    """
    values = svdvals(x)
    if 0 in values.shape:
        return filled(values.shape[:-1], 0, _api.default_int(x._device), x._device)
    return _api.count_nonzero(values > _limit(values, x, rtol), axis=-1)


def pinv(x: Array, /, *, rtol: Any = None) -> Array:
    """The pseudo-inverse.

    >>> import cantus
    >>> cantus.linalg.pinv(cantus.asarray([[2.0, 1.0], [1.0, 2.0]])).numpy().round(3)
    array([[ 0.667, -0.333],
           [-0.333,  0.667]], dtype=float32)
    """
    x = _matrix(x)
    if 0 in x.shape:
        return filled((*x.shape[:-2], x.shape[-1], x.shape[-2]), 0, x.dtype, x._device)
    u, values, vh = svd(x, full_matrices=False)
    kept = values > _limit(values, x, rtol)
    inverse = _api.where(kept, 1.0 / _api.where(kept, values, 1.0), 0.0)
    scaled = _adjoint(u) * _api.expand_dims(inverse, axis=-1).astype(x.dtype)
    return matmul(_adjoint(vh), scaled)


def qr(x: Array, /, *, mode: str = "reduced") -> QRResult:
    """Decomposes x into Q R, with as many columns of Q as x has, or all of them (`mode="complete"`).

    >>> import cantus
    >>> abs(cantus.linalg.qr(cantus.asarray([[2.0, 1.0], [1.0, 2.0]])).R).numpy().round(3)
    array([[2.236, 1.789],
           [0.   , 1.342]], dtype=float32)
    """
    if mode not in ("reduced", "complete"):
        raise ValueError(f"mode is 'reduced' or 'complete', not {mode!r}")
    q, r = calls(_matrix(x), "qr", ints=[int(mode == "complete")])
    return QRResult(q, r)


def slogdet(x: Array, /) -> SlogdetResult:
    """The sign of the determinant, and the logarithm of its magnitude.

    >>> import cantus
    >>> cantus.linalg.slogdet(cantus.asarray([[2.0, 1.0], [1.0, 2.0]])).logabsdet.numpy().round(3)
    np.float32(1.099)
    """
    sign, logarithm = calls(_matrix(x), "slogdet")
    return SlogdetResult(sign, logarithm)


def solve(x1: Array, x2: Array, /) -> Array:
    """Solves x1 X = x2; NaN where x1 is singular.

    >>> import cantus
    >>> cantus.linalg.solve(cantus.asarray([[2.0, 0.0], [0.0, 4.0]]), cantus.asarray([2.0, 2.0]))
    array([1. , 0.5], dtype=float32)
    """
    x1 = _matrix(x1)
    x2 = x2 if x2.dtype.kind in "fc" else x2.astype(_dtypes.float64 if x2._device.has(_dtypes.float64) else _dtypes.float32)
    dtype = common(x1, x2)
    return call(x1.astype(dtype, copy=False), "solve", [x2.astype(dtype, copy=False)])


class LstsqResult(NamedTuple):
    """The solution, the sums of squared residuals, the rank, and the singular values, descending."""

    x: Array
    residuals: Array
    rank: int
    s: Array


def lstsq(a: Any, b: Any, /, rcond: float | None = None) -> LstsqResult:
    """The x, a vector or columns, of least |b - a x|, and of those the shortest. Singular values up to `rcond` times the greatest count as 0 (None:
    the dtype's eps times the longer side). Computed in float64 where the device has it. No residuals where the rank isn't full, or `a` has no more
    rows than columns.

    >>> import cantus
    >>> cantus.linalg.lstsq(cantus.asarray([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), cantus.asarray([1.0, 3.0, 5.0])).x.numpy().round(3)
    array([1., 2.], dtype=float32)
    """
    if a.ndim != 2 or b.ndim not in (1, 2) or a.shape[0] != b.shape[0]:
        raise ValueError(f"lstsq needs a matrix, and a vector or matrix with the same number of rows, not the shapes {a.shape} and {b.shape}")
    a, b = (one if one.dtype.kind in "fc" else one.astype(_dtypes.float64 if a._device.has(_dtypes.float64) else _dtypes.float32) for one in (a, b))
    wide = dtype = common(a, b)
    if a._device.has(_dtypes.float64):
        wide = _dtypes.complex128 if wide.kind == "c" else _dtypes.float64
    rows, columns = a.shape
    limit = _api.finfo(dtype).eps * max(rows, columns) if rcond is None else rcond
    a, b = a.astype(wide, copy=False), b.astype(wide, copy=False)
    values = b if b.ndim == 2 else _api.expand_dims(b, axis=1)
    if not rows or not columns:
        nothing = filled((columns, values.shape[1]), 0, wide, a._device)
        u = singular = filled((0,), 0, _dtypes.real_of(wide), a._device)
        found, rank = nothing, 0
    else:
        u, singular, vh = svd(a, full_matrices=False)
        kept = singular > singular[0] * float(limit)
        rank = int(_api.count_nonzero(kept))
        inverse = _api.where(kept, 1.0 / _api.where(kept, singular, 1.0), 0.0).astype(wide)
        found = matmul(_adjoint(vh), _api.expand_dims(inverse, axis=1) * matmul(_adjoint(u), values))
    real = _dtypes.real_of(dtype)
    if rank == columns and rows > columns:
        left = values - (matmul(a, found) if columns else values * 0)
        residuals = _api.sum(_api.square(_api.abs(left)), axis=0).astype(real, copy=False)
    else:
        residuals = filled((0,), 0, real, a._device)
    found = found if b.ndim == 2 else found[:, 0]
    return LstsqResult(found.astype(dtype, copy=False), residuals, rank, singular.astype(real, copy=False))


def cond(x: Array, /, p: Any = None) -> Array:
    """The condition number of matrices: the norm of a matrix times that of its inverse. `p` is that norm, None the 2-norm.

    >>> import cantus
    >>> cantus.linalg.cond(cantus.asarray([[2.0, 0.0], [0.0, 4.0]])).numpy().round(3)
    np.float32(2.0)
    """
    x = _matrix(x)
    if p in (None, 2, -2):
        values = svdvals(x)
        return values[..., -1] / values[..., 0] if p == -2 else values[..., 0] / values[..., -1]
    return matrix_norm(x, ord=p) * matrix_norm(inv(x), ord=p)


def multi_dot(arrays: Any, /) -> Array:
    """The product of several matrices, in the order of the fewest multiplications; the first and the last may be vectors.

    >>> import cantus
    >>> cantus.linalg.multi_dot([cantus.ones((2, 3)), cantus.ones((3, 4)), cantus.ones(4)])
    array([12., 12.], dtype=float32)
    """
    from ._numpy import _together

    arrays = _together(arrays)
    count = len(arrays)
    if count < 2:
        raise ValueError(f"multi_dot needs at least two arrays, not {count}")
    first, last = arrays[0].ndim == 1, arrays[-1].ndim == 1
    if first:
        arrays[0] = _api.expand_dims(arrays[0], axis=0)
    if last:
        arrays[-1] = _api.expand_dims(arrays[-1], axis=1)
    if any(one.ndim != 2 for one in arrays):
        raise ValueError("multi_dot takes matrices; the first and the last may be vectors")
    sides = [arrays[0].shape[0], *(one.shape[1] for one in arrays)]
    # By the lengths of the chains: the least cost, and where it is cut.
    cost = {(at, at): 0 for at in range(count)}
    cut: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for start in range(count - length):
            stop = start + length
            best = min(range(start, stop), key=lambda at: cost[start, at] + cost[at + 1, stop] + sides[start] * sides[at + 1] * sides[stop + 1])
            cost[start, stop] = cost[start, best] + cost[best + 1, stop] + sides[start] * sides[best + 1] * sides[stop + 1]
            cut[start, stop] = best

    def product(start: int, stop: int) -> Array:
        if start == stop:
            return arrays[start]  # type: ignore[no-any-return]
        at = cut[start, stop]
        return matmul(product(start, at), product(at + 1, stop))

    found = product(0, count - 1)
    if first:
        found = found[0]
    return found[..., 0] if last else found


def outer(x1: Array, x2: Array, /) -> Array:
    """Every product of an element of x1 and one of x2.

    >>> import cantus
    >>> cantus.linalg.outer(cantus.asarray([1, 2]), cantus.asarray([3, 4]))
    array([[3, 4],
           [6, 8]])
    """
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError("outer products need vectors")
    return _api.expand_dims(x1, axis=1) * _api.expand_dims(x2, axis=0)


def trace(x: Array, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """The sum of a diagonal.

    >>> import cantus
    >>> cantus.linalg.trace(cantus.asarray([[2.0, 1.0], [1.0, 2.0]]))
    array(4., dtype=float32)
    """
    return _api.sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


_arguments.enter(globals(), "linalg.")
