"""Groups in a file larger than one wants in memory: k-means, chunk by chunk: `python k_means.py [POINTS]`."""

import sys
import tempfile
from pathlib import Path

import cantus
import numpy as np

CHUNK = 1 << 16


def assign(points: cantus.Array, centres: cantus.Array) -> cantus.Array:
    """The nearest centre of each point. |p - c|² without |p|², which is the same for every centre."""
    return cantus.argmin(cantus.sum(centres * centres, axis=1) - 2 * (points @ centres.T), axis=1)


def k_means(data: np.ndarray, centres: np.ndarray, rounds: int) -> np.ndarray:
    """The centres after `rounds` rounds. `data` may be a memory map."""
    groups = len(centres)
    for _ in range(rounds):
        sums, counts = np.zeros(centres.shape, "f8"), np.zeros(groups, "f8")
        where = cantus.array(centres)
        for begin in range(0, len(data), CHUNK):
            points = cantus.array(np.ascontiguousarray(data[begin : begin + CHUNK]))
            is_in = cantus.astype(assign(points, where)[:, None] == cantus.arange(groups)[None, :], cantus.float32)
            sums += np.asarray(is_in.T @ points)
            counts += np.asarray(cantus.sum(is_in, axis=0))
        centres = (sums / np.maximum(counts, 1)[:, None]).astype("f4")
    return centres


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    random = np.random.default_rng(2)
    truth = np.array([[0, 0, 0], [6, 0, 0], [0, 6, 0], [0, 0, 6], [6, 6, 6]], "f4")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "points.npy"
        written = np.lib.format.open_memmap(path, mode="w+", dtype="f4", shape=(count, 3))
        written[:] = truth[random.integers(0, len(truth), count)] + random.normal(size=(count, 3))
        written.flush()
        data = np.load(path, mmap_mode="r")
        found = k_means(data, truth + random.normal(size=truth.shape).astype("f4"), rounds=5)
        del data, written
    print(f"{count} points on {cantus.zeros(1).device}: centres within {np.abs(found - truth).max():.3f} of what was drawn")
    assert np.abs(found - truth).max() < 0.05


if __name__ == "__main__":
    main()
