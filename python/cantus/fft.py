"""The array API's extension for Fourier transforms."""

from __future__ import annotations

import math
from typing import Any

from . import _api, _arguments, _devices, _dtypes
from ._array import Array, call, filled, wrap

_Norm = str


def _scaled(x: Array, norm: str, count: int, inverse: bool) -> Array:
    """The core's forward transform has no factor, its inverse 1 / N."""
    if norm not in ("backward", "ortho", "forward"):
        raise ValueError(f"norm is 'backward', 'ortho' or 'forward', not {norm!r}")
    factor = {"backward": 1.0, "ortho": math.sqrt(count) if inverse else 1 / math.sqrt(count), "forward": count if inverse else 1 / count}
    return x if norm == "backward" else x * float(factor[norm])


def _length(x: Array, n: int | None, axis: int) -> Array:
    """Cuts, or pads with zeros."""
    if n is None or n == x.shape[axis]:
        return x
    if n < 1:
        raise ValueError(f"a transform needs at least 1 number, not {n}")
    place = axis % x.ndim
    if n < x.shape[place]:
        return x[(slice(None),) * place + (slice(0, n),)]
    shape = [n - side if at == place else side for at, side in enumerate(x.shape)]
    return _api.concat([x, filled(shape, 0, x.dtype, x._device)], axis=place)


def _floats(x: Array) -> Array:
    """Whole numbers as floats, as in NumPy."""
    return x if x.dtype.kind in "fc" else x.astype(_dtypes.float64 if x._device.has(_dtypes.float64) else _dtypes.float32)


def _complex(x: Array) -> Array:
    x = _floats(x)
    return x.astype(_dtypes.complex_of(x.dtype), copy=False)


def fft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """The transform along an axis.

    >>> import cantus
    >>> cantus.fft.fft(cantus.asarray([1.0, 0.0, 0.0, 0.0]))
    array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    x = _length(_complex(x), n, axis)
    return _scaled(call(x, "fft", ints=[axis]), norm, x.shape[axis], False)


def ifft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """The inverse of `fft`.

    >>> import cantus
    >>> abs(cantus.fft.ifft(cantus.asarray([1.0, 2.0, 3.0, 4.0]))).numpy().round(3)
    array([2.5  , 0.707, 0.5  , 0.707], dtype=float32)
    """
    x = _length(_complex(x), n, axis)
    return _scaled(call(x, "ifft", ints=[axis]), norm, x.shape[axis], True)


def _along(x: Array, s: Any, axes: Any) -> list[tuple[int, int | None]]:
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    return list(zip(axes, [None] * len(axes) if s is None else s, strict=True))


def fftn(x: Array, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Array:
    """The transform along several axes, all for None.

    >>> import cantus
    >>> abs(cantus.fft.fftn(cantus.asarray([1.0, 2.0, 3.0, 4.0]))).numpy().round(3)
    array([10.   ,  2.828,  2.   ,  2.828], dtype=float32)
    """
    for axis, n in _along(x, s, axes):
        x = fft(x, n=n, axis=axis, norm=norm)
    return x


def ifftn(x: Array, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Array:
    """The inverse of `fftn`.

    >>> import cantus
    >>> abs(cantus.fft.ifftn(cantus.asarray([1.0, 2.0, 3.0, 4.0]))).numpy().round(3)
    array([2.5  , 0.707, 0.5  , 0.707], dtype=float32)
    """
    for axis, n in _along(x, s, axes):
        x = ifft(x, n=n, axis=axis, norm=norm)
    return x


def _paired(x: Array) -> Array:
    """Complex64 of pairs along the last axis."""
    return wrap(x[..., 0]._x.binary("complex", x[..., 1]._x), x._device)


def rfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """The transform of real numbers: its first half plus one element.

    >>> import cantus
    >>> abs(cantus.fft.rfft(cantus.asarray([1.0, 2.0, 3.0, 4.0]))).numpy().round(3)
    array([10.   ,  2.828,  2.   ], dtype=float32)
    """
    if x.dtype.kind == "c":
        raise TypeError(f"rfft needs real numbers, not {x.dtype} (use fft)")
    x = _length(_floats(x), n, axis)
    count, place = x.shape[axis], axis % x.ndim
    if x.dtype is _dtypes.float64:
        result = fft(x, axis=place)[(slice(None),) * place + (slice(0, count // 2 + 1),)]
    else:
        result = _paired(call(x.astype(_dtypes.float32, copy=False), "rfft", ints=[place]).eval())
    return _scaled(result, norm, count, False)


def irfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """The inverse of `rfft`, of n real numbers.

    >>> import cantus
    >>> cantus.fft.irfft(cantus.fft.rfft(cantus.asarray([1.0, 2.0, 3.0, 4.0]))).numpy().round(3)
    array([1., 2., 3., 4.], dtype=float32)
    """
    x = _complex(x)
    place = axis % x.ndim
    count = 2 * (x.shape[place] - 1) if n is None else n
    x = _length(x, count // 2 + 1, place)
    if x.dtype is _dtypes.complex64:
        pairs = _api.stack([x.real, x.imag], axis=-1)
        return _scaled(call(pairs, "irfft", ints=[count, place]), norm, count, True)
    part = (slice(None),) * place
    last = count // 2 + count % 2
    mirrored = wrap(_api.flip(x[(*part, slice(1, last))], axis=place)._x.unary("conj"), x._device)
    # What has no mirror is real.
    whole = _api.concat([_real_at(x, part, 0), x[(*part, slice(1, last))]], axis=place)
    if count % 2 == 0:
        whole = _api.concat([whole, _real_at(x, part, count // 2)], axis=place)
    return ifft(_api.concat([whole, mirrored], axis=place), axis=place, norm=norm).real


def _real_at(x: Array, part: tuple[slice, ...], place: int) -> Array:
    return x[(*part, slice(place, place + 1))].real.astype(x.dtype)


def rfftn(x: Array, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Array:
    """`rfft` along the last of several axes, then `fft` along the others.

    >>> import cantus
    >>> abs(cantus.fft.rfftn(cantus.asarray([1.0, 2.0, 3.0, 4.0]))).numpy().round(3)
    array([10.   ,  2.828,  2.   ], dtype=float32)
    """
    *others, (last, n) = _along(x, s, axes)
    x = rfft(x, n=n, axis=last, norm=norm)
    for axis, n in others:
        x = fft(x, n=n, axis=axis, norm=norm)
    return x


def irfftn(x: Array, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Array:
    """The inverse of `rfftn`.

    >>> import cantus
    >>> cantus.fft.irfftn(cantus.fft.rfftn(cantus.asarray([1.0, 2.0, 3.0, 4.0]))).numpy().round(3)
    array([1., 2., 3., 4.], dtype=float32)
    """
    *others, (last, n) = _along(x, s, axes)
    for axis, m in others:
        x = ifft(x, n=m, axis=axis, norm=norm)
    return irfft(x, n=n, axis=last, norm=norm)


def fft2(x: Array, /, *, s: Any = None, axes: Any = (-2, -1), norm: str = "backward") -> Array:
    """The transform along two axes, the last ones.

    >>> import cantus
    >>> abs(cantus.fft.fft2(cantus.ones((2, 2))))
    array([[4., 0.],
           [0., 0.]], dtype=float32)
    """
    return fftn(x, s=s, axes=axes, norm=norm)


def ifft2(x: Array, /, *, s: Any = None, axes: Any = (-2, -1), norm: str = "backward") -> Array:
    """The inverse of `fft2`.

    >>> import cantus
    >>> abs(cantus.fft.ifft2(cantus.ones((2, 2))))
    array([[1., 0.],
           [0., 0.]], dtype=float32)
    """
    return ifftn(x, s=s, axes=axes, norm=norm)


def rfft2(x: Array, /, *, s: Any = None, axes: Any = (-2, -1), norm: str = "backward") -> Array:
    """`fft2` of real numbers: along the last axis the first half plus one element.

    >>> import cantus
    >>> abs(cantus.fft.rfft2(cantus.ones((2, 4)))).shape
    (2, 3)
    """
    return rfftn(x, s=s, axes=axes, norm=norm)


def irfft2(x: Array, /, *, s: Any = None, axes: Any = (-2, -1), norm: str = "backward") -> Array:
    """The inverse of `rfft2`.

    >>> import cantus
    >>> cantus.fft.irfft2(cantus.fft.rfft2(cantus.ones((2, 2))))
    array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    return irfftn(x, s=s, axes=axes, norm=norm)


_OTHER = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def hfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """The transform of a Hermitian array, which is real.

    >>> import cantus
    >>> cantus.fft.hfft(cantus.asarray([1 + 0j, 2 + 0j, 1 + 0j])).numpy().round(3)
    array([ 6.,  0., -2.,  0.], dtype=float32)
    """
    x = _complex(x)
    return irfft(wrap(x._x.unary("conj"), x._device), n=n, axis=axis, norm=_OTHER.get(norm, norm))


def ihfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """The inverse of `hfft`.

    >>> import cantus
    >>> abs(cantus.fft.ihfft(cantus.asarray([1.0, 2.0, 3.0, 4.0]))).numpy().round(3)
    array([2.5  , 0.707, 0.5  ], dtype=float32)
    """
    result = rfft(x, n=n, axis=axis, norm=_OTHER.get(norm, norm))
    return wrap(result._x.unary("conj"), x._device)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of `fft`'s results, in cycles per unit of d.

    >>> import cantus
    >>> cantus.fft.fftfreq(4)
    array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """
    kind = _dtypes.float32 if dtype is None else _dtypes.of(dtype)
    target = _devices.device(device)
    places = _api.concat([_api.arange(0, (n + 1) // 2, device=target), _api.arange(-(n // 2), 0, device=target)])
    return places.astype(kind) * (1.0 / (n * d))


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of `rfft`'s results.

    >>> import cantus
    >>> cantus.fft.rfftfreq(4)
    array([0.  , 0.25, 0.5 ], dtype=float32)
    """
    kind = _dtypes.float32 if dtype is None else _dtypes.of(dtype)
    return _api.arange(0, n // 2 + 1, device=device).astype(kind) * (1.0 / (n * d))


def fftshift(x: Array, /, *, axes: Any = None) -> Array:
    """Moves frequency 0 to the middle.

    >>> import cantus
    >>> cantus.fft.fftshift(cantus.arange(4))
    array([2, 3, 0, 1])
    """
    axes = tuple(range(x.ndim)) if axes is None else (axes,) if isinstance(axes, int) else tuple(axes)
    return _api.roll(x, tuple(x.shape[axis] // 2 for axis in axes), axis=axes)


def ifftshift(x: Array, /, *, axes: Any = None) -> Array:
    """The inverse of `fftshift`.

    >>> import cantus
    >>> cantus.fft.ifftshift(cantus.arange(4))
    array([2, 3, 0, 1])
    """
    axes = tuple(range(x.ndim)) if axes is None else (axes,) if isinstance(axes, int) else tuple(axes)
    return _api.roll(x, tuple(-(x.shape[axis] // 2) for axis in axes), axis=axes)


_arguments.enter(globals(), "fft.")
