"""Pictures by kernels with textures, against OpenCV, scikit-image and Pillow."""

from __future__ import annotations

import cantus
import numpy as np
import pytest

cv2 = pytest.importorskip("cv2")
color = pytest.importorskip("skimage.color")
transform = pytest.importorskip("skimage.transform")
Image = pytest.importorskip("PIL.Image")

rng = np.random.default_rng(8)
PHOTO = rng.integers(0, 256, (45, 70, 3), np.uint8)
LIGHT = PHOTO.astype(np.float64) / 255


def run(body: str, image: object, shape: tuple[int, int] = PHOTO.shape[:2], functions: str = "", **more: object) -> np.ndarray:
    """Returns red, green and blue of what an expression of `id`, `uv` and `texel(x, y)` gives."""
    smp = "@group(0) @binding(1) var smp: sampler;" if "smp" in body else ""
    kernel = cantus.kernel(f"""
        @group(0) @binding(0) var image: texture_2d<f32>;
        {smp}
        @group(0) @binding(2) var made: texture_storage_2d<rgba32float, write>;
        {functions}
        fn texel(at: vec2i) -> vec3f {{ return textureLoad(image, clamp(at, vec2i(), vec2i(textureDimensions(image)) - 1), 0).rgb; }}
        @compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) id: vec3u) {{
            let size = textureDimensions(made);
            if any(id.xy >= size) {{ return; }}
            let at = vec2i(id.xy);
            let uv = (vec2f(id.xy) + 0.5) / vec2f(size);
            textureStore(made, id.xy, vec4f({body}, 1.0));
        }}""")
    made = cantus.Texture.zeros(shape, "rgba32float")
    kernel(image=image, made=made, invocations=(shape[1], shape[0]), **more)
    return made.numpy()[..., :3]


def test_sobel_is_opencvs(device):
    for dx, dy, body in ((1, 0, "texel(at + vec2i(1, y)) - texel(at + vec2i(-1, y))"), (0, 1, "texel(at + vec2i(y, 1)) - texel(at + vec2i(y, -1))")):
        slope = f"fn slope(at: vec2i) -> vec3f {{ var sum = vec3f(); for (var y = -1; y <= 1; y++) {{ sum += f32(2 - abs(y)) * ({body}); }} return sum; }}"
        expected = cv2.Sobel(PHOTO, cv2.CV_64F, dx, dy, borderType=cv2.BORDER_REPLICATE)
        np.testing.assert_allclose(255 * run("slope(at)", PHOTO, functions=slope), expected, atol=1e-3)


def test_a_gaussian_blur_is_opencvs(device):
    blur = """fn blur(at: vec2i) -> vec3f {
        var sum = vec4f();
        for (var y = -4; y <= 4; y++) { for (var x = -4; x <= 4; x++) {
            sum += exp(-f32(x * x + y * y) / (2.0 * 1.7 * 1.7)) * vec4f(texel(at + vec2i(x, y)), 1.0);
        } }
        return sum.rgb / sum.a;
    }"""
    expected = cv2.GaussianBlur(LIGHT, (9, 9), 1.7, borderType=cv2.BORDER_REPLICATE)
    np.testing.assert_allclose(run("blur(at)", PHOTO, functions=blur), expected, atol=2e-6)


def test_a_blur_by_tiles_is_opencvs(device):
    """Workgroups share the texels that they load; the result has bytes."""
    blur = cantus.kernel("""
        @group(0) @binding(0) var image: texture_2d<f32>;
        @group(0) @binding(1) var blurred: texture_storage_2d<rgba8unorm, write>;
        var<workgroup> tile: array<array<vec4f, 22>, 22>;
        @compute @workgroup_size(16, 16)
        fn blur(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) local: vec3u, @builtin(workgroup_id) group: vec3u) {
            let last = vec2i(textureDimensions(image)) - 1;
            for (var y = local.y; y < 22u; y += 16u) {
                for (var x = local.x; x < 22u; x += 16u) {
                    tile[y][x] = textureLoad(image, clamp(vec2i(16u * group.xy + vec2u(x, y)) - 3, vec2i(), last), 0);
                }
            }
            workgroupBarrier();
            var sum = vec4f();
            for (var y = 0u; y < 7u; y++) { for (var x = 0u; x < 7u; x++) { sum += tile[local.y + y][local.x + x]; } }
            textureStore(blurred, id.xy, sum / 49.0);
        }""")
    made = cantus.Texture.zeros(PHOTO.shape[:2], "rgba8unorm")
    blur(image=PHOTO, blurred=made, invocations=PHOTO.shape[1::-1])
    expected = cv2.blur(PHOTO.astype(np.float64), (7, 7), borderType=cv2.BORDER_REPLICATE)
    # Each is rounded to the nearest byte.
    np.testing.assert_allclose(made.numpy()[..., :3], expected, atol=0.5 + 1e-3)


@pytest.mark.parametrize("shape", [(90, 140), (100, 71), (30, 50)])
def test_a_bilinear_resize_is_opencvs(device, shape):
    found = run("textureSampleLevel(image, smp, uv, 0.0).rgb", PHOTO, shape, smp="linear")
    # Its weights are of float32.
    np.testing.assert_allclose(found, cv2.resize(LIGHT, shape[::-1], interpolation=cv2.INTER_LINEAR), atol=2e-5)


def test_a_larger_picture_is_pillows(device):
    shape = (100, 151)
    found = run("textureSampleLevel(image, smp, uv, 0.0).rgb", Image.fromarray(PHOTO), shape, smp="linear")
    planes = [np.asarray(Image.fromarray(LIGHT[..., c].astype(np.float32)).resize(shape[::-1], Image.Resampling.BILINEAR)) for c in range(3)]
    np.testing.assert_allclose(found, np.stack(planes, -1), atol=2e-5)


@pytest.mark.parametrize("level", range(6))
def test_levels_are_scikit_images_means(device, level):
    photo = rng.integers(0, 256, (32, 64, 3), np.uint8)
    shape = (32 >> level, 64 >> level)
    factors = (1 << level, 1 << level, 1)
    expected = transform.downscale_local_mean(photo.astype(np.float64), factors)
    for image, error in ((photo.astype(np.float32), 1e-4), (photo, 0.5 * level + 1e-3)):
        # Bytes are rounded once on each level.
        scale = 255 if image.dtype == np.uint8 else 1
        found = scale * run(f"textureSampleLevel(image, smp, uv, {level}.0).rgb", cantus.Texture(image, levels=True), shape, smp="nearest")
        np.testing.assert_allclose(found, expected, atol=error)
    np.testing.assert_allclose(expected, cv2.resize(photo.astype(np.float64), shape[::-1], interpolation=cv2.INTER_AREA), atol=1e-9)


def test_brightness_is_opencvs(device):
    gray = run("vec3f(dot(texel(at), vec3f(0.299, 0.587, 0.114)))", PHOTO)[..., 0]
    np.testing.assert_allclose(gray, cv2.cvtColor(LIGHT.astype(np.float32), cv2.COLOR_RGB2GRAY), atol=1e-6)


def test_hues_are_scikit_images(device):
    hsv = """fn hsv(c: vec3f) -> vec3f {
        let most = max(c.r, max(c.g, c.b));
        let range = most - min(c.r, min(c.g, c.b));
        var hue = (c.g - c.b) / range;
        if most == c.g { hue = 2.0 + (c.b - c.r) / range; }
        if most == c.b { hue = 4.0 + (c.r - c.g) / range; }
        hue = select(hue / 6.0 + select(0.0, 1.0, hue < 0.0), 0.0, range == 0.0);
        return vec3f(hue, select(range / most, 0.0, most == 0.0), most);
    }"""
    # Greys have no hue, and black no saturation.
    photo = PHOTO.copy()
    photo[0, :8] = np.arange(0, 256, 32)[:, None]
    np.testing.assert_allclose(run("hsv(texel(at))", photo, functions=hsv), color.rgb2hsv(photo), atol=2e-6)


def test_perceived_colours_are_scikit_images(device):
    lab = """fn root(t: vec3f) -> vec3f { return select(7.787 * t + 16.0 / 116.0, pow(t, vec3f(1.0 / 3.0)), t > vec3f(0.008856)); }
    fn lab(light: vec3f) -> vec3f {
        let x = dot(light, vec3f(0.412453, 0.357580, 0.180423));
        let y = dot(light, vec3f(0.212671, 0.715160, 0.072169));
        let z = dot(light, vec3f(0.019334, 0.119193, 0.950227));
        // The white of D65.
        let f = root(vec3f(x, y, z) / vec3f(0.95047, 1.0, 1.08883));
        return vec3f(116.0 * f.y - 16.0, 500.0 * (f.x - f.y), 200.0 * (f.y - f.z));
    }"""
    # The texture decodes sRGB.
    found = run("lab(texel(at))", cantus.Texture(PHOTO, "rgba8unorm-srgb"), functions=lab)
    np.testing.assert_allclose(found, color.rgb2lab(PHOTO), atol=2e-3)
