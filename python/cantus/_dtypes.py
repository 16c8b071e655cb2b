"""Data types: names, NumPy's counterparts, promotion."""

from __future__ import annotations

from typing import Any

import numpy as np


class NoNumPyDType(TypeError, AttributeError):
    """NumPy has no such dtype: neither as an argument nor as an attribute, which `hasattr` asks for."""


class DType:
    """The type of an array's elements. Compares equal to NumPy's dtype of the same kind and width, and to its name.

    >>> import cantus
    >>> cantus.float32 == "float32", cantus.float32.itemsize
    (True, 4)
    """

    __slots__ = ("_numpy", "core", "itemsize", "kind", "name")

    def __init__(self, name: str, core: str, kind: str, itemsize: int) -> None:
        self.name = name
        self.core = core
        self.kind = kind
        self.itemsize = itemsize
        self._numpy: Any = None

    @property
    def numpy(self) -> Any:
        """NumPy's dtype; bfloat16 needs the package `ml_dtypes`."""
        if self._numpy is None:
            if self.name == "bfloat16":
                try:
                    import ml_dtypes
                except ImportError:
                    raise NoNumPyDType(
                        "NumPy has no bfloat16: cast to float32 first, or install ml_dtypes"
                    ) from None
                self._numpy = np.dtype(ml_dtypes.bfloat16)
            else:
                self._numpy = np.dtype(self.name)
        return self._numpy

    # Two ways for NumPy's own functions to see it as a dtype, of which 2.4 brought the first.
    @property
    def __numpy_dtype__(self) -> Any:
        return self.numpy

    @property
    def dtype(self) -> Any:
        """NumPy's dtype, through which NumPy accepts this one as a dtype."""
        return self.numpy

    def __getattr__(self, name: str) -> Any:
        # What libraries ask of NumPy's dtypes (`hasobject`, `names`, `str`).
        if name in ("numpy", "dtype", "__numpy_dtype__"):
            # What Python asks for where the property has none.
            raise NoNumPyDType("NumPy has no bfloat16: cast to float32 first, or install ml_dtypes")
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.numpy, name)

    def __repr__(self) -> str:
        return f"cantus.{self.name}"

    def __str__(self) -> str:
        return self.name

    def __hash__(self) -> int:
        # What is equal hashes alike: NumPy's dtype.
        try:
            return hash(self.numpy)
        except NoNumPyDType:
            return hash(self.name)

    # Libraries ask whether a dtype is one of NumPy's (xarray, pandas): it passes for the one that it equals.
    @property
    def __class__(self) -> Any:
        try:
            return type(self.numpy)
        except NoNumPyDType:
            return DType

    @__class__.setter
    def __class__(self, other: Any) -> None:
        raise TypeError("a dtype does not change")

    def __eq__(self, other: object) -> bool:
        if self is other or type(other) is DType:
            return self is other
        if isinstance(other, str):
            return other == self.name
        if isinstance(other, np.dtype | type):
            try:
                return of(other) is self
            except TypeError:
                return False
        return NotImplemented

    def __reduce__(self) -> Any:
        return (of, (self.name,))


bool_ = DType("bool", "bool", "b", 1)
int8 = DType("int8", "i8", "i", 1)
int16 = DType("int16", "i16", "i", 2)
int32 = DType("int32", "i32", "i", 4)
int64 = DType("int64", "i64", "i", 8)
uint8 = DType("uint8", "u8", "u", 1)
uint16 = DType("uint16", "u16", "u", 2)
uint32 = DType("uint32", "u32", "u", 4)
uint64 = DType("uint64", "u64", "u", 8)
bfloat16 = DType("bfloat16", "bf16", "f", 2)
float16 = DType("float16", "f16", "f", 2)
float32 = DType("float32", "f32", "f", 4)
float64 = DType("float64", "f64", "f", 8)
complex64 = DType("complex64", "complex64", "c", 8)
complex128 = DType("complex128", "complex128", "c", 16)

ALL = (
    bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
    bfloat16, float16, float32, float64, complex64, complex128,
)  # fmt: skip
BY_CORE = {dtype.core: dtype for dtype in ALL}
BY_NAME = {dtype.name: dtype for dtype in ALL}
# By NumPy's own, whose name takes a microsecond to make.
_BY_NUMPY = {np.dtype(dtype.name): dtype for dtype in ALL if dtype is not bfloat16}
# The array API's.
STANDARD = tuple(dtype for dtype in ALL if dtype not in (bfloat16, float16))


def of(kind: object) -> DType:
    """The dtype for a dtype, a name, a type of Python's or a dtype of NumPy's."""
    if isinstance(kind, DType):
        return kind
    if isinstance(kind, str) and kind in BY_NAME:
        return BY_NAME[kind]
    if isinstance(kind, np.dtype) and kind in _BY_NUMPY:
        return _BY_NUMPY[kind]
    try:
        name = np.dtype(kind).name  # type: ignore[call-overload]
    except (TypeError, ValueError):
        name = ""
    if name in BY_NAME:
        return BY_NAME[name]
    raise TypeError(f"there is no dtype {kind!r} (there are {', '.join(BY_NAME)})")


def is_numpy(given: Any, wanted: DType) -> bool:
    """Returns whether NumPy's dtype is that of a dtype, in this machine's order of bytes."""
    return _BY_NUMPY.get(given) is wanted


_UNSIGNED_WIDER = {1: int16, 2: int32, 4: int64}
_SIGNED = {dtype.itemsize: dtype for dtype in (int8, int16, int32, int64)}


def promote(a: DType, b: DType) -> DType:
    """The dtype of an operation on both."""
    if a is b:
        return a
    if a.kind == b.kind:
        if a.itemsize == b.itemsize:  # float16 and bfloat16
            return float32
        return a if a.itemsize > b.itemsize else b
    kinds = {a.kind, b.kind}
    if "b" in kinds:
        return b if a.kind == "b" else a
    if kinds == {"i", "u"}:
        signed, unsigned = (a, b) if a.kind == "i" else (b, a)
        if unsigned.itemsize < signed.itemsize:
            return signed
        wider = _UNSIGNED_WIDER.get(unsigned.itemsize)
        if wider is None:
            raise TypeError(f"no integer holds both {a} and {b}: cast one of them (x.astype)")
        return wider
    if kinds == {"f", "c"}:
        return complex128 if float64 in (a, b) or complex128 in (a, b) else complex64
    # An integer beside a float, which the standard leaves open: as NumPy, the float dtype that holds both.
    whole, floating = (a, b) if a.kind in "iu" else (b, a)
    if whole.itemsize == 1 or whole.itemsize == 2 and floating.itemsize > 2:
        return floating
    if floating.kind == "c":
        return complex128
    return float32 if whole.itemsize == 2 else float64


def real_of(dtype: DType) -> DType:
    """The dtype of a complex number's parts; otherwise the dtype itself."""
    return {complex64: float32, complex128: float64}.get(dtype, dtype)


def complex_of(dtype: DType) -> DType:
    """The complex dtype whose parts hold a dtype."""
    if dtype.kind == "c":
        return dtype
    return complex128 if dtype in (float64, int64, uint64) else complex64
