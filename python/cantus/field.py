"""The field family: a damped spiral wave, the golden-ratio spiral, and the coherence of a field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from . import _core, _devices
from ._array import Array, wrap

FREQUENCIES: dict[str, float] = _core.frequencies()
"""Names of frequencies, in Hz."""


def _hertz(frequency: str | float) -> float:
    if isinstance(frequency, str):
        if frequency not in FREQUENCIES:
            raise ValueError(f"there is no frequency {frequency!r} (there are {', '.join(FREQUENCIES)}, and numbers of Hz)")
        return FREQUENCIES[frequency]
    return float(frequency)


def field(
    width: int,
    height: int,
    frequency: str | float = "love",
    time: float = 0.0,
    *,
    part: tuple[int, int, int, int] | None = None,
    device: Any = None,
) -> Array:
    """The damped spiral wave at a time in seconds: (height, width) of float32. `part` is (top, bottom, left, right): the rows and columns
    that are computed, the second of each not among them; the whole may be larger than any memory.

    >>> import cantus
    >>> cantus.field.field(4, 3, "unity").shape
    (3, 4)
    >>> cantus.field.field(10**6, 10**6, part=(5, 7, 0, 3)).shape
    (2, 3)
    """
    target = _devices.device(device)
    return wrap(target.engine.field(width, height, _hertz(frequency), float(time), part), target)


def phi_pattern(width: int, height: int, *, device: Any = None) -> Array:
    """The golden-ratio spiral: (height, width) of float32.

    >>> import cantus
    >>> cantus.field.phi_pattern(4, 3).shape
    (3, 4)
    """
    target = _devices.device(device)
    return wrap(target.engine.phi_pattern(width, height), target)


def coherence(of: Array) -> float:
    """The coherence of a field of two axes.

    >>> import cantus
    >>> cantus.field.coherence(cantus.ones((3, 3)))
    1.0
    """
    return of._device.engine.coherence(of._x)


def frames(
    width: int, height: int, count: int, frequency: str | float = "love", step: float = 0.05, *, device: Any = None
) -> Iterator[Array]:
    """`count` fields, `step` seconds apart; with a progress bar where tqdm is installed and the work is long.

    >>> import cantus
    >>> [one.shape for one in cantus.field.frames(4, 3, 2)]
    [(3, 4), (3, 4)]
    """
    from ._progress import progress

    for place in progress(range(count), "frames", count * width * height > 50_000_000):
        yield field(width, height, frequency, place * step, device=device)


def animate(
    path: str,
    width: int = 256,
    height: int = 256,
    count: int = 32,
    frequency: str | float = "love",
    step: float = 0.05,
    colormap: str = "viridis",
    *,
    device: Any = None,
) -> None:
    """Writes an animated GIF (the package pillow makes it)."""
    try:
        from PIL import Image
    except ImportError:
        raise ImportError("animate needs pillow (pip install pillow)") from None
    from ._show import coloured

    pictures = [
        Image.fromarray(coloured(np.asarray(one), colormap))
        for one in frames(width, height, count, frequency, step, device=device)
    ]
    first, *others = pictures
    first.save(path, save_all=True, append_images=others, duration=int(1000 * step), loop=0)
