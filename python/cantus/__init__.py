"""Cantus: arrays on every device, after the Python array API standard.

>>> import cantus
>>> x = cantus.asarray([1.0, 4.0, 9.0])
>>> cantus.sqrt(x) + 1
array([2., 3., 4.], dtype=float32)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._api import (
    UniqueAll as UniqueAll,
    UniqueCounts as UniqueCounts,
    UniqueInverse as UniqueInverse,
    __array_namespace_info__ as __array_namespace_info__,
    abs as abs,
    acos as acos,
    acosh as acosh,
    add as add,
    all as all,
    any as any,
    arange as arange,
    argmax as argmax,
    argmin as argmin,
    argsort as argsort,
    array as array,
    asarray as asarray,
    asin as asin,
    asinh as asinh,
    astype as astype,
    atan as atan,
    atan2 as atan2,
    atanh as atanh,
    bitwise_and as bitwise_and,
    bitwise_invert as bitwise_invert,
    bitwise_left_shift as bitwise_left_shift,
    bitwise_or as bitwise_or,
    bitwise_right_shift as bitwise_right_shift,
    bitwise_xor as bitwise_xor,
    broadcast_arrays as broadcast_arrays,
    broadcast_to as broadcast_to,
    can_cast as can_cast,
    ceil as ceil,
    clip as clip,
    concat as concat,
    conj as conj,
    copysign as copysign,
    cos as cos,
    cosh as cosh,
    count_nonzero as count_nonzero,
    cumulative_prod as cumulative_prod,
    cumulative_sum as cumulative_sum,
    diff as diff,
    digamma as digamma,
    divide as divide,
    e as e,
    empty as empty,
    empty_like as empty_like,
    equal as equal,
    erf as erf,
    erfc as erfc,
    exp as exp,
    expand_dims as expand_dims,
    expm1 as expm1,
    eye as eye,
    finfo as finfo,
    flip as flip,
    floor as floor,
    floor_divide as floor_divide,
    from_dlpack as from_dlpack,
    full as full,
    full_like as full_like,
    greater as greater,
    greater_equal as greater_equal,
    hypot as hypot,
    iinfo as iinfo,
    imag as imag,
    inf as inf,
    isdtype as isdtype,
    isfinite as isfinite,
    isinf as isinf,
    isnan as isnan,
    less as less,
    less_equal as less_equal,
    lgamma as lgamma,
    linspace as linspace,
    log as log,
    log10 as log10,
    log1p as log1p,
    log2 as log2,
    logaddexp as logaddexp,
    logical_and as logical_and,
    logical_not as logical_not,
    logical_or as logical_or,
    logical_xor as logical_xor,
    matrix_transpose as matrix_transpose,
    max as max,
    maximum as maximum,
    mean as mean,
    meshgrid as meshgrid,
    min as min,
    minimum as minimum,
    moveaxis as moveaxis,
    multiply as multiply,
    nan as nan,
    negative as negative,
    newaxis as newaxis,
    nextafter as nextafter,
    nonzero as nonzero,
    not_equal as not_equal,
    ones as ones,
    ones_like as ones_like,
    permute_dims as permute_dims,
    pi as pi,
    positive as positive,
    pow as pow,
    prod as prod,
    real as real,
    reciprocal as reciprocal,
    remainder as remainder,
    repeat as repeat,
    reshape as reshape,
    result_type as result_type,
    roll as roll,
    round as round,
    searchsorted as searchsorted,
    sign as sign,
    signbit as signbit,
    sin as sin,
    sinh as sinh,
    sort as sort,
    sqrt as sqrt,
    square as square,
    squeeze as squeeze,
    stack as stack,
    std as std,
    subtract as subtract,
    sum as sum,
    take as take,
    take_along_axis as take_along_axis,
    tan as tan,
    tanh as tanh,
    tensordot as tensordot,
    tile as tile,
    tril as tril,
    triu as triu,
    trunc as trunc,
    unique_all as unique_all,
    unique_counts as unique_counts,
    unique_inverse as unique_inverse,
    unique_values as unique_values,
    unstack as unstack,
    var as var,
    vecdot as vecdot,
    where as where,
    zeros as zeros,
    zeros_like as zeros_like,
)
from ._array import Array as Array
from ._array import matmul as matmul
from ._core import CancelledError as CancelledError
from ._core import DeviceError as DeviceError
from ._core import Error as Error
from ._core import KernelError as KernelError
from ._core import __version__ as __version__
from ._devices import Device as Device
from ._devices import device as device
from ._devices import devices as devices
from ._dtypes import (
    DType as DType,
    bfloat16 as bfloat16,
    bool_ as bool_,
    complex64 as complex64,
    complex128 as complex128,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    uint8 as uint8,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
)


if TYPE_CHECKING:
    from . import circuits as circuits
    from . import fft as fft
    from . import field as field
    from . import lib as lib
    from . import linalg as linalg
    from . import nn as nn
    from . import random as random
    from . import tensor_ops as tensor_ops
    from ._files import from_arrow as from_arrow
    from ._files import load as load
    from ._files import save as save
    from ._kernel import Kernel as Kernel
    from ._kernel import kernel as kernel
    from ._profile import memory_scope as memory_scope
    from ._profile import profile as profile
    from ._stream import Stream as Stream
    from ._texture import Sampler as Sampler
    from ._texture import Texture as Texture

bool = bool_
__array_api_version__ = "2024.12"

_LAZY = {"circuits", "fft", "field", "lib", "linalg", "nn", "random", "tensor_ops"}
_FROM = {
    "Kernel": "_kernel",
    "kernel": "_kernel",
    "profile": "_profile",
    "memory_scope": "_profile",
    "from_arrow": "_files",
    "load": "_files",
    "save": "_files",
    "Sampler": "_texture",
    "Stream": "_stream",
    "Texture": "_texture",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _FROM:
        return getattr(importlib.import_module(f"{__name__}.{_FROM[name]}"), name)
    if not name.startswith("_"):
        # NumPy's other functions, by NumPy's names.
        found = importlib.import_module(f"{__name__}._numpy").named(name)
        if found is not None:
            return found
    raise AttributeError(f"module 'cantus' has no attribute {name!r}")


def __dir__() -> list[str]:
    numpys = importlib.import_module(f"{__name__}._numpy").names()
    return sorted({*globals(), *_LAZY, *_FROM, *numpys})
