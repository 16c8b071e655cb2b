"""Which notes a sound has, by its Fourier transform: `python sound.py [SOUND.wav]`."""

import sys
import wave

import cantus
import numpy as np

NAMES = ["C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"]


def name(hertz: float) -> str:
    """The note of a frequency, with A4 at 440 Hz."""
    number = round(69 + 12 * np.log2(hertz / 440))
    return f"{NAMES[number % 12]}{number // 12 - 1}"


def notes(samples: np.ndarray, rate: int, most: int = 5) -> list[str]:
    """The loudest notes between 50 and 2,000 Hz, from low to high."""
    sound = cantus.array(samples.astype("f4")) * cantus.array(np.hanning(len(samples)).astype("f4"))
    loud = np.asarray(cantus.abs(cantus.fft.rfft(sound)))
    hertz = np.fft.rfftfreq(len(samples), 1 / rate)
    peaks = [
        i
        for i in range(1, len(loud) - 1)
        if 50 < hertz[i] < 2000 and loud[i] > 0.2 * loud.max() and loud[i - 1] < loud[i] >= loud[i + 1]
    ]
    peaks = sorted(sorted(peaks, key=lambda i: -loud[i])[:most])
    return [name(hertz[i]) for i in peaks]


def main() -> None:
    if len(sys.argv) > 1:
        with wave.open(sys.argv[1]) as file:
            rate, width, channels = file.getframerate(), file.getsampwidth(), file.getnchannels()
            if width != 2:
                sys.exit(f"{sys.argv[1]}: samples of {8 * width} bits; this reads 16 (ffmpeg -i IN -sample_fmt s16 OUT.wav)")
            samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, channels).mean(1) / 32768
        print(" ".join(notes(samples, rate)))
        return
    # A chord of A minor, with noise over it.
    rate, chord = 44100, [220.0, 261.63, 329.63, 440.0]
    time = np.arange(1 << 16) / rate
    samples = sum(np.sin(2 * np.pi * f * time) for f in chord) + np.random.default_rng(3).normal(size=len(time))
    found = notes(samples, rate)
    print(" ".join(found))
    assert found == ["A3", "C4", "E4", "A4"]


if __name__ == "__main__":
    main()
