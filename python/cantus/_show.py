"""Arrays as pictures, for notebooks: PNG by the standard library alone."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np

# Points of viridis (Smith and van der Walt, 2015), between which colours are blended.
_VIRIDIS = [
    (68, 1, 84), (72, 40, 120), (62, 73, 137), (49, 104, 142), (38, 130, 142), (31, 158, 137), (53, 183, 121),
    (110, 206, 88), (181, 222, 43), (253, 231, 37),
]  # fmt: skip
_OWN = {"viridis": _VIRIDIS, "grey": [(0, 0, 0), (255, 255, 255)], "gray": [(0, 0, 0), (255, 255, 255)]}


def coloured(values: Any, colormap: str) -> Any:
    """(height, width) as (height, width, 3) of uint8: the least in the map's first colour, the greatest in its last, NaN black."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    scaled = np.nan_to_num((values - low) / (high - low or 1.0), nan=0.0, posinf=1.0, neginf=0.0)
    points = _OWN.get(colormap)
    if points is None:
        try:
            from matplotlib import colormaps

            found = colormaps[colormap]
        except (ImportError, KeyError):
            raise ValueError(
                f"there is no colour map {colormap!r} ({', '.join(_OWN)} are there; matplotlib brings more)"
            ) from None
        return (found(scaled)[..., :3] * 255).astype(np.uint8)
    table = np.asarray(points, np.float64)
    at = scaled * (len(points) - 1)
    channels = [np.interp(at, np.arange(len(points)), table[:, channel]) for channel in range(3)]
    return np.where(np.isfinite(values)[..., None], np.stack(channels, -1), 0).round().astype(np.uint8)


def png(pixels: Any) -> bytes:
    """(height, width, 3) of uint8 as a PNG file."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + pixels[row].tobytes() for row in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


class Picture:
    """A picture that notebooks show."""

    def __init__(self, pixels: Any) -> None:
        self.pixels = pixels

    def _repr_png_(self) -> bytes:
        return png(self.pixels)

    def save(self, path: str) -> None:
        """Writes a PNG file."""
        with open(path, "wb") as file:
            file.write(png(self.pixels))

    def __repr__(self) -> str:
        height, width, _ = self.pixels.shape
        return f"<picture of {width} x {height}>"


def picture(array: Any, colormap: str, scale: int | None) -> Picture:
    """An array of two axes."""
    values = np.asarray(array)
    if values.ndim != 2 or values.dtype.kind == "c":
        raise ValueError(f"a picture has two axes of real numbers, and this array has the shape {values.shape} of {values.dtype}")
    if scale is None:
        scale = max(1, 256 // max(values.shape)) if values.size else 1
    pixels = coloured(values.astype(np.float64), colormap)
    return Picture(pixels.repeat(scale, 0).repeat(scale, 1))
