"""Random numbers of keys: Philox 4x32-10 by place, the same on every device. There is no hidden state.

>>> import cantus
>>> key = cantus.random.key(7)
>>> bool(cantus.all(cantus.random.normal(key, (3,)) == cantus.random.normal(key, (3,))))
True
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _api, _arguments, _devices, _dtypes
from ._array import Array, call, wrap

_MASK = (1 << 64) - 1


class Key:
    """64 bits that select a sequence of random numbers."""

    __slots__ = ("bits",)

    def __init__(self, bits: int) -> None:
        self.bits = bits & _MASK

    def __repr__(self) -> str:
        return f"Key({self.bits:#018x})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and self.bits == other.bits

    def __hash__(self) -> int:
        return hash(self.bits)

    @property
    def seed(self) -> int:
        """As the core takes it."""
        return self.bits - (1 << 64) if self.bits >= 1 << 63 else self.bits


def _mixed(bits: int) -> int:
    """Steele, Lea and Flood, 2014: SplitMix64's finaliser, by which neighbours become strangers."""
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & _MASK
    return bits ^ (bits >> 31)


def key(seed: int) -> Key:
    """Creates a key from a seed.

    >>> import cantus
    >>> cantus.random.key(7) == cantus.random.key(7)
    True
    """
    return Key(_mixed((seed + 0x9E3779B97F4A7C15) & _MASK))


def split(key: Key, count: int = 2) -> list[Key]:
    """Derives independent keys from one.

    >>> import cantus
    >>> len(cantus.random.split(cantus.random.key(7)))
    2
    """
    return [Key(_mixed((key.bits + (place + 1) * 0x9E3779B97F4A7C15) & _MASK)) for place in range(count)]


def _made(name: str, key: Key, shape: Any, device: Any, dtype: str) -> Array:
    if not isinstance(key, Key):
        raise TypeError(f"random numbers come from a key (cantus.random.key({key!r})), not from {type(key).__name__}")
    target = _devices.device(device)
    sides = [shape] if isinstance(shape, int) else list(shape)
    return wrap(target.engine.make(name, [key.seed, *sides], [], dtype), target)


def uniform(key: Key, shape: Any = (), low: float = 0.0, high: float = 1.0, *, device: Any = None) -> Array:
    """float32 uniform in [low, high).

    >>> import cantus
    >>> cantus.random.uniform(cantus.random.key(7), (2, 3)).shape
    (2, 3)
    """
    numbers = _made("rand", key, shape, device, "f32")
    if (low, high) == (0.0, 1.0):
        return numbers
    least, most = _within(float(low), float(high))
    width = high - low
    spread = numbers * float(width) + float(low) if width < 2.0**127 else numbers * float(high) + (1.0 - numbers) * float(low)
    # Sums are rounded, and may come to the end.
    return _api.clip(spread, least, most)


def _within(low: float, high: float) -> tuple[float, float]:
    """The least and the greatest float32 from low up to high, without high."""
    with np.errstate(over="ignore"):
        least, most = np.float32(low), np.float32(high)
    if least < low:
        least = np.nextafter(least, np.float32(np.inf))
    if most >= high:
        most = np.nextafter(most, np.float32(-np.inf))
    if not least <= most:
        raise ValueError(f"no float32 lies between {low} and {high}")
    return float(least), float(most)


def normal(key: Key, shape: Any = (), mean: float = 0.0, deviation: float = 1.0, *, device: Any = None) -> Array:
    """float32 of the normal distribution.

    >>> import cantus
    >>> cantus.random.normal(cantus.random.key(7), (2, 3)).shape
    (2, 3)
    """
    numbers = _made("randn", key, shape, device, "f32")
    return numbers if (mean, deviation) == (0.0, 1.0) else numbers * float(deviation) + float(mean)


def bits(key: Key, shape: Any = (), *, device: Any = None) -> Array:
    """uint32 of random bits.

    >>> import cantus
    >>> cantus.random.bits(cantus.random.key(7), 4).dtype
    cantus.uint32
    """
    return _made("bits", key, shape, device, "u32")


def integers(key: Key, low: int, high: int, shape: Any = (), *, device: Any = None) -> Array:
    """int32 uniform in [low, high), off by at most (high - low) / 2^32.

    >>> import cantus
    >>> bool(cantus.all(cantus.random.integers(cantus.random.key(7), 0, 6, 100) < 6))
    True
    """
    if not 0 < high - low <= 1 << 31 or low < -(1 << 31) or high > 1 << 31:
        raise ValueError(f"no int32 lies between {low} and {high}")
    drawn = bits(key, shape, device=device)
    return (drawn % (high - low)).astype(_dtypes.int32) + low


def permutation(key: Key, n: int, *, device: Any = None) -> Array:
    """0 to n - 1 in a random order.

    >>> import cantus
    >>> sorted(cantus.random.permutation(cantus.random.key(7), 4).tolist())
    [0, 1, 2, 3]
    """
    return _api.argsort(bits(key, (n,), device=device))


def choice(key: Key, x: Array, count: int) -> Array:
    """Elements along the first axis, drawn independently.

    >>> import cantus
    >>> cantus.random.choice(cantus.random.key(7), cantus.arange(10), 3).shape
    (3,)
    """
    return call(x, "take", [integers(key, 0, x.shape[0], (count,), device=x._device)], [0])


_arguments.enter(globals(), "random.")
