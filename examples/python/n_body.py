"""Stars that attract each other, every one every other, by expressions alone: `python n_body.py [STARS] [STEPS]`."""

import sys

import cantus
import numpy as np

SOFT = 0.05


def pull(places: cantus.Array) -> cantus.Array:
    """The acceleration of each star, all of the same mass and of 1 together; close ones pull as if `SOFT` apart."""
    away = places[None, :, :] - places[:, None, :]
    square = cantus.sum(away * away, axis=-1, keepdims=True) + SOFT**2
    return cantus.sum(away / (square * cantus.sqrt(square)), axis=1) / places.shape[0]


def energy(places: np.ndarray, speeds: np.ndarray) -> float:
    """The total energy, which must not change, in float64."""
    places, speeds = places.astype("f8"), speeds.astype("f8")
    apart = np.sqrt(((places[None] - places[:, None]) ** 2).sum(-1) + SOFT**2)
    above = np.triu_indices(len(places), 1)
    return float((speeds**2).sum() / 2 / len(places) - (1 / apart[above]).sum() / len(places) ** 2)


def main() -> None:
    stars = int(sys.argv[1]) if len(sys.argv) > 1 else 512
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    random = np.random.default_rng(1)
    start = random.normal(size=(stars, 3)).astype("f4")
    turning = (0.4 * np.stack([-start[:, 1], start[:, 0], 0 * start[:, 0]], -1)).astype("f4")
    places, speeds, step = cantus.array(start), cantus.array(turning), 0.01
    # Leapfrog: half a step of speed, a step of place, half a step of speed.
    force = pull(places)
    for _ in range(steps):
        speeds = speeds + 0.5 * step * force
        places = (places + step * speeds).eval()
        force = pull(places)
        speeds = (speeds + 0.5 * step * force).eval()
    before, after = energy(start, turning), energy(np.asarray(places), np.asarray(speeds))
    print(f"{stars} stars, {steps} steps on {places.device}: energy {before:.6f}, then {after:.6f}")
    assert abs(after - before) < 1e-3 * abs(before)


if __name__ == "__main__":
    main()
