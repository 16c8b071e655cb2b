"""NumPy's functions of Cantus's arrays for signals, curves and samples: convolution, polynomials, covariance, histograms of several axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import _api, _dtypes, linalg
from ._array import Array, wrap
from ._functions import concatenate, moveaxis, ravel, reshape
from ._numpy import FUNCTIONS, _array, _first, _floating, _numpys, _read, _remedy, _together
from ._statistics import _counts, histogram

# Sliding sums.

# Up to this many factors are added one by one. More become a product of matrices.
_FEW = 16
# The most factors that a product holds at once.
_MANY = 1 << 16


def _slid(x: Array, v: Array) -> Array:
    """The sums of x[k + j] v[j] over all j, for each k at which v lies within x."""
    count, size = x.size - v.size + 1, v.size
    if size > _MANY:
        parts = [_slid(x[at : at + count + min(_MANY, size - at) - 1], v[at : at + _MANY]) for at in range(0, size, _MANY)]
        return sum(parts[1:], parts[0])
    if size <= _FEW:
        parts = [x[at : at + count] * v[at] for at in range(size)]
        return sum(parts[1:], parts[0])
    # The line as rows of `step`, each beside those behind it, times a matrix that holds v once in each column, one lower in each.
    step = max(_FEW, min(1024, math.isqrt(count)))
    rows, beside = -(-count // step), -(-(size - 1) // step) + 1
    line = _padded(x, 0, (rows + beside - 1) * step - x.size) if x.size < (rows + beside - 1) * step else x[: (rows + beside - 1) * step]
    table = reshape(line, (-1, step))
    wide = _api.concat([table[at : at + rows] for at in range(beside)], axis=1)
    places = np.arange(beside * step)[:, None] - np.arange(step)[None, :] + step - 1
    factors = _api.take(_padded(v, step - 1, beside * step - size), _api.asarray(places.ravel().astype("i4"), device=x._device), axis=0)
    return ravel(linalg.matmul(wide, reshape(factors, places.shape)))[:count]  # type: ignore[no-any-return]


def _padded(x: Array, ahead: int, behind: int) -> Array:
    parts = [_api.zeros((count,), dtype=x.dtype, device=x._device) for count in (ahead, behind)]
    return _api.concat([parts[0], x, parts[1]])


def _convolved(a: Any, v: Any, mode: Any, name: str) -> Array:
    a, v = (ravel(one) if one.ndim == 0 and name == "convolve" else one for one in _together((a, v)))
    if a.ndim != 1 or v.ndim != 1:
        raise ValueError(f"np.{name} takes two lines, not the shapes {a.shape} and {v.shape}")
    if not a.size or not v.size:
        raise ValueError(f"np.{name}: {'a' if not a.size else 'v'} has no elements")
    truths = a.dtype.kind == "b"
    if truths:
        a, v = a.astype(_dtypes.int32), v.astype(_dtypes.int32)
    # A correlation's second line is conjugated, a convolution's is turned round.
    v = _api.flip(v) if name == "convolve" else _api.conj(v) if v.dtype.kind == "c" else v
    turned = v.size > a.size
    if turned:
        a, v = (_api.flip(v), _api.flip(a)) if name == "convolve" else (v, a)
    size = v.size
    sides = {"full": (size - 1, size - 1), "same": (size // 2, size - size // 2 - 1), "valid": (0, 0)}
    if mode not in sides:
        raise ValueError(f"mode is 'full', 'same' or 'valid', not {mode!r}")
    found = _slid(_padded(a, *sides[mode]) if mode != "valid" and size > 1 else a, v)
    if turned and name == "correlate":
        found = _api.flip(found)
    return found != 0 if truths else found


@_numpys
def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    return _convolved(a, v, mode, "convolve")


@_numpys
def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    return _convolved(a, v, mode, "correlate")


# Curves.


@_numpys
def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Any:
    if y.dtype.kind == "b":
        raise TypeError("np.trapezoid: truths have no sum (cast first)")
    y = moveaxis(y.astype(_floating(y.dtype, y), copy=False), axis, -1)
    if x is None:
        return _api.sum((y[..., 1:] + y[..., :-1]) * (float(dx) / 2), axis=-1)
    x, y = _together((x, y))
    steps = _api.diff(x if x.ndim == 1 else moveaxis(x, axis, -1), axis=-1)
    return _api.sum((y[..., 1:] + y[..., :-1]) * steps / 2, axis=-1)


@_numpys
def unwrap(p: Any, discont: float | None = None, axis: int = -1, *, period: float = 2 * math.pi) -> Any:
    x = moveaxis(p, axis, -1)
    steps = _api.diff(x, axis=-1)
    whole = x.dtype.kind in "iu" and isinstance(period, int)
    if x.dtype.kind in "iu" and not whole:
        x, steps = (one.astype(_floating(one.dtype, one)) for one in (x, steps))
    half = period // 2 if whole else period / 2
    near = (steps + half) % period - half
    # Half a period may be either way: it goes the way of the step.
    exactly = not whole or period % 2 == 0
    near = _api.where((near == -half) & (steps > 0), near + period, near) if exactly else near
    moved = _api.where(_api.abs(steps) < (half if discont is None else discont), steps * 0, near - steps)
    found = _api.concat([x[..., :1], x[..., 1:] + _api.cumulative_sum(moved, axis=-1).astype(x.dtype)], axis=-1)
    return moveaxis(found, -1, axis)


@_numpys
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    if ary.dtype.kind == "b":
        raise TypeError("truths have no difference (cast first, or use ^)")
    found = _api.diff(ravel(ary))
    begin, end = ([] if one is None else [ravel(_api.asarray(_array(one, ary), device=ary._device)).astype(ary.dtype)] for one in (to_begin, to_end))
    return _api.concat([*begin, found, *end])


@_numpys
def sinc(x: Any) -> Any:
    x = x.astype(_floating(x.dtype, x), copy=False) * math.pi
    return _api.where(x == 0, 1.0, _api.sin(x) / _api.where(x == 0, 1.0, x))


@_numpys
def angle(z: Any, deg: bool = False) -> Any:
    z = z.astype(_floating(z.dtype, z), copy=False)
    real, imag = (_api.real(z), _api.imag(z)) if z.dtype.kind == "c" else (z, _api.zeros((), dtype=z.dtype, device=z._device))
    found = _api.atan2(imag, real)
    return found * (180 / math.pi) if deg else found


@_numpys
def fix(x: Any) -> Any:
    return _api.trunc(x)


def _beside_whole(x: Array) -> Array:
    """In the dtype that NumPy computes in with int64 beside it."""
    kind = _dtypes.of(np.promote_types(x.dtype.numpy, "i8")) if x.dtype is not _dtypes.bfloat16 else x.dtype
    return x.astype(kind if x._device.has(kind) else _floating(x.dtype, x) if kind.kind == "f" else x.dtype, copy=False)


@_numpys
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    if x.ndim != 1:
        raise ValueError(f"vander takes one axis, and this array has {x.ndim}")
    x = _beside_whole(x)
    count = x.size if N is None else N
    columns = [_api.ones(x.shape, dtype=x.dtype, device=x._device)]
    for _ in range(count - 1):
        columns.append(columns[-1] * x)
    columns = columns[:count]
    if not columns:
        return _api.zeros((x.size, 0), dtype=x.dtype, device=x._device)
    return _api.stack(columns if increasing else columns[::-1], axis=1)


@_numpys
def polyval(p: Any, x: Any) -> Any:
    p, x = _together((p, x))
    found = x * 0
    for place in range(p.shape[0]):
        found = found * x + p[place]
    return found


def _led(a: Array) -> Array:
    """Coefficients without the zeros before the highest power; one 0 of nothing else."""
    if a.ndim > 1:
        raise ValueError(f"coefficients are one axis, not of the shape {a.shape}")
    places = np.flatnonzero(np.asarray(ravel(a)))
    return ravel(a)[int(places[0]) :] if places.size else _api.zeros((1,), dtype=a.dtype, device=a._device)


def _lined(a: Any, b: Any) -> tuple[Array, Array]:
    """Two polynomials' coefficients, the highest power first, of one length."""
    if a.ndim > 1 or b.ndim > 1:
        raise ValueError(f"coefficients are one axis, not of the shapes {a.shape} and {b.shape}")
    a, b = (ravel(one) for one in _together((a, b)))
    longer = max(a.size, b.size)
    return _padded(a, longer - a.size, 0), _padded(b, longer - b.size, 0)


@_numpys
def polyadd(a1: Any, a2: Any) -> Any:
    a1, a2 = _lined(a1, a2)
    return a1 + a2


@_numpys
def polysub(a1: Any, a2: Any) -> Any:
    a1, a2 = _lined(a1, a2)
    return a1 - a2


@_numpys
def polymul(a1: Any, a2: Any) -> Any:
    return convolve(_led(a1), _led(a2))


@_numpys
def polyder(p: Any, m: int = 1) -> Any:
    if m < 0:
        raise ValueError(f"polyder needs an order m of at least 0, not {m} (polyint integrates)")
    p = _beside_whole(p) if m else +p
    for _ in range(int(m)):
        powers = np.arange(p.size - 1, 0, -1)
        p = p[:-1] * _api.asarray(powers.astype(p.dtype.numpy), device=p._device)
    return p


@_numpys
def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    if m < 0:
        raise ValueError(f"polyint needs an order m of at least 0, not {m} (polyder differentiates)")
    given = np.atleast_1d(np.zeros(int(m)) if k is None else np.asarray(_read(k), "f8"))
    given = np.full(int(m), given[0]) if given.size == 1 else given
    if given.size < m:
        raise ValueError(f"k is one constant, or one for each of {m} integrals")
    p = _beside_whole(p.astype(_floating(p.dtype, p), copy=False)) if m else +p
    for place in range(int(m)):
        powers = _api.asarray(np.arange(p.size, 0, -1).astype(p.dtype.numpy), device=p._device)
        p = _api.concat([p / powers, _api.full((1,), float(given[place]), dtype=p.dtype, device=p._device)])
    return p


@_numpys
def polyfit(x: Any, y: Any, deg: int, rcond: float | None = None, full: bool = False, w: Any = None, cov: Any = False) -> Any:
    beside = x
    if cov is not False:
        raise _remedy("np.polyfit with cov")
    deg = int(deg)
    if deg < 0:
        raise ValueError(f"deg must be at least 0, not {deg}")
    wide = _floating(_dtypes.int32, beside)
    complex_wide = _dtypes.complex_of(wide)
    x, y = (one.astype(complex_wide if one.dtype.kind == "c" else wide, copy=False) for one in (x, y))
    if x.ndim != 1 or not x.size or y.ndim not in (1, 2) or y.shape[0] != x.shape[0]:
        raise TypeError("np.polyfit needs a non-empty one-dimensional x, and the same number of values or rows in y")
    table, values = vander(x, deg + 1), y
    if w is not None:
        weights = w.astype(wide)
        if weights.shape != x.shape:
            raise TypeError(f"w has the shape {weights.shape}: a weight for each of {x.size} places")
        table, values = table * weights[:, None], values * (weights[:, None] if y.ndim == 2 else weights)
    scale = _api.sqrt(_api.sum(_api.square(_api.abs(table)), axis=0))
    rcond = x.size * _api.finfo(wide).eps if rcond is None else rcond
    found, residuals, rank, singular = linalg.lstsq(table / scale, values, rcond)
    found = found / (scale[:, None] if y.ndim == 2 else scale)
    return (found, residuals, rank, singular, rcond) if full else found


# Samples.


@_numpys
def cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None, fweights: Any = None, aweights: Any = None, *, dtype: Any = None
) -> Any:
    return _covariance(m, y, rowvar, bias, ddof, fweights, aweights, dtype)


def _covariance(m: Any, y: Any, rowvar: bool, bias: bool, ddof: int | None, fweights: Any, aweights: Any, dtype: Any) -> Array:
    beside = _first((m, y, fweights, aweights))
    assert beside is not None
    if ddof is not None and ddof != int(ddof):
        raise ValueError(f"ddof is a whole number, not {ddof}")
    given = [_api.asarray(one, device=beside._device) for one in (m, y) if one is not None]
    if any(one.ndim > 2 for one in given):
        raise ValueError("samples are a line or a matrix")
    kind = _dtypes.of(dtype) if dtype is not None else _dtypes.float64 if beside._device.has(_dtypes.float64) else _dtypes.float32
    if dtype is None and any(one.dtype.kind == "c" for one in given):
        kind = _dtypes.complex128 if kind is _dtypes.float64 else _dtypes.complex64
    rows = [reshape(one, (1, -1)) if one.ndim < 2 else one if rowvar else one.T for one in given]
    x = concatenate([one.astype(kind, copy=False) for one in rows], axis=0)
    real = _dtypes.real_of(kind)
    # Whole numbers are how often a column counts, others how much.
    often, much = (None if one is None else _api.asarray(_array(one, beside), device=beside._device) for one in (fweights, aweights))
    for name, one in (("fweights", often), ("aweights", much)):
        if one is not None and (one.ndim != 1 or one.size != x.shape[1]):
            raise RuntimeError(f"{name} has the shape {one.shape}: a weight for each of {x.shape[1]} samples")
        if one is not None and bool(_api.any(one < 0)):
            raise ValueError(f"{name} has a number below 0")
    if often is not None and often.dtype.kind not in "iu" and bool(_api.any(often != _api.round(often))):
        raise TypeError("fweights are whole numbers")
    freedom = (0 if bias else 1) if ddof is None else int(ddof)
    weights = None
    for one in (often, much):
        if one is not None:
            weights = one.astype(real) if weights is None else weights * one.astype(real)
    if weights is None:
        left: Any = x.shape[1] - freedom
        middle = _api.mean(x, axis=1, keepdims=True)
    else:
        total = _api.sum(weights)
        middle = _api.sum(x * weights, axis=1, keepdims=True) / total
        if freedom == 0:
            left = total
        elif much is None:
            left = total - freedom
        else:
            left = total - freedom * _api.sum(weights * much.astype(real)) / total
    left = max(float(left), 0.0)
    x = x - middle
    turned = (x if weights is None else x * weights).T
    found = linalg.matmul(x, _api.conj(turned) if kind.kind == "c" else turned)
    found = found * (1 / left) if left else found / _api.zeros((), dtype=real, device=beside._device)
    return reshape(found, tuple(side for side in found.shape if side != 1))  # type: ignore[no-any-return]


@_numpys
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    found = _covariance(x, y, rowvar, False, None, None, None, dtype)
    if not found.ndim:
        return found / found
    spread = _api.sqrt(_api.real(linalg.diagonal(found)))
    found = found / spread[:, None] / spread[None, :]
    if found.dtype.kind == "c":
        parts = [_api.clip(one, -1.0, 1.0) for one in (_api.real(found), _api.imag(found))]
        return wrap(parts[0]._x.binary("complex", parts[1]._x), found._device)
    return _api.clip(found, -1.0, 1.0)


@_numpys
def histogramdd(sample: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None) -> Any:
    beside = _first((sample, bins, weights))
    assert beside is not None
    if isinstance(sample, Array) or isinstance(sample, np.ndarray):
        whole = _api.asarray(sample, device=beside._device)
        if whole.ndim > 2:
            raise ValueError(f"np.histogramdd: a sample has two axes, not the shape {whole.shape}")
        whole = whole if whole.ndim == 2 else reshape(whole, (-1, 1))
        columns = [whole[:, at] for at in np.arange(whole.shape[1])]
    else:
        columns = [ravel(_api.asarray(one, device=beside._device)) for one in sample]
    axes = len(columns)
    bins = [bins] * axes if isinstance(bins, int | np.integer) else list(bins)
    if len(bins) != axes:
        raise ValueError(f"bins are given for {len(bins)} axes, but the sample has {axes}")
    limits = [None] * axes if range is None else list(range)
    if len(limits) != axes:
        raise ValueError(f"range has limits for {len(limits)} axes, but the sample has {axes}")
    wide = _floating(_dtypes.int32, beside)
    places: Any = 0
    inside: Any = None
    edges = []
    for column, one, limit in zip(columns, bins, limits, strict=True):
        line = np.asarray(_read(one)) if np.ndim(_read(one)) else None
        if line is None:
            if one < 1:
                raise ValueError(f"bins must be at least 1, not {one}")
            ends = [_api.min(column), _api.max(column)] if column.size else [0.0, 1.0]
            low, high = limit if limit is not None else (np.asarray(end)[()] for end in ends)
            if low > high:
                raise ValueError(f"range goes from {low} down to {high}")
            low, high = (low - 0.5, high + 0.5) if low == high else (low, high)
            line = np.linspace(low, high, int(one) + 1)
        elif (np.diff(line) < 0).any():
            raise ValueError("the edges of bins must increase")
        edge = _api.asarray(line if beside._device.has(_dtypes.of(line.dtype)) else line.astype("f4"), device=beside._device)
        bounds, column = edge.astype(wide, copy=False), column.astype(wide, copy=False)
        at = _api.searchsorted(bounds, column, side="right") - 1
        # The last bin holds its upper end too.
        at = _api.where(column == bounds[-1], line.size - 2, at)
        within = (column >= bounds[0]) & (column <= bounds[-1])
        inside = within if inside is None else inside & within
        places = places * (line.size - 1) + _api.clip(at, 0, line.size - 2)
        edges.append(edge)
    shape = tuple(one.size - 1 for one in edges)
    size = math.prod(shape)
    given = None if weights is None else _api.asarray(_array(weights, beside), device=beside._device)
    found = _counts(_api.where(inside, places, size), size + 1, given)[:size]
    found = reshape(found.astype(wide, copy=False), shape)
    if density:
        total = _api.sum(found)
        for axis, one in enumerate(edges):
            found = found / reshape(_api.diff(one.astype(wide, copy=False)), (-1,) + (1,) * (axes - axis - 1))
        found = found / total
    return found, edges


@_numpys
def histogram2d(x: Any, y: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None) -> Any:
    # Edges for both axes, or what belongs to each of the two.
    if isinstance(bins, list | tuple | np.ndarray | Array) and len(bins) not in (1, 2):
        bins = [bins, bins]
    x, y = _together((x, y))
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"x and y are lines of one length, not of the shapes {x.shape} and {y.shape}")
    found, edges = histogramdd([x, y], bins, range, density, weights)
    return found, edges[0], edges[1]


@_numpys
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    return histogram(a, bins, range)[1]


def _signed(x: Array) -> Array:
    if x.dtype.kind == "c":
        raise TypeError(f"{x.dtype} has no sign (take its real part)")
    return x


for _name, _of in {
    "isposinf": lambda x: _signed(x) == math.inf,
    "isneginf": lambda x: _signed(x) == -math.inf,
    "isreal": lambda x: _api.imag(x) == 0 if x.dtype.kind == "c" else _api.full(x.shape, True, device=x._device),
    "iscomplex": lambda x: _api.imag(x) != 0 if x.dtype.kind == "c" else _api.full(x.shape, False, device=x._device),
}.items():
    FUNCTIONS[_name] = _of
