"""Cantus: arrays on every device, after the Python array API standard.

>>> import cantus
>>> x = cantus.asarray([1.0, 4.0, 9.0])
>>> cantus.sqrt(x) + 1
array([2., 3., 4.], dtype=float32)
"""

from __future__ import annotations

import importlib
from typing import Any

from . import _api
from ._array import Array, matmul
from ._core import CancelledError, DeviceError, KernelError, __version__
from ._devices import Device, device, devices
from ._dtypes import (
    DType,
    bfloat16,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

globals().update({name: value for name, value in vars(_api).items() if not name.startswith("_") and getattr(value, "__module__", "") == _api.__name__})
from ._api import __array_namespace_info__, e, inf, nan, newaxis, pi

bool = bool_
__array_api_version__ = "2024.12"

_LAZY = {"dask", "fft", "field", "linalg", "nn", "random", "tensor_ops"}
_FROM = {"Kernel": "_kernel", "kernel": "_kernel", "profile": "_profile", "memory_scope": "_profile"}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _FROM:
        return getattr(importlib.import_module(f"{__name__}.{_FROM[name]}"), name)
    raise AttributeError(f"module 'cantus' has no attribute {name!r}")
