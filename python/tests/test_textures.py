"""Kernels with textures, against SciPy and NumPy in float64."""

from __future__ import annotations

import cantus
import numpy as np
import pytest

ndimage = pytest.importorskip("scipy.ndimage")

rng = np.random.default_rng(5)
PHOTO = rng.integers(0, 256, (37, 53, 3), np.uint8)


def kernel(body: str, image: str = "texture_2d<f32>", made: str = "rgba32float") -> cantus.Kernel:
    return cantus.kernel(f"""
        @group(0) @binding(0) var image: {image};
        @group(0) @binding(1) var smp: sampler;
        @group(0) @binding(2) var made: texture_storage_2d<{made}, write>;
        fn at(id: vec3u, x: i32, y: i32) -> vec4f {{
            let last = vec2i(textureDimensions(image)) - 1;
            return textureLoad(image, clamp(vec2i(id.xy) + vec2i(x, y), vec2i(), last), 0);
        }}
        @compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) id: vec3u) {{
            let size = textureDimensions(made);
            let uv = (vec2f(id.xy) + 0.5) / vec2f(size);
            if all(id.xy < size) {{ textureStore(made, id.xy, {body}); }}
        }}""")


def run(kernel: cantus.Kernel, image: object, shape: tuple[int, int], format: str = "rgba32float", **more: object) -> np.ndarray:
    made = cantus.Texture.zeros(shape, format)
    given = {"image": image, **more} if "image" in kernel._textures else more
    kernel(**given, made=made, invocations=(shape[1], shape[0]))
    return made.numpy()


def test_sobel_is_scipys():
    gray = PHOTO.astype(np.float64) / 255
    for axis, body in ((1, "at(id, 1, -1) - at(id, -1, -1) + 2.0 * (at(id, 1, 0) - at(id, -1, 0)) + at(id, 1, 1) - at(id, -1, 1)"),
                       (0, "at(id, -1, 1) - at(id, -1, -1) + 2.0 * (at(id, 0, 1) - at(id, 0, -1)) + at(id, 1, 1) - at(id, 1, -1)")):
        found = run(kernel(body), PHOTO, PHOTO.shape[:2])[..., :3]
        expected = np.stack([ndimage.sobel(gray[..., c], axis, mode="nearest") for c in range(3)], -1)
        np.testing.assert_allclose(found, expected, atol=2e-6)


def test_a_blur_is_scipys():
    body = " + ".join(f"at(id, {x}, {y})" for x in range(-2, 3) for y in range(-2, 3))
    found = run(kernel(f"({body}) / 25.0"), PHOTO, PHOTO.shape[:2])[..., :3]
    expected = ndimage.uniform_filter(PHOTO.astype(np.float64) / 255, (5, 5, 1), mode="nearest")
    np.testing.assert_allclose(found, expected, atol=2e-6)


@pytest.mark.parametrize("shape", [(74, 106), (19, 27), (37, 53), (80, 31)])
def test_a_bilinear_resize_is_scipys(shape):
    found = run(kernel("textureSampleLevel(image, smp, uv, 0.0)"), PHOTO, shape, smp="linear")[..., :3]
    gray = PHOTO.astype(np.float64) / 255
    rows, columns = ((np.arange(new) + 0.5) * old / new - 0.5 for new, old in zip(shape, PHOTO.shape))
    grid = np.meshgrid(rows, columns, indexing="ij")
    expected = np.stack([ndimage.map_coordinates(gray[..., c], grid, order=1, mode="nearest") for c in range(3)], -1)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_levels_are_means():
    photo = PHOTO[:32, :32]
    texture = cantus.Texture(photo.astype(np.float32), levels=True)
    assert texture.levels == 6 and texture.format == "rgba32float"
    for level in range(6):
        side = 32 >> level
        body = f"textureSampleLevel(image, smp, uv, {level}.0)"
        found = run(kernel(body), texture, (side, side), smp=cantus.Sampler("nearest"))[..., :3]
        expected = photo.reshape(side, 1 << level, side, 1 << level, 3).mean((1, 3), np.float64)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_srgb_is_decoded():
    found = run(kernel("textureLoad(image, id.xy, 0)"), cantus.Texture(PHOTO, "rgba8unorm-srgb"), PHOTO.shape[:2])[..., :3]
    c = PHOTO / 255
    expected = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    np.testing.assert_allclose(found, expected, atol=2e-6)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float16", "float32"])
@pytest.mark.parametrize("channels", [0, 1, 2, 3, 4])
def test_images_come_back(dtype, channels):
    image = rng.integers(0, 200, (5, 4, channels) if channels else (5, 4)).astype(dtype)
    back = np.asarray(cantus.Texture(image))
    assert back.dtype == image.dtype
    np.testing.assert_array_equal(back[..., :3] if channels == 3 else back, image[..., 0] if channels == 1 else image)


VIEWS = {"1d": (5,), "2d": (3, 4), "2d-array": (3, 2, 4), "3d": (2, 3, 5), "cube": (6, 4, 4), "cube-array": (12, 2, 2)}


@pytest.mark.parametrize("dimension", VIEWS)
@pytest.mark.parametrize("dtype", ["uint8", "uint32", "float32"])
def test_textures_of_all_dimensions_come_back(dimension, dtype):
    for channels in ((), (1,), (2,), (4,)):
        image = rng.integers(0, 200, (*VIEWS[dimension], *channels)).astype(dtype)
        texture = cantus.Texture(image, dimension=dimension)
        expected = image[..., 0] if channels == (1,) else image
        assert texture.shape == expected.shape and (dimension == "2d" or dimension in repr(texture))
        np.testing.assert_array_equal(np.asarray(texture), expected)


def test_volumes_are_bound_by_their_kernel():
    smooth = cantus.kernel("""
        @group(0) @binding(0) var volume: texture_3d<f32>;
        @group(0) @binding(1) var layers: texture_2d_array<u32>;
        @group(0) @binding(2) var row: texture_1d<f32>;
        @group(0) @binding(3) var sky: texture_cube<f32>;
        @group(0) @binding(4) var smp: sampler;
        @group(0) @binding(5) var made: texture_storage_3d<r32float, write>;
        @compute @workgroup_size(4, 4, 4) fn main(@builtin(global_invocation_id) id: vec3u) {
            if any(id >= textureDimensions(made)) { return; }
            let toward = array(vec3f(1, 0, 0), vec3f(-1, 0, 0), vec3f(0, 1, 0), vec3f(0, -1, 0), vec3f(0, 0, 1), vec3f(0, 0, -1))[id.x % 6];
            let value = textureLoad(volume, id, 0).x + f32(textureLoad(layers, id.xy, id.z, 0).x) + textureLoad(row, id.x, 0).x;
            textureStore(made, id, vec4f(value + textureSampleLevel(sky, smp, toward, 0).x));
        }""")
    shape = (3, 4, 7)
    volume, layers = rng.random(shape, np.float32), rng.integers(0, 9, shape, np.uint32)
    row, sky = rng.random(7, np.float32), np.repeat(np.arange(6, dtype=np.float32), 4).reshape(6, 2, 2)
    made = cantus.Texture.zeros(shape, "r32float", dimension="3d")
    smooth(volume=volume, layers=layers, row=row, sky=sky, smp=cantus.Sampler("nearest"), made=made, invocations=(7, 4, 3))
    expected = volume.astype(np.float64) + layers + row + np.arange(7) % 6
    np.testing.assert_allclose(made.numpy(), expected, rtol=1e-6)
    with pytest.raises(ValueError, match="depth x height x width x channels"):
        smooth(volume=row, layers=layers, row=row, sky=sky, made=made, invocations=1)
    with pytest.raises(ValueError, match="6 x height x width"):
        cantus.Texture.zeros((5, 4, 4), "r32float", dimension="cube")
    with pytest.raises(ValueError, match="not the dimension of a texture"):
        cantus.Texture(volume, dimension="4d")


def test_mistakes_are_told():
    copy = kernel("textureLoad(image, id.xy, 0)", made="rgba8unorm")
    with pytest.raises(cantus.KernelError, match="made is written: give it a texture"):
        copy(image=PHOTO, made=PHOTO, invocations=1)
    with pytest.raises(cantus.KernelError, match="nothing was bound; it is a texture_2d<f32>"):
        copy(made=cantus.Texture.zeros((4, 4), "rgba8unorm"), invocations=1)
    with pytest.raises(cantus.KernelError, match="declares rgba8unorm, the texture's texels are r32float"):
        copy(image=PHOTO, made=cantus.Texture.zeros((4, 4), "r32float"), invocations=1)
    with pytest.raises(ValueError, match="not a texture format"):
        cantus.Texture.zeros((4, 4), "rgba9")
    with pytest.raises(ValueError, match="height x width x channels"):
        cantus.Texture(np.zeros(3))
    with pytest.raises(ValueError, match="no address mode"):
        sampled = kernel("textureSampleLevel(image, smp, uv, 0.0)")
        run(sampled, PHOTO, (4, 4), smp=cantus.Sampler(address="wrap"))
    with pytest.raises(TypeError, match=r"channels of complex64"):
        cantus.Texture(np.zeros((4, 4), np.complex64))
    assert "texture_2d<f32>" in repr(copy)
