"""The methods of NumPy's arrays that programs use beside the standard's functions. Each is the function of its name."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._array import Array


@functools.cache
def _protocol() -> Any:
    """NumPy's protocol, which is imported when it is first needed."""
    from . import _numpy

    return _numpy


class Methods:
    """The methods of `Array` besides the standard's attributes."""

    __slots__ = ()

    def _numpy(self, name: str, *arguments: Any, **keywords: Any) -> Array:
        """Calls the NumPy function of that name; arguments that it does not support are an error."""
        protocol = _protocol()
        found: Array = protocol.function(getattr(protocol.np, name), (self, *arguments), keywords)
        return found

    def _folded(self, name: str, keepdims: Any, out: Any, others: dict[str, Any], **keywords: Any) -> Array:
        """A reduction; where nothing but axes and a dtype is asked for, without NumPy's rules for arguments."""
        if out is not None or others:
            return self._numpy(name, out=out, keepdims=keepdims, **keywords, **others)
        found: Array = _protocol().FUNCTIONS[name](self, keepdims=keepdims, **keywords)
        return found

    def _plain(self, name: str, *arguments: Any) -> Array:
        """Calls a function whose arguments are in NumPy's order."""
        found: Array = _protocol().FUNCTIONS[name](self, *arguments)
        return found

    def __array_ufunc__(self, of: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        return _protocol().ufunc(self, of, method, inputs, keywords)

    def __array_function__(self, of: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        protocol = _protocol()
        for kind in types:
            if not issubclass(kind, (protocol.Array, protocol.np.ndarray)):
                return NotImplemented
        return protocol.function(of, arguments, dict(keywords))

    def reshape(self, *shape: Any, **keywords: Any) -> Array:
        """Changes the shape; one length may be -1.

        >>> import cantus
        >>> cantus.arange(4).reshape(2, 2).shape
        (2, 2)
        """
        whole = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
        return self._numpy("reshape", tuple(whole), **keywords) if keywords else self._plain("reshape", tuple(whole))

    def transpose(self, *axes: Any) -> Array:
        """Reorders the axes; reverses them without an order.

        >>> import cantus
        >>> cantus.asarray([[1.0, 2.0], [3.0, 4.0]]).transpose()
        array([[1., 3.],
               [2., 4.]], dtype=float32)
        """
        chosen = axes[0] if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], tuple | list)) else axes or None
        return self._plain("transpose", chosen)

    def swapaxes(self, axis1: int, axis2: int) -> Array:
        """Exchanges two axes.

        >>> import cantus
        >>> cantus.asarray([[1.0, 2.0], [3.0, 4.0]]).swapaxes(0, 1)
        array([[1., 3.],
               [2., 4.]], dtype=float32)
        """
        return self._plain("swapaxes", axis1, axis2)

    def ravel(self, order: str = "C") -> Array:
        """Flattens to one axis.

        >>> import cantus
        >>> cantus.asarray([[1.0, 2.0], [3.0, 4.0]]).ravel()
        array([1., 2., 3., 4.], dtype=float32)
        """
        return self._plain("ravel", order)

    flatten = ravel

    def squeeze(self, axis: Any = None) -> Array:
        """Removes axes of length 1.

        >>> import cantus
        >>> cantus.asarray([[1.0, 2.0], [3.0, 4.0]]).squeeze().shape
        (2, 2)
        """
        return self._plain("squeeze", axis)

    def copy(self, order: str = "C") -> Array:
        """Returns a copy.

        >>> import cantus
        >>> cantus.asarray([[1.0, 2.0], [3.0, 4.0]]).copy()
        array([[1., 2.],
               [3., 4.]], dtype=float32)
        """
        return self._plain("copy", order)

    def conj(self) -> Array:
        """Returns the complex conjugates.

        >>> import cantus
        >>> cantus.asarray([[1.0, 2.0], [3.0, 4.0]]).conj()
        array([[1., 2.],
               [3., 4.]], dtype=float32)
        """
        from ._api import conj

        return conj(self) if self.dtype.kind == "c" else self  # type: ignore[arg-type,attr-defined,return-value]

    def round(self, decimals: int = 0, out: Any = None) -> Array:
        """Rounds, half to even.

        >>> import cantus
        >>> cantus.asarray([[1.0, 2.0], [3.0, 4.0]]).round()
        array([[1., 2.],
               [3., 4.]], dtype=float32)
        """
        return self._plain("round", decimals) if out is None else self._numpy("round", decimals, out=out)

    def clip(self, min: Any = None, max: Any = None, out: Any = None, **others: Any) -> Array:
        """Limits the elements to a range.

        >>> import cantus
        >>> cantus.asarray([[1.0, 2.0], [3.0, 4.0]]).clip(2, 3)
        array([[2., 2.],
               [3., 3.]], dtype=float32)
        """
        return self._numpy("clip", min, max, out=out, **others)

    def dot(self, other: Any, out: Any = None) -> Array:
        """Returns the product with another array.

        >>> import cantus
        >>> cantus.asarray([[1.0, 2.0], [3.0, 4.0]]).dot(cantus.asarray([[1.0, 2.0], [3.0, 4.0]]))
        array([[ 7., 10.],
               [15., 22.]], dtype=float32)
        """
        return self._plain("dot", other) if out is None else self._numpy("dot", other, out=out)

    def take(self, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise") -> Array:
        """Returns the elements at places.

        >>> import cantus
        >>> cantus.asarray([[1.0, 2.0], [3.0, 4.0]]).take([0, 3])
        array([1., 4.], dtype=float32)
        """
        return self._plain("take", indices, axis, mode) if out is None else self._numpy("take", indices, axis, out=out, mode=mode)

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, **others: Any) -> Array:
        """See `cantus.sum`.

        >>> import cantus
        >>> cantus.ones((2, 3)).sum(axis=0)
        array([2., 2., 2.], dtype=float32)
        """
        return self._folded("sum", keepdims, out, others, axis=axis, dtype=dtype)

    def prod(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, **others: Any) -> Array:
        """See `cantus.prod`.

        >>> import cantus
        >>> cantus.asarray([[1.0, 2.0], [3.0, 4.0]]).prod()
        array(24., dtype=float32)
        """
        return self._folded("prod", keepdims, out, others, axis=axis, dtype=dtype)

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, **others: Any) -> Array:
        """See `cantus.mean`.

        >>> import cantus
        >>> cantus.asarray([[1.0, 2.0], [3.0, 4.0]]).mean(axis=0)
        array([2., 3.], dtype=float32)
        """
        return self._folded("mean", keepdims, out, others, axis=axis, dtype=dtype)

    def var(
        self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: bool = False, **others: Any
    ) -> Array:
        """See `cantus.var`; `ddof` is its correction.

        >>> import cantus
        >>> cantus.asarray([[1.0, 2.0], [3.0, 4.0]]).var(ddof=1)
        array(1.6666666, dtype=float32)
        """
        return self._folded("var", keepdims, out, others, axis=axis, dtype=dtype, ddof=ddof)

    def std(
        self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: bool = False, **others: Any
    ) -> Array:
        """See `cantus.std`; `ddof` is its correction.

        >>> import cantus
        >>> cantus.asarray([[1.0, 2.0], [3.0, 4.0]]).std()
        array(1.118034, dtype=float32)
        """
        return self._folded("std", keepdims, out, others, axis=axis, dtype=dtype, ddof=ddof)

    def max(self, axis: Any = None, out: Any = None, keepdims: bool = False, **others: Any) -> Array:
        """See `cantus.max`.

        >>> import cantus
        >>> cantus.asarray([[1.0, 2.0], [3.0, 4.0]]).max(axis=1)
        array([2., 4.], dtype=float32)
        """
        return self._folded("max", keepdims, out, others, axis=axis)

    def min(self, axis: Any = None, out: Any = None, keepdims: bool = False, **others: Any) -> Array:
        """See `cantus.min`.

        >>> import cantus
        >>> cantus.asarray([[1.0, 2.0], [3.0, 4.0]]).min()
        array(1., dtype=float32)
        """
        return self._folded("min", keepdims, out, others, axis=axis)

    def argmax(self, axis: int | None = None, out: Any = None, *, keepdims: bool = False) -> Array:
        """See `cantus.argmax`.

        >>> import cantus
        >>> cantus.asarray([[1.0, 2.0], [3.0, 4.0]]).argmax(axis=1)
        array([1, 1])
        """
        return self._folded("argmax", keepdims, out, {}, axis=axis)

    def argmin(self, axis: int | None = None, out: Any = None, *, keepdims: bool = False) -> Array:
        """See `cantus.argmin`.

        >>> import cantus
        >>> cantus.asarray([[1.0, 2.0], [3.0, 4.0]]).argmin()
        array(0)
        """
        return self._folded("argmin", keepdims, out, {}, axis=axis)

    def any(self, axis: Any = None, out: Any = None, keepdims: bool = False, **others: Any) -> Array:
        """See `cantus.any`.

        >>> import cantus
        >>> cantus.asarray([[1.0, 2.0], [3.0, 4.0]]).any()
        array(True)
        """
        return self._folded("any", keepdims, out, others, axis=axis)

    def all(self, axis: Any = None, out: Any = None, keepdims: bool = False, **others: Any) -> Array:
        """See `cantus.all`.

        >>> import cantus
        >>> cantus.asarray([[1.0, 2.0], [3.0, 4.0]]).all(axis=0)
        array([ True,  True])
        """
        return self._folded("all", keepdims, out, others, axis=axis)

    def cumsum(self, axis: int | None = None, dtype: Any = None, out: Any = None) -> Array:
        """The sum of each element and those before it.

        >>> import cantus
        >>> cantus.asarray([[1.0, 2.0], [3.0, 4.0]]).cumsum(axis=1)
        array([[1., 3.],
               [3., 7.]], dtype=float32)
        """
        return self._plain("cumsum", axis, dtype) if out is None else self._numpy("cumsum", axis, dtype, out=out)

    def cumprod(self, axis: int | None = None, dtype: Any = None, out: Any = None) -> Array:
        """The product of each element and those before it.

        >>> import cantus
        >>> cantus.asarray([1.0, 2.0, 3.0]).cumprod()
        array([1., 2., 6.], dtype=float32)
        """
        return self._plain("cumprod", axis, dtype) if out is None else self._numpy("cumprod", axis, dtype, out=out)

    def nonzero(self) -> tuple[Array, ...]:
        """The places of elements that are not 0, an array for each axis.

        >>> import cantus
        >>> cantus.asarray([0.0, 2.0, 3.0]).nonzero()[0]
        array([1, 2])
        """
        return tuple(self._plain("nonzero"))

    def repeat(self, repeats: Any, axis: int | None = None) -> Array:
        """Repeats each element.

        >>> import cantus
        >>> cantus.asarray([1.0, 2.0]).repeat(2)
        array([1., 1., 2., 2.], dtype=float32)
        """
        return self._plain("repeat", repeats, axis)

    def fill(self, value: Any) -> None:
        """Fills this array with one value.

        >>> import cantus
        >>> x = cantus.zeros(2)
        >>> x.fill(3)
        >>> x
        array([3., 3.], dtype=float32)
        """
        self[...] = value  # type: ignore[index]

    def sort(self, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
        """Sorts this array along an axis.

        >>> import cantus
        >>> x = cantus.asarray([2.0, 1.0])
        >>> x.sort()
        >>> x
        array([1., 2.], dtype=float32)
        """
        if order is not None:
            raise TypeError("sort of Cantus's arrays takes no order")
        self._become(self._numpy("sort", axis, kind, stable=stable))  # type: ignore[attr-defined]

    def argsort(self, axis: int | None = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Array:
        """Returns the places that sort the elements.

        >>> import cantus
        >>> cantus.asarray([2.0, 1.0]).argsort()
        array([1, 0])
        """
        return self._numpy("argsort", axis, kind, order, stable=stable)

    def searchsorted(self, v: Any, side: str = "left", sorter: Any = None) -> Array:
        """Returns the places that keep this sorted line in order when the elements are inserted.

        >>> import cantus
        >>> cantus.asarray([1.0, 2.0, 3.0]).searchsorted(2.5)
        array(2)
        """
        return self._numpy("searchsorted", v, side, sorter)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
        """The diagonal along two axes.

        >>> import cantus
        >>> cantus.asarray([[1.0, 2.0], [3.0, 4.0]]).diagonal()
        array([1., 4.], dtype=float32)
        """
        return self._numpy("diagonal", offset, axis1, axis2)

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Array:
        """The sum of the diagonal.

        >>> import cantus
        >>> cantus.asarray([[1.0, 2.0], [3.0, 4.0]]).trace()
        array(5., dtype=float32)
        """
        return self._numpy("trace", offset, axis1, axis2, dtype, out=out)

    def compress(self, condition: Any, axis: int | None = None, out: Any = None) -> Array:
        """The parts along an axis for which a condition is true.

        >>> import cantus
        >>> cantus.asarray([1.0, 2.0, 3.0]).compress(cantus.asarray([True, False, True]))
        array([1., 3.], dtype=float32)
        """
        protocol = _protocol()
        found: Array = protocol.function(protocol.np.compress, (condition, self, axis), {"out": out})
        return found

    def conjugate(self) -> Array:
        """Returns the complex conjugates, as `conj` does.

        >>> import cantus
        >>> cantus.asarray([1 + 2j]).conjugate()
        array([1.-2.j], dtype=complex64)
        """
        return self.conj()

    def put(self, indices: Any, values: Any, mode: str = "raise") -> None:
        """Writes elements at places of the flattened array.

        >>> import cantus
        >>> x = cantus.zeros(3)
        >>> x.put([0, 2], [1.0, 2.0])
        >>> x
        array([1., 0., 2.], dtype=float32)
        """
        self._numpy("put", indices, values, mode)
