"""Draws the pictures of examples/README.md, by the examples themselves: `python examples/pictures.py [NAME]…`.

It takes the package with Pillow, the font DejaVu Sans Mono, and for the examples in Rust a checkout that builds. `CANTUS` names the program, which
draws the path tracer; on a machine without a screen run this under `xvfb-run`.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

HERE = Path(__file__).parent
WIDTH, HEIGHT = 320, 240
PAPER, INK, COLOURS = (16, 17, 22), (226, 228, 233), [(240, 150, 70), (95, 170, 235), (120, 200, 120), (225, 110, 150), (235, 215, 110)]

sys.path.insert(0, str(HERE / "python"))


def glow(amount: np.ndarray, colour: tuple[int, int, int]) -> Image.Image:
    """A picture of values from 0 up: black, then the colour, then white."""
    level = 1 - np.exp(-amount[..., None] * np.array(colour) / 128)
    return Image.fromarray((255 * level).astype("u1"))


def printed(text: str, size: int = 13) -> Image.Image:
    """A terminal with this text."""
    image = Image.new("RGB", (WIDTH, HEIGHT), PAPER)
    font = ImageFont.truetype("DejaVuSansMono.ttf", size)
    room = int((WIDTH - 20) / font.getlength("m"))
    lines = [line[i : i + room] for line in text.splitlines() for i in range(0, max(len(line), 1), room)]
    high = size + 3
    ImageDraw.Draw(image).multiline_text((10, max(8, (HEIGHT - high * len(lines)) // 2)), "\n".join(lines), INK, font, spacing=3)
    return image


def rust(name: str, *more: str) -> str:
    """Runs an example in Rust; returns the text that it prints."""
    command = ["cargo", "run", "--locked", "--quiet", "--example", name, *more]
    return subprocess.run(command, cwd=HERE.parent, check=True, stdout=subprocess.PIPE, text=True).stdout.rstrip()


def image_filter() -> Image.Image:
    import cantus
    import image_filter as example

    photo = np.asarray(Image.open(HERE.parent / "docs/field.png").convert("L").resize((WIDTH, WIDTH)), dtype="f4")[40:280] / 255
    found = np.asarray(example.edges(example.blur(cantus.array(photo), 1.5)))
    return glow(3 * found / found.max(), (200, 180, 140))


def reaction_diffusion() -> Image.Image:
    import reaction_diffusion as example

    grown = np.asarray(example.run(WIDTH, 14000))[..., 1]
    return glow(grown[40:280] * 4, (90, 170, 150))


def n_body() -> Image.Image:
    import cantus
    import n_body as example

    # Two discs that pass each other.
    random = np.random.default_rng(5)
    stars, angle = 4000, random.uniform(0, 2 * np.pi, 4000)
    far = np.sqrt(random.uniform(0.01, 1, stars))
    side = np.where(np.arange(stars) % 2 == 0, -1.0, 1.0)
    disc = np.stack([far * np.cos(angle), far * np.sin(angle), 0.05 * random.normal(size=stars)], -1)
    turn = np.stack([-disc[:, 1], disc[:, 0], 0 * far], -1) * (0.68 * far**-0.5)[:, None]
    places = cantus.array((disc + np.stack([1.2 * side, 0.5 * side, 0 * side], -1)).astype("f4"))
    speeds = cantus.array((turn - np.stack([0.3 * side, 0 * side, 0 * side], -1)).astype("f4"))
    for _ in range(230):
        speeds = speeds + 0.01 * example.pull(places)
        places = (places + 0.01 * speeds).eval()
    at = np.asarray(places)
    counts, _, _ = np.histogram2d(at[:, 1], at[:, 0], bins=(HEIGHT, WIDTH), range=((-1.7, 1.7), (-2.27, 2.27)))
    around = sum(np.roll(counts, (y, x), (0, 1)) * np.exp(-(x * x + y * y) / 3) for x in range(-3, 4) for y in range(-3, 4))
    return glow(0.35 * around, (150, 165, 255))


def k_means() -> Image.Image:
    import cantus
    import k_means as example

    random = np.random.default_rng(2)
    truth = np.array([[0, 0, 0], [6, 0, 0], [0, 6, 0], [0, 0, 6], [6, 6, 6]], "f4")
    points = (truth[random.integers(0, 5, 6000)] + random.normal(size=(6000, 3))).astype("f4")
    centres = example.k_means(points, truth + random.normal(size=truth.shape).astype("f4"), rounds=5)
    groups = np.asarray(example.assign(cantus.array(points), cantus.array(centres)))
    onto = np.array([[18.0, -5.0], [-3.0, 15.0], [-14.0, -3.0]])
    middle = np.array([WIDTH, HEIGHT]) / 2 - np.array([3, 3, 3]) @ onto
    image = Image.new("RGB", (WIDTH, HEIGHT), PAPER)
    draw = ImageDraw.Draw(image)
    for place, group in zip(points @ onto + middle, groups):
        draw.point(tuple(place), COLOURS[group])
    for place in centres @ onto + middle:
        draw.ellipse((*(place - 4), *(place + 4)), fill=(255, 255, 255), outline=(0, 0, 0))
    return image


def bars(heights: np.ndarray, colours: list[tuple[int, int, int]]) -> Image.Image:
    """A bar for each number from 0 to 1."""
    image = Image.new("RGB", (WIDTH, HEIGHT), PAPER)
    draw = ImageDraw.Draw(image)
    wide = (WIDTH - 20) / len(heights)
    for i, (height, colour) in enumerate(zip(heights, colours)):
        left, right = 10 + i * wide, 10 + (i + 1) * wide - (1 if wide > 3 else 0)
        draw.rectangle((left, HEIGHT - 10 - height * (HEIGHT - 20), max(left, right - 0.01), HEIGHT - 10), fill=colour)
    return image


def sort() -> Image.Image:
    import cantus

    # Above as they came, below in order: colours are prices.
    price = np.random.default_rng(4).gamma(2, 10, 300).astype("f4")
    order = np.asarray(cantus.argsort(cantus.array(price)))
    top = price.max()
    colours = [tuple(int(a + (b - a) * p / top) for a, b in zip(COLOURS[1], COLOURS[0])) for p in price]
    image = Image.new("RGB", (WIDTH, HEIGHT), PAPER)
    for row, places in enumerate([np.arange(300), order]):
        part = bars(price[places] / top, [colours[i] for i in places]).resize((WIDTH, HEIGHT // 2))
        image.paste(part, (0, row * HEIGHT // 2))
    return image


def sound() -> Image.Image:
    import cantus
    import sound as example

    rate, chord = 44100, [220.0, 261.63, 329.63, 440.0]
    samples = sum(np.sin(2 * np.pi * f * np.arange(1 << 16) / rate) for f in chord) + np.random.default_rng(3).normal(size=1 << 16)
    loud = np.asarray(cantus.abs(cantus.fft.rfft(cantus.array((samples * np.hanning(1 << 16)).astype("f4")))))
    hertz = np.fft.rfftfreq(1 << 16, 1 / rate)
    edges = np.geomspace(180, 520, 151)
    level = np.array([np.log10(loud[(hertz >= low) & (hertz < high)].max()) for low, high in zip(edges, edges[1:])])
    level = (level - level.min()) / (level.max() - level.min()) * 0.9
    image = bars(level, [COLOURS[0] if height > 0.6 else (90, 95, 110) for height in level])
    font = ImageFont.truetype("DejaVuSansMono.ttf", 13)
    for frequency in chord:
        at = 10 + 300 * np.log(frequency / 180) / np.log(520 / 180)
        ImageDraw.Draw(image).text((at, 2), example.name(frequency), INK, font, anchor="mt")
    return image


def digits() -> Image.Image:
    # The first eight, each with what the network read.
    read = rust("digits", "--features", "npy").splitlines()[-1].split()
    images = np.load(HERE / "digits/images.npy")[:8, 0]
    picture = Image.new("RGB", (WIDTH, HEIGHT), PAPER)
    font = ImageFont.truetype("DejaVuSansMono.ttf", 20)
    for i, (pixels, digit) in enumerate(zip(images, read)):
        at = (10 + i % 4 * 77, 8 + i // 4 * 116)
        picture.paste(Image.fromarray((255 * pixels).astype("u1")).resize((70, 80), Image.Resampling.NEAREST), at)
        ImageDraw.Draw(picture).text((at[0] + 35, at[1] + 84), digit, COLOURS[i % 5], font, anchor="mt")
    return picture


def several_devices() -> Image.Image:
    return printed(rust("several_devices", "--", "cpu", "cpu"), 11)


def shared_wgpu() -> Image.Image:
    return printed(rust("shared_wgpu"), 7)


def kzg() -> Image.Image:
    return printed(rust("kzg", "--features", "zk"))


def path_tracer() -> Image.Image:
    with tempfile.TemporaryDirectory() as folder:
        shot = Path(folder) / "window.png"
        command = re.search(r"cantus (view .*)", (HERE / "path_tracer.wgsl").read_text()).group(1).split()
        more = ["--backend", "cpu", "--frames", "600", "--theme", "dark", "--screenshot", str(shot)]
        subprocess.run([os.environ.get("CANTUS", "cantus"), *command, *more], cwd=HERE.parent, check=True)
        return framed(shot)


def framed(file: Path) -> Image.Image:
    window = Image.open(file).convert("RGB")
    window.thumbnail((WIDTH, HEIGHT), Image.Resampling.LANCZOS)
    image = Image.new("RGB", (WIDTH, HEIGHT), PAPER)
    image.paste(window, ((WIDTH - window.width) // 2, (HEIGHT - window.height) // 2))
    return image


def neighbour(name: str) -> Image.Image:
    """An app of another library's workspace, which draws a picture of its own."""
    with tempfile.TemporaryDirectory() as folder:
        drawn = Path(folder) / "picture.png"
        command = ["cargo", "run", "--quiet", "-p", f"cantus-{name}", "--", str(drawn)]
        subprocess.run(command, cwd=HERE / "neighbours", check=True)
        return framed(drawn)


def egui() -> Image.Image:
    return neighbour("egui")


def bevy() -> Image.Image:
    return neighbour("bevy")


DRAWN: list[Callable[[], Image.Image]] = [
    image_filter, reaction_diffusion, n_body, k_means, sort, sound, digits, kzg, several_devices, shared_wgpu, path_tracer,
    egui, bevy,
]  # fmt: skip


def main() -> None:
    (HERE / "pictures").mkdir(exist_ok=True)
    for draw in DRAWN:
        if len(sys.argv) == 1 or draw.__name__ in sys.argv[1:]:
            file = HERE / "pictures" / f"{draw.__name__}.webp"
            draw().save(file, quality=80, method=6)
            print(f"{file.stat().st_size:6} bytes  {file.name}")


if __name__ == "__main__":
    main()
