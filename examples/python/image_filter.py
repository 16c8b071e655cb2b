"""A picture, blurred and its edges found, by kernels of the array API: `python image_filter.py [PICTURE] [RESULT.png]`."""

import sys

import cantus
import numpy as np


def blur(image: cantus.Array, sigma: float) -> cantus.Array:
    """Gaussian blur of a grey picture: rows, then columns. At the border the picture goes on with its last pixel."""
    radius = int(np.ceil(3 * sigma))
    steps = np.arange(-radius, radius + 1)
    weights = np.exp(-0.5 * (steps / sigma) ** 2)
    weights /= weights.sum()
    padded = cantus.pad(image, radius, mode="edge")
    height, width = image.shape
    rows = sum(float(w) * padded[:, i : i + width] for i, w in enumerate(weights))
    return sum(float(w) * rows[i : i + height, :] for i, w in enumerate(weights))


def edges(image: cantus.Array) -> cantus.Array:
    """How steep the picture is at each pixel."""
    down, right = cantus.gradient(image)
    return cantus.sqrt(down * down + right * right)


def main() -> None:
    if len(sys.argv) > 1:
        from PIL import Image

        pixels = np.asarray(Image.open(sys.argv[1]).convert("L"), dtype="f4") / 255
    else:
        y, x = np.mgrid[0:240, 0:320].astype("f4")
        pixels = ((x - 160) ** 2 + (y - 120) ** 2 < 80**2).astype("f4")  # a disc
    smooth = blur(cantus.array(pixels), 3.0)
    found = edges(smooth)
    print(f"{pixels.shape[1]} x {pixels.shape[0]} pixels on {smooth.device}, steepest {float(cantus.max(found)):.3f}")
    if len(sys.argv) > 2:
        from PIL import Image

        Image.fromarray((255 * np.asarray(found / cantus.max(found))).astype("u1")).save(sys.argv[2])
    if len(sys.argv) == 1:
        # A disc keeps its area, and its edge is a ring: both are known.
        assert abs(float(cantus.sum(smooth)) - pixels.sum()) < 1e-3 * pixels.sum()
        ring = np.argwhere(np.asarray(found) > 0.1) - [120, 160]
        assert abs(np.linalg.norm(ring, axis=1).mean() - 80) < 0.5


if __name__ == "__main__":
    main()
