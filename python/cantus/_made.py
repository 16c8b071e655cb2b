"""NumPy's functions that make arrays of numbers alone: the host computes them. Floats are float32 without a dtype, as those of `linspace`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import _api, _dtypes
from ._array import Array


def _given(value: Any, device: Any, dtype: Any) -> Any:
    if isinstance(value, tuple | list):
        return tuple(_given(one, device, dtype) for one in value)
    made = _api.asarray(value, device=device)
    if dtype is None and made.dtype is _dtypes.float64:
        return made.astype(_dtypes.float32)
    return made if dtype is None else made.astype(dtype)


def _maker(name: str) -> Callable[..., Any]:
    of = getattr(np, name)

    def made(*arguments: Any, dtype: Any = None, device: Any = None, **keywords: Any) -> Any:
        arguments = tuple(np.asarray(one) if isinstance(one, Array) else one for one in arguments)
        return _given(of(*arguments, **keywords), device, None if dtype is None else _dtypes.of(dtype))

    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"NumPy's `{name}` as an array of Cantus: https://numpy.org/doc/stable/reference/generated/numpy.{name}.html"
    return made


MADE: dict[str, Callable[..., Any]] = {
    name: _maker(name)
    for name in (
        "logspace geomspace tri tril_indices triu_indices diag_indices indices identity ix_ mask_indices bartlett blackman hamming hanning kaiser"
    ).split()
}
