"""Data larger than memory, chunk by chunk: while one is computed, the next is read and the one before is written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from . import _core, _devices, _dtypes
from ._array import Array, wrap

Source = str | os.PathLike[str] | np.ndarray[Any, Any] | Iterable[Any]

# Bytes of an array in memory that are handed over at a time.
_BLOCK = 4 << 20


class Chunk(NamedTuple):
    """Some rows of a stream, on its device."""

    first_row: int
    """The number of its first row."""
    rows: int
    """How many rows it has, without those that overlap."""
    before: int
    """How many rows of the chunk before come first in the arrays."""
    after: int
    """How many rows of the chunk after come last."""
    arrays: tuple[Array, ...]
    """The same rows of each source."""

    @property
    def array(self) -> Array:
        """The rows of the first source."""
        return self.arrays[0]


@dataclass(frozen=True)
class Summary:
    """Statistics of all elements of a stream; sums are float64, those of whole numbers exact."""

    count: int
    sum: float
    mean: float
    var: float
    min: float
    max: float


class Stream:
    """Rows for a computation chunk by chunk. One of its methods, or one loop, consumes them.

    `sources` are `.npy` files, NumPy arrays (memory maps among them), or iterables of arrays of whole rows. `memory` is how many bytes the stream
    may take (1 GiB by default), `chunk_rows` how many rows a chunk has at most, `overlap` how many rows of the chunks before and after it has as
    well, for stencils. With a `checkpoint`, a file, work that was interrupted goes on where it was, if it is the same: the same sources, chunks and
    operation. A `map` with a checkpoint needs a `name`, which says all that its function depends on: functions cannot be compared. Rows of arrays and
    iterables are compared with those of the earlier run as they are read again.

    >>> import cantus, numpy as np
    >>> x = np.arange(1_000_000, dtype="i4").reshape(1000, 1000)
    >>> cantus.Stream(x).sum()
    499999500000.0
    >>> sum(float(cantus.sum(chunk.array[:, 0])) for chunk in cantus.Stream(x, chunk_rows=300))
    499500000.0
    """

    def __init__(
        self,
        *sources: Source,
        memory: int | None = None,
        chunk_rows: int | None = None,
        overlap: tuple[int, int] = (0, 0),
        checkpoint: str | os.PathLike[str] | None = None,
        name: str | None = None,
        device: Any = None,
    ) -> None:
        self._device = _devices.device(device)
        given = [_source(source) for source in sources]
        self._stream = _core.Stream(self._device.engine, given, memory, chunk_rows, overlap, checkpoint, name)

    def __iter__(self) -> Iterator[Chunk]:
        while (found := self._stream.next()) is not None:
            yield self._chunk(*found)

    def _chunk(self, first: int, rows: int, before: int, after: int, arrays: list[_core.Lazy]) -> Chunk:
        return Chunk(first, rows, before, after, tuple(wrap(array, self._device) for array in arrays))

    def sum(self) -> float:
        """The sum of all elements."""
        return self._stream.measure("sum")

    def mean(self) -> float:
        """The mean of all elements."""
        return self._stream.measure("mean")

    def min(self) -> float:
        """The least element; NaN where one is."""
        return self._stream.measure("min")

    def max(self) -> float:
        """The greatest element; NaN where one is."""
        return self._stream.measure("max")

    def summary(self) -> Summary:
        """Returns count, sum, mean, variance, least and greatest element after one reading.

        >>> import cantus, numpy as np
        >>> cantus.Stream(np.tile(np.arange(4, dtype="i4"), 1000)).summary()
        Summary(count=4000, sum=6000.0, mean=1.5, var=1.25, min=0.0, max=3.0)
        """
        return Summary(*self._stream.summary())

    def histogram(self, bins: int, low: float, high: float) -> np.ndarray[Any, Any]:
        """Counts the elements in each of `bins` parts of low..high.

        >>> import cantus, numpy as np
        >>> cantus.Stream(np.arange(1000, dtype="f4")).histogram(4, 0, 1000)
        array([250, 250, 250, 250], dtype=uint64)
        """
        return np.array(self._stream.histogram(bins, low, high), dtype=np.uint64)

    def map(self, work: Callable[[Chunk], Array], path: str | os.PathLike[str]) -> None:
        """Writes the result of `work` on each chunk to a `.npy` file: as many rows as the chunk has, or with the overlapping ones, which are cut off.

        >>> import cantus, numpy as np, os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "roots.npy")
        >>> cantus.Stream(np.arange(10_000, dtype="f4")).map(lambda chunk: cantus.sqrt(chunk.array), path)
        >>> float(np.load(path, mmap_mode="r")[9801])
        99.0
        """

        def called(*found: Any) -> _core.Lazy:
            made = work(self._chunk(*found))
            if not isinstance(made, Array):
                raise TypeError(f"a stream's work returns an array of cantus', not {type(made).__name__}")
            return made._x

        self._stream.map(called, path)

    def sort(self, path: str | os.PathLike[str]) -> None:
        """Writes the elements in ascending order, NaN last, to a `.npy` file. The rows have to be single elements. Sorted runs lie beside the
        file meanwhile.

        >>> import cantus, numpy as np, os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "sorted.npy")
        >>> cantus.Stream(np.arange(10_000, dtype="i4")[::-1], chunk_rows=999).sort(path)
        >>> bool((np.load(path) == np.arange(10_000)).all())
        True
        """
        folder = os.path.dirname(os.fspath(path)) or "."
        self._stream.sort(folder, path)


def _source(source: Source) -> Any:
    if isinstance(source, (str, os.PathLike)):
        return source
    if isinstance(source, np.ndarray):
        if source.ndim == 0:
            raise ValueError("a stream consists of rows, but the array has no axis")
        rows = max(1, _BLOCK // max(1, source[:1].nbytes))
        blocks = (source[first : first + rows] for first in range(0, len(source), rows))
        return _bytes(blocks, source.dtype, source.shape[1:]), _name(source.dtype), list(source.shape[1:])
    items = iter(source)
    try:
        first = np.asarray(next(items))
    except StopIteration:
        raise ValueError("the iterable is empty: the shape of its rows is unknown") from None
    if first.ndim == 0:
        raise ValueError("an item of the iterable has no axis: give arrays of rows")

    def all_of_them() -> Iterator[Any]:
        yield first
        yield from items

    return _bytes(all_of_them(), first.dtype, first.shape[1:]), _name(first.dtype), list(first.shape[1:])


def _name(dtype: Any) -> str:
    return _dtypes.of(dtype).core


def _bytes(items: Iterable[Any], dtype: Any, row: tuple[int, ...]) -> Iterator[bytes]:
    for item in items:
        array = np.asarray(item)
        if array.dtype != dtype or array.shape[1:] != row:
            raise ValueError(f"an item has rows {array.dtype}{list(array.shape[1:])}, and the first one {dtype}{list(row)}")
        yield array.tobytes()
