"""The array: operators, indexing, conversions. It is lazy: operations are recorded, and computed when a result is read."""

from __future__ import annotations

import asyncio
import math
import operator
import os
import struct
from collections.abc import Callable, Iterator
from pickle import PickleBuffer
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core, _devices, _dtypes
from ._devices import Device
from ._dtypes import DType
from ._methods import Methods

if TYPE_CHECKING:
    from ._core import Operand

_WORD = {"i", "u"}
# An element's bytes as numbers of Python's, two of a complex one. Those of bfloat16 have no such form.
_FORMS = {
    "bool": "?", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q", "u64": "Q",
    "f16": "e", "f32": "f", "f64": "d", "complex64": "ff", "complex128": "dd",
}  # fmt: skip
_UNPACKED = {core: struct.Struct(f"={form}").unpack for core, form in _FORMS.items()}


class Array(Methods, _core.Handle):
    """An array on one device, after the Python array API standard. `cantus.asarray` and the other creation functions create one.

    Operations are recorded and become one kernel; reading (`np.asarray(x)`, `print(x)`, `float(x)`, `x.eval()`) computes them. Arrays
    do not change: `x[...] = y` makes `x` another array, and what was computed from the old one stays.

    >>> import cantus
    >>> x = cantus.asarray([1.0, 2.0, 3.0])
    >>> x * 2 + 1
    array([3., 5., 7.], dtype=float32)
    """

    __slots__ = ()
    __array_priority__ = 1000

    def __new__(cls, *_: object, **__: object) -> Array:
        raise TypeError("use cantus.asarray, cantus.zeros or another creation function")

    # What it is.

    @property
    def size(self) -> int:
        """The number of elements.

        >>> import cantus
        >>> cantus.ones((2, 3)).size
        6
        """
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The size of the elements in bytes.

        >>> import cantus
        >>> cantus.ones((2, 3)).nbytes
        24
        """
        return self.size * self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes.

        >>> import cantus
        >>> cantus.ones(2).itemsize
        4
        """
        return self.dtype.itemsize

    @property
    def device(self) -> Device:
        """The device that holds it.

        >>> import cantus
        >>> cantus.ones(2).to("cpu").device
        device('cpu')
        """
        return self._device

    @property
    def mT(self) -> Array:
        """The last two axes exchanged.

        >>> import cantus
        >>> cantus.ones((4, 2, 3)).mT.shape
        (4, 3, 2)
        """
        rank = len(self._x.shape)
        if rank < 2:
            # `hasattr` asks for this error.
            raise AttributeError(f"mT is for two axes and more, and this array has {rank}")
        return wrap(self._x.turned(), self._device)

    @property
    def real(self) -> Array:
        """The real parts.

        >>> import cantus
        >>> cantus.asarray([1 + 2j]).real
        array([1.], dtype=float32)
        """
        return wrap(self._x.unary("real") if self.dtype.kind == "c" else self._x, self._device)

    @property
    def imag(self) -> Array:
        """The imaginary parts.

        >>> import cantus
        >>> cantus.asarray([1 + 2j]).imag
        array([2.], dtype=float32)
        """
        if self.dtype.kind != "c":
            return filled(self.shape, 0, self.dtype, self._device)
        return wrap(self._x.unary("imag"), self._device)

    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any:
        """The module `cantus`."""
        if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
            raise ValueError(f"the array API {api_version} is not supported (2024.12 is)")
        import cantus

        return cantus

    # Reading.

    def eval(self) -> Array:
        """Computes the array now, and returns it.

        >>> import cantus
        >>> cantus.ones(2).eval()
        array([1., 1.], dtype=float32)
        """
        self._x.eval()
        return self

    def numpy(self) -> Any:
        """Returns a writable NumPy array with a copy of the elements.

        >>> import cantus
        >>> cantus.ones(2).numpy()
        array([1., 1.], dtype=float32)
        """
        dtype = self.dtype
        result = np.empty(self.shape, dtype.numpy)
        self._x.read_into(address_of(result), result.nbytes)
        return result

    async def async_numpy(self) -> Any:
        """As `numpy`, without blocking the event loop: the device works while other tasks run."""
        return await asyncio.to_thread(self.numpy)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if copy is not True and self.dtype is not _dtypes.bfloat16 and self.size:
            capsule = self._x.dlpack(True)
            if capsule is not None:
                seen = np.from_dlpack(_Capsule(capsule))
                if dtype is None or seen.dtype == dtype:
                    return seen
                if copy is False:
                    raise ValueError(f"{self.dtype} is copied to become {np.dtype(dtype)} (leave copy=False out)")
                return seen.astype(dtype)
        if copy is False:
            raise ValueError(f"an array on {self._device} is copied to be read by NumPy")
        result = self.numpy()
        return result if dtype is None else result.astype(dtype, copy=False)

    def item(self, *place: Any) -> Any:
        """Returns the only element, or the one at a place, as a Python number.

        >>> import cantus
        >>> cantus.sum(cantus.ones(4)).item()
        4.0
        """
        if place:
            return self._read().item(*place)
        if self.size != 1:
            raise ValueError(f"item is for one element, and this array has {self.size}")
        unpacked = _UNPACKED.get(self._kind)
        if unpacked is None:
            return self._read().reshape(()).item()
        numbers = unpacked(self._x.bytes())
        return complex(*numbers) if len(numbers) == 2 else numbers[0]

    def _read(self) -> Any:
        """NumPy's array of the elements; of bfloat16, which NumPy has not, one of float32."""
        return (self.astype(_dtypes.float32) if self.dtype is _dtypes.bfloat16 else self).numpy()

    def tolist(self) -> Any:
        """Returns the elements as nested lists.

        >>> import cantus
        >>> cantus.arange(3).tolist()
        [0, 1, 2]
        """
        return self._read().tolist()

    def _scalar(self, what: str) -> Any:
        if self.shape != ():
            raise TypeError(f"{what} is for arrays without axes, and this one has the shape {self.shape}")
        return self.item()

    def __bool__(self) -> bool:
        return bool(self._scalar("bool"))

    def __int__(self) -> int:
        return int(self._scalar("int"))

    def __float__(self) -> float:
        value = self._scalar("float")
        if isinstance(value, complex):
            raise TypeError("a complex number is not a float (take its real part)")
        return float(value)

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        if self.dtype.kind not in _WORD:
            raise TypeError(f"an index is an integer, and this array holds {self.dtype}")
        return int(self._scalar("an index"))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without axes has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Array]:
        if not self.shape:
            raise TypeError("an array without axes has nothing to iterate over")
        return (self[place] for place in range(self.shape[0]))

    def __contains__(self, value: object) -> bool:
        from . import _api

        return bool(_api.any(self == value))

    def __repr__(self) -> str:
        if self.dtype is _dtypes.bfloat16:
            text = np.array2string(self._read(), separator=", ", prefix="array(")
            return f"array({text}, dtype=bfloat16)"
        return repr(np.asarray(self))

    def __str__(self) -> str:
        return str(self._read() if self.dtype is _dtypes.bfloat16 else np.asarray(self))

    def __format__(self, spec: str) -> str:
        return format(self.item() if self.shape == () else str(self), spec)

    def __round__(self, ndigits: int | None = None) -> Any:
        return int(self.round()) if ndigits is None and self.shape == () else self.round(ndigits or 0)

    def __hash__(self) -> int:
        raise TypeError("arrays are not hashable (their elements are compared by ==)")

    def __reduce_ex__(self, protocol: Any) -> Any:
        # By protocol 5 the elements go as they are, or beside the pickle without a copy.
        contents = PickleBuffer(self.host_bytes()) if protocol >= 5 and self.size else self._x.bytes()
        return (_unpickled, (self.dtype.name, self.shape, contents, self._device.name))

    def host_bytes(self) -> Any:
        """The elements as read-only bytes (uint8 of NumPy's): on the CPU those of the array itself, else a copy.

        >>> import cantus
        >>> cantus.ones(2).host_bytes().nbytes
        8
        """
        if self._device.is_host and self.size:
            return _Bytes(self._x, self.nbytes).seen()
        return np.frombuffer(self._x.bytes(), np.uint8)

    def __copy__(self) -> Array:
        return wrap(self._x, self._device)

    def __deepcopy__(self, _: object) -> Array:
        return wrap(self._x.copy(), self._device)

    def __dlpack_device__(self) -> tuple[int, int]:
        if self._device.is_host:
            return (1, 0)
        driver = self._device.engine.driver()
        if driver is None:
            raise BufferError(f"an array on {self._device} is not shared by DLPack (x.to('cpu') is)")
        return driver[:2]

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        return self._x.arrow()

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        wanted = None if dl_device is None else tuple(map(int, dl_device))
        driver = None if self._device.is_host else self._device.engine.driver()
        versioned = max_version is not None and max_version[0] >= 1
        source = self
        if driver is not None and wanted in (None, driver[:2]):
            if copy:
                source = wrap(self._x.copy(), self._device)
            capsule = source._x.dlpack_driver(_stream(driver, stream), versioned)
        else:
            if wanted not in (None, (1, 0)):
                raise BufferError(f"DLPack exports an array on {self._device} to the host's memory, not to device {dl_device}")
            if stream is not None:
                raise BufferError("there are no streams in the host's memory")
            if not self._device.is_host:
                if dl_device is None or copy is False:
                    raise BufferError(f"an array on {self._device} is copied to be shared by DLPack (x.to('cpu'))")
                source = self.to("cpu")
            elif copy:
                source = wrap(self._x.copy(), self._device)
            capsule = source._x.dlpack(versioned)
        # Without elements there is no memory, on no device.
        return source._x.dlpack(versioned) if capsule is None else capsule

    # Other devices and dtypes.

    def to(self, device: str | Device) -> Array:
        """Copies the array to another device.

        >>> import cantus
        >>> cantus.ones(2).to("cpu").device
        device('cpu')
        """
        return self.to_device(device)

    def to_device(self, device: str | Device, /, *, stream: Any = None) -> Array:
        """Copies the array to another device, under the standard's name.

        >>> import cantus
        >>> cantus.ones(2).to_device("cpu").device
        device('cpu')
        """
        if stream is not None:
            raise ValueError("the stream cannot be chosen here (omit it)")
        target = _devices.device(device)
        if target == self._device:
            return self
        if not target.has(self.dtype):
            raise TypeError(f"{target} does not compute with {self.dtype} (cast first: x.astype)")
        contents = self._x.bytes()
        return from_bytes(self.dtype, self.shape, contents, target)

    def astype(self, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Array:
        """Converts the elements to another dtype.

        >>> import cantus
        >>> cantus.asarray([1.7]).astype(cantus.int32)
        array([1], dtype=int32)
        """
        array = self if device is None else self.to(device)
        to = _dtypes.of(dtype)
        if to is array.dtype:
            return wrap(array._x, array._device) if copy else array
        return array._cast(to.core)

    # Operators. Those of `_core.Handle` come back as `_general` where they are not plain.

    def __floordiv__(self, other: Operand) -> Array:
        return floor_divided(self, other)

    def __rfloordiv__(self, other: Operand) -> Array:
        return floor_divided(self, other, True)

    def __mod__(self, other: Operand) -> Array:
        return binary("remainder", self, other)

    def __rmod__(self, other: Operand) -> Array:
        return binary("remainder", self, other, True)

    def __divmod__(self, other: Operand) -> tuple[Array, Array]:
        return self // other, self % other

    def __rdivmod__(self, other: Operand) -> tuple[Array, Array]:
        return floor_divided(self, other, True), binary("remainder", self, other, True)

    def __pow__(self, other: Operand) -> Array:
        return power(self, other)

    def __rpow__(self, other: Operand) -> Array:
        return power(self, other, True)

    def __and__(self, other: Operand) -> Array:
        return binary("bitwise_and", self, other)

    __rand__ = __and__

    def __or__(self, other: Operand) -> Array:
        return binary("bitwise_or", self, other)

    __ror__ = __or__

    def __xor__(self, other: Operand) -> Array:
        return binary("bitwise_xor", self, other)

    __rxor__ = __xor__

    def __lshift__(self, other: Operand) -> Array:
        return binary("shift_left", self, other)

    def __rlshift__(self, other: Operand) -> Array:
        return binary("shift_left", self, other, True)

    def __rshift__(self, other: Operand) -> Array:
        return binary("shift_right", self, other)

    def __rrshift__(self, other: Operand) -> Array:
        return binary("shift_right", self, other, True)

    def __pos__(self) -> Array:
        return wrap(self._x, self._device)

    def __abs__(self) -> Array:
        return self._unary("abs")

    def __invert__(self) -> Array:
        return wrap(self._x.unary("bitwise_not"), self._device)

    # Those in place keep the array's dtype and shape.

    def _become(self, result: Any) -> Array:
        if result is NotImplemented:
            return NotImplemented  # type: ignore[no-any-return]
        if result.shape != self.shape:
            raise ValueError(f"the result has the shape {result.shape}, but the array's is {self.shape}")
        if result.dtype is not self.dtype:
            if not _same_kind(result.dtype, self.dtype):
                raise TypeError(f"the result is {result.dtype}, but the array is {self.dtype} (x = x.astype, or x[...] = result)")
            result = result.astype(self.dtype)
        self._x = result._x
        return self

    def __iadd__(self, other: Operand) -> Array:
        return self._become(self + other)

    def __isub__(self, other: Operand) -> Array:
        return self._become(self - other)

    def __imul__(self, other: Operand) -> Array:
        return self._become(self * other)

    def __itruediv__(self, other: Operand) -> Array:
        return self._become(self / other)

    def __ifloordiv__(self, other: Operand) -> Array:
        return self._become(self // other)

    def __imod__(self, other: Operand) -> Array:
        return self._become(self % other)

    def __ipow__(self, other: Operand) -> Array:
        return self._become(self**other)

    def __iand__(self, other: Operand) -> Array:
        return self._become(self & other)

    def __ior__(self, other: Operand) -> Array:
        return self._become(self | other)

    def __ixor__(self, other: Operand) -> Array:
        return self._become(self ^ other)

    def __ilshift__(self, other: Operand) -> Array:
        return self._become(self << other)

    def __irshift__(self, other: Operand) -> Array:
        return self._become(self >> other)

    def __imatmul__(self, other: Operand) -> Array:
        return self._become(self @ other)  # type: ignore[operator]

    # Parts.

    def _update(self, key: Any, value: Any) -> None:
        """Writes to a part what the core does not write on the host."""
        from ._indexing import updated

        self._x = updated(self, key, value)._x

    def wgsl(self) -> str:
        """The WGSL of the kernel that computes it.

        >>> import cantus
        >>> "@compute" in (cantus.ones(2) + 1).wgsl()
        True
        """
        return self._x.wgsl()

    def show(self, colormap: str = "viridis", scale: int | None = None) -> Any:
        """Renders an array of two axes as a picture, for notebooks (with matplotlib's colour maps if it is installed, else in grey).

        >>> import cantus
        >>> cantus.ones((2, 2)).show()
        <picture of 256 x 256>
        """
        from ._show import picture

        return picture(self, colormap, scale)


def _stream(driver: tuple[int, int, int], stream: int | None) -> int | None:
    """The stream that waits for an array, by DLPack's rule; None if none does."""
    is_cuda = driver[0] == 2
    if stream is None:
        # The driver's default stream.
        return 1 if is_cuda else 0
    if stream == -1:
        return None
    if stream < 0 or (stream == 0 if is_cuda else stream in (1, 2)):
        raise BufferError(f"{stream} is no stream of {'CUDA' if is_cuda else 'ROCm'} by DLPack")
    return stream


class _Bytes:
    """An array's memory for NumPy, which keeps this and so the array."""

    def __init__(self, x: _core.Lazy, nbytes: int) -> None:
        self.x = x
        self.__array_interface__ = {"data": (x.address(), True), "shape": (nbytes,), "typestr": "|u1", "version": 3}

    def seen(self) -> Any:
        return np.asarray(self)


class _Capsule:
    """The object that NumPy asks for a capsule."""

    __slots__ = ("capsule",)

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


# The array of what the core recorded, on a device.
wrap: Callable[[_core.Lazy, Device], Array] = _core.wrap
# The array of what a function records when the array is asked for.
late: Callable[[Callable[[], _core.Lazy], Device], Array] = _core.late


def _general(op: str, x: Array, y: Any, reflected: bool) -> Any:
    """An operator of `_core.Handle` that is not plain."""
    if op == "part":
        from ._indexing import read

        return read(x, y)
    if op == "T":
        raise AttributeError(f"T is for two axes, and this array has {x.ndim} (use mT or permute_dims)")
    if op == "matmul":
        return matmul(x, y) if isinstance(y, Array) else NotImplemented
    return divided(x, y, reflected) if op == "div" else binary(op, x, y, reflected)


_core.extended(Array, _dtypes.BY_CORE, _general)


def address_of(array: Any) -> int:
    """The address of a NumPy array's first element."""
    return array.__array_interface__["data"][0]  # type: ignore[no-any-return]


def from_bytes(dtype: DType, shape: tuple[int, ...], contents: Any, device: Device) -> Array:
    """Elements from a buffer: in place where the device computes in the host's memory and the buffer begins at a multiple of 16 bytes."""
    flat = np.frombuffer(contents, np.uint8) if len(contents) else np.empty(0, np.uint8)
    arguments = (dtype.core, list(shape), address_of(flat), flat.nbytes)
    if flat.nbytes and device.is_host:
        return wrap(device.engine.adopted(*arguments, flat), device)
    return wrap(device.engine.copied(*arguments), device)


def _unpickled(dtype: str, shape: tuple[int, ...], contents: Any, device: str) -> Array:
    # Where a process has a device of its own, all that comes to it is there; and another machine may not have the one it comes from.
    target = _devices.default()
    if "CANTUS_DEVICE" not in os.environ:
        try:
            target = _devices.device(device)
        except RuntimeError:
            pass
    return from_bytes(_dtypes.of(dtype), shape, memoryview(contents), target)


def call(x: Array, name: str, others: Any = (), ints: Any = (), floats: Any = ()) -> Array:
    """The first result of an operation of the core's."""
    return x._call(name, others, ints, floats)


def calls(x: Array, name: str, others: Any = (), ints: Any = (), floats: Any = ()) -> list[Array]:
    """All results of an operation of the core's."""
    results = x._x.call(name, [other._x for other in others], list(ints), list(floats))
    return [wrap(result, x._device) for result in results]


def filled(shape: Any, value: Any, dtype: DType, device: Device) -> Array:
    """Creates an array filled with one value."""
    sides = list(shape)
    if dtype.kind in _WORD:
        _fits(value, dtype)
    if isinstance(value, complex) or dtype.kind == "c" or (dtype.itemsize == 8 and isinstance(value, int) and abs(value) > 2**53):
        one = np.asarray(value, dtype.numpy)
        array = wrap(device.engine.copied(dtype.core, [], address_of(one), one.nbytes), device)
        return call(array, "broadcast_to", ints=sides)
    return wrap(device.engine.make("full", sides, [float(value)], dtype.core), device)


def scalar_dtype(value: Any, dtype: DType, device: Device) -> DType:
    """The dtype of a Python number in an operation with an array: the array's, where its kind has such numbers, else NumPy's."""
    if isinstance(value, bool):
        return dtype
    if isinstance(value, int):
        if dtype.kind != "b":
            return dtype
        return _dtypes.int64 if device.has(_dtypes.int64) else _dtypes.int32
    if dtype.kind in "iub":
        dtype = _dtypes.float64 if device.has(_dtypes.float64) else _dtypes.float32
    return _dtypes.complex_of(dtype) if isinstance(value, complex) else dtype


def number(value: Any, beside: Array) -> Array:
    """Converts a Python number to an array that meets another."""
    dtype = scalar_dtype(value, beside.dtype, beside._device)
    return filled((), value, dtype, beside._device)


def common(*arrays: Array) -> DType:
    """The dtype of an operation on arrays. Where the device has no float64, integers beside floats are float32."""
    first = arrays[0]
    found = first.dtype
    for other in arrays[1:]:
        found = _dtypes.promote(found, other.dtype)
    if found in (_dtypes.float64, _dtypes.complex128) and not first._device.has(found):
        return _dtypes.float32 if found is _dtypes.float64 else _dtypes.complex64
    return found


def _same_kind(source: DType, to: DType) -> bool:
    """NumPy's rule for casts in place."""
    return source.kind == to.kind or "buifc".index(source.kind) < "buifc".index(to.kind)


def _holds(value: int, dtype: DType) -> bool:
    bits = 8 * dtype.itemsize
    low, high = (0, 2**bits) if dtype.kind == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    return bool(low <= value < high)


def _fits(value: Any, dtype: DType) -> None:
    if isinstance(value, int) and not _holds(value, dtype):
        raise OverflowError(f"{value} is not a {dtype}")


# Comparisons: the first two are true of all that a greater number is compared with.
_ORDERED = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")


def binary(op: str, x: Array, y: Any, reflected: bool = False) -> Array:
    """A function of two arrays, or of an array and a number."""
    kind = type(y)
    if kind is Array:
        a, b = x._x, y._x
        result = a.combined(op, b)
        if result is None:
            dtype = common(x, y).core
            result = a.cast(dtype).binary(op, b.cast(dtype))
        return wrap(result, x._device)
    if (kind is float or kind is int) and x._kind in _PLAIN[kind] and (kind is float or -1000 <= y <= 1000):
        if y >= 0 or kind is float or x._kind[0] != "u":
            try:
                return wrap(x._x.binary_number(op, y, reflected), x._device)
            except ValueError as error:
                raise OverflowError(str(error)) from None
    if kind in (int, float, complex, bool):
        if kind is int and op in _ORDERED and x.dtype.kind in "iu" and not _holds(y, x.dtype):
            # A number beyond the dtype is greater or less than all of its numbers.
            above = (y > 0) != reflected
            return filled(x.shape, op == "not_equal" or op in (_ORDERED[:2] if above else _ORDERED[2:4]), _dtypes.bool_, x._device)
        other = number(y, x)
        return binary(op, other, x) if reflected else binary(op, x, other)
    if isinstance(y, np.generic | np.ndarray):
        x, other = beside_numpys(x, y)
        return binary(op, other, x) if reflected else binary(op, x, other)
    return NotImplemented  # type: ignore[no-any-return]


def beside_numpys(x: Array, y: Any) -> tuple[Array, Array]:
    """An array and one of NumPy's, of the dtype that NumPy gives what is computed from them; a device without float64 has float32 instead."""
    from . import _api

    if x.dtype is _dtypes.bfloat16:
        return x, _api.asarray(y, device=x._device)
    dtype = _dtypes.of(np.result_type(x.dtype.numpy, y.dtype))
    if dtype is _dtypes.float64 and not x._device.has(dtype):
        dtype = _dtypes.float32
    return x.astype(dtype, copy=False), _api.asarray(y, dtype=dtype, device=x._device)


# Dtypes beside which a number of Python's needs no thought.
_PLAIN = {
    float: {"f32", "f64", "f16", "bf16"},
    int: {"f32", "f64", "f16", "bf16", "i32", "i64", "u32", "u64", "i16", "u16"},
}


def _both(x: Array, y: Any, reflected: bool) -> tuple[Array, Array] | None:
    if isinstance(y, np.generic | np.ndarray):
        x, y = beside_numpys(x, y)
    if isinstance(y, bool | int | float | complex):
        y = number(y, x)
    if not isinstance(y, Array):
        return None
    return (y, x) if reflected else (x, y)


def divided(x: Array, y: Any, reflected: bool = False) -> Array:
    """x / y; integers become floats."""
    if x._kind not in _PLAIN[float] and x.dtype.kind in "iub":
        floating = _dtypes.float64 if x._device.has(_dtypes.float64) else _dtypes.float32
        x = x.astype(floating)
        if isinstance(y, Array) and y.dtype.kind in "iub":
            y = y.astype(floating)
        if isinstance(y, bool | int):
            y = float(y)
    return binary("div", x, y, reflected)


def floor_divided(x: Array, y: Any, reflected: bool = False) -> Array:
    """x // y: exact, and where that says nothing (of infinities, and of -0) the quotient rounded down."""
    both = _both(x, y, reflected)
    if both is None:
        return NotImplemented  # type: ignore[no-any-return]
    dtype = common(*both)
    if dtype.kind == "b":
        raise TypeError("division needs numbers, not bool (cast first: x.astype)")
    a, b = (side._x.cast(dtype.core) for side in both)
    exact = a.binary("floor_divide", b)
    if dtype.kind != "f":
        return wrap(exact, x._device)
    special = a.unary("is_infinite").binary("logical_or", b.unary("is_infinite"))
    special = special.binary("logical_or", a.binary_number("equal", 0.0, False))
    return wrap(special.call("select", [a.binary("div", b).unary("floor"), exact], [], [])[0], x._device)


def power(x: Array, y: Any, reflected: bool = False) -> Array:
    """x ** y, of one dtype."""
    if not reflected and type(y) is int and y == 2 and x.dtype.kind in "iufc":
        return wrap(x._x.unary("square"), x._device)
    both = _both(x, y, reflected)
    if both is None:
        return NotImplemented  # type: ignore[no-any-return]
    dtype = common(*both)
    if dtype.kind == "b":
        raise TypeError("powers need numbers, not bool (cast first: x.astype)")
    if dtype.kind in _WORD and both[1].dtype.kind == "i":
        least = y if type(y) is int and not reflected else (both[1]._x.extent() or (0,))[0]
        if least < 0:
            raise ValueError(f"an integer to the power of {least} is no integer (cast to a float first: x.astype)")
    wide = dtype.core
    if dtype.itemsize < 4 and dtype.kind in _WORD:
        # Wraps as the narrow one does.
        wide = "i32" if dtype.kind == "i" else "u32"
    base, exponent = (side._x.cast(wide) for side in both)
    result = base.binary("pow", exponent)
    return wrap(result if wide == dtype.core else result.cast(dtype.core), x._device)


def matmul(x: Array, y: Array) -> Array:
    """The matrix product."""
    a, b = x._x, y._x
    result = a.product(b)
    if result is None:
        dtype = common(x, y)
        if dtype.kind == "b":
            raise TypeError("matrix products need numbers, not bool (cast first: x.astype)")
        result = a.cast(dtype.core).matmul(b.cast(dtype.core))
    return wrap(result, x._device)


def as_index(value: Any) -> int:
    """A whole number."""
    return operator.index(value)
