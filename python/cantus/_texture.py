"""Textures and samplers of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _core, _devices, _dtypes

class Texture:
    """An image on a device, for the `texture_*` variables of a kernel: height x width x channels.

    `image` is an array of height x width, or height x width x channels, or a picture of PIL. `dimension` is WebGPU's name for textures of
    other axes: "1d" (width), "2d-array" (layers x height x width), "3d" (depth x height x width), "cube" (six layers: +x, -x, +y, -y, +z, -z)
    and "cube-array"; channels come last. Its format follows from its dtype (bytes are
    fractions of 255: `rgba8unorm`) unless `format` names another with the same channels: `rgba8unorm-srgb`, `rgba8uint`. An image of three
    channels gets a fourth, of 1. `levels=True` adds all levels of detail.

    >>> import cantus, numpy as np
    >>> brighter = cantus.kernel('''
    ...     @group(0) @binding(0) var image: texture_2d<f32>;
    ...     @group(0) @binding(1) var made: texture_storage_2d<rgba8unorm, write>;
    ...     @compute @workgroup_size(8, 8)
    ...     fn brighter(@builtin(global_invocation_id) id: vec3u) {
    ...         if all(id.xy < textureDimensions(made)) {
    ...             textureStore(made, id.xy, 2.0 * textureLoad(image, id.xy, 0));
    ...         }
    ...     }
    ... ''')
    >>> image = np.full((2, 3, 3), 40, np.uint8)
    >>> made = cantus.Texture.zeros((2, 3), 'rgba8unorm')
    >>> brighter(image=image, made=made, invocations=(3, 2))
    >>> made.numpy()[0, 0]
    array([ 80,  80,  80, 255], dtype=uint8)
    """

    def __init__(
        self, image: Any, format: str | None = None, *, dimension: str = "2d", levels: bool = False, device: Any = None
    ) -> None:
        pixels = _pixels(image)
        if format is None:
            reads = {"uint32": "u32", "int32": "i32"}.get(pixels.dtype.name, "f32")
            format = _format(reads, pixels, dimension)
        self.device, self.dimension = _devices.device(device), dimension
        self._texture = _made(pixels, format, levels, dimension, self.device)

    @classmethod
    def zeros(cls, shape: Sequence[int], format: str, *, dimension: str = "2d", device: Any = None) -> Texture:
        """A texture of zeros, of height and width, or of the sides that `dimension` has, the slowest first."""
        texture = cls.__new__(cls)
        texture.device, texture.dimension = _devices.device(device), dimension
        sides = [int(side) for side in shape[: {"1d": 1, "2d": 2}.get(dimension, 3)]]
        texture._texture = _core.Texture.zeros(texture.device.engine, format, sides, dimension)
        return texture

    @property
    def format(self) -> str:
        """The format's name, as WGSL has it."""
        return self._texture.format

    @property
    def shape(self) -> tuple[int, ...]:
        """Depth or layers where the dimension has them, height, width and channels; without channels where there is one."""
        channels = self._texture.channels
        return self._sides() if channels == 1 else (*self._sides(), channels)

    def _sides(self) -> tuple[int, ...]:
        return self._texture.size[{"1d": 2, "2d": 1}.get(self.dimension, 0) :]

    @property
    def levels(self) -> int:
        """Levels of detail."""
        return self._texture.levels

    def numpy(self) -> np.ndarray[Any, Any]:
        """The texels of the largest level, in the channels' own dtype."""
        dtype = self._texture.dtype
        if dtype is None:
            raise _core.Error(f"channels of {self.format} share bytes, and NumPy has no dtype for them: store rgba16float")
        return np.frombuffer(self._texture.bytes(), _dtypes.BY_CORE[dtype].numpy).reshape(self.shape).copy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        values = self.numpy()
        return values if dtype is None else values.astype(dtype, copy=False)

    def __repr__(self) -> str:
        sides = " x ".join(map(str, self._sides()))
        dimension = "" if self.dimension == "2d" else f" {self.dimension}"
        levels = f", {self.levels} levels" if self.levels > 1 else ""
        return f"<texture{dimension} {self.format}, {sides}{levels}, on {self.device}>"


@dataclass(frozen=True)
class Sampler:
    """How a kernel samples a texture: `filter` is "linear" or "nearest"; `address` is "clamp-to-edge", "repeat" or "mirror-repeat", one
    for all axes or one for each; `compare` is for a `sampler_comparison` ("less", "less-equal", …); `lod` the least and the greatest level of
    detail."""

    filter: str = "linear"
    address: str | tuple[str, str, str] = "clamp-to-edge"
    compare: str | None = None
    lod: tuple[float, float] = (0.0, 32.0)


def _pixels(image: Any) -> np.ndarray[Any, Any]:
    pixels = np.ascontiguousarray(image)
    if pixels.dtype == np.bool_:
        pixels = pixels.astype(np.uint8) * 255
    if pixels.dtype == np.float64:
        pixels = pixels.astype(np.float32)
    pixels = pixels.astype(pixels.dtype.newbyteorder("="), copy=False)
    return pixels


def _format(reads: str, pixels: np.ndarray[Any, Any], dimension: str) -> str:
    _, channels = _core.texture_sides(dimension, list(pixels.shape))
    format = _core.format_for(reads, _core_dtype(pixels), channels)
    if format is None:
        raise TypeError(f"no format that a kernel reads as {reads} has {channels} channels of {pixels.dtype}")
    return format


def _core_dtype(pixels: np.ndarray[Any, Any]) -> str:
    if pixels.dtype.kind not in "fiu":
        raise TypeError(f"no texture has channels of {pixels.dtype}")
    return _dtypes.of(pixels.dtype).core


def _made(pixels: np.ndarray[Any, Any], format: str, levels: bool, dimension: str, device: Any) -> _core.Texture:
    shape = list(pixels.shape)
    _core.texture_sides(dimension, shape)
    return _core.Texture.of(device.engine, _core_dtype(pixels), shape, pixels.tobytes(), format, levels, dimension)


def bound(image: Any, name: str, known: list[Any], device: Any) -> _core.Texture:
    """Returns the texture to bind: the given one, or one made from an image."""
    reads, format, writes, _, dimension = known
    if isinstance(image, Texture):
        return image._texture
    if writes:
        raise _core.KernelError(f"{name} is written: give it a texture (cantus.Texture.zeros)")
    pixels = _pixels(image)
    return _made(pixels, format or _format(reads, pixels, dimension), False, dimension, device)


def sampling(sampler: Any, name: str, comparison: bool) -> tuple[str, tuple[str, str, str], str | None, tuple[float, float]]:
    """A sampler as the engine takes it."""
    if sampler is None:
        sampler = Sampler(compare="less-equal" if comparison else None)
    elif isinstance(sampler, str):
        sampler = Sampler(sampler, compare="less-equal" if comparison else None)
    elif not isinstance(sampler, Sampler):
        raise TypeError(f"{name} is a sampler: give it a cantus.Sampler, not {type(sampler).__name__}")
    address = (sampler.address,) * 3 if isinstance(sampler.address, str) else tuple(sampler.address)
    return sampler.filter, address, sampler.compare, (float(sampler.lod[0]), float(sampler.lod[1]))
