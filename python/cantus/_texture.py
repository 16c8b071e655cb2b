"""Textures and samplers of kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _core, _devices, _dtypes

class Texture:
    """An image on a device, for the `texture_*` variables of a kernel: height x width x channels.

    `image` is an array of height x width, or height x width x channels, or a picture of PIL. Its format follows from its dtype (bytes are
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

    def __init__(self, image: Any, format: str | None = None, *, levels: bool = False, device: Any = None) -> None:
        pixels = _pixels(image)
        if format is None:
            format = _format("f32" if pixels.dtype.name not in ("uint32", "int32") else pixels.dtype.name[:-4] + "32", pixels)
        self.device = _devices.device(device)
        self._texture = _made(pixels, format, levels, self.device)

    @classmethod
    def zeros(cls, shape: tuple[int, int], format: str, *, device: Any = None) -> Texture:
        """A texture of zeros, of height and width."""
        texture = cls.__new__(cls)
        texture.device = _devices.device(device)
        height, width = (int(side) for side in shape[:2])
        texture._texture = _core.Texture.zeros(texture.device.engine, format, height, width)
        return texture

    @property
    def format(self) -> str:
        """The format's name, as WGSL has it."""
        return self._texture.format

    @property
    def shape(self) -> tuple[int, ...]:
        """Height, width and channels; without channels where there is one."""
        height, width, channels = self._texture.shape
        return (height, width) if channels == 1 else (height, width, channels)

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
        height, width, _ = self._texture.shape
        levels = f", {self.levels} levels" if self.levels > 1 else ""
        return f"<texture {self.format}, {height} x {width}{levels}, on {self.device}>"


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
    if pixels.ndim not in (2, 3):
        raise ValueError(f"an image is height x width x channels, and its shape is {pixels.shape}")
    return pixels


def _format(reads: str, pixels: np.ndarray[Any, Any]) -> str:
    channels = 1 if pixels.ndim == 2 else pixels.shape[2]
    format = _core.format_for(reads, _core_dtype(pixels), channels)
    if format is None:
        raise TypeError(f"no format that a kernel reads as {reads} has {channels} channels of {pixels.dtype}")
    return format


def _core_dtype(pixels: np.ndarray[Any, Any]) -> str:
    if pixels.dtype.kind not in "fiu":
        raise TypeError(f"no texture has channels of {pixels.dtype}")
    return _dtypes.of(pixels.dtype).core


def _made(pixels: np.ndarray[Any, Any], format: str, levels: bool, device: Any) -> _core.Texture:
    shape = [int(side) for side in pixels.shape]
    return _core.Texture.of(device.engine, _core_dtype(pixels), shape, pixels.tobytes(), format, levels)


def bound(image: Any, name: str, known: list[Any], device: Any) -> _core.Texture:
    """Returns the texture to bind: the given one, or one made from an image."""
    reads, format, writes, _ = known
    if isinstance(image, Texture):
        return image._texture
    if writes:
        raise _core.KernelError(f"{name} is written: give it a texture (cantus.Texture.zeros)")
    pixels = _pixels(image)
    return _made(pixels, format or _format(reads, pixels), False, device)


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
