"""Heat spreads along a rod: the app's own kernel runs again and again, and operations of the library at the end."""

from pathlib import Path

import cantus
import numpy as np

CELLS = 256


def main() -> None:
    step = cantus.kernel(path=Path(__file__).with_name("step.wgsl"))
    cells = np.zeros(CELLS, "f4")
    cells[CELLS // 2] = 100
    now, following = cantus.array(cells), cantus.zeros(CELLS)
    for _ in range(500):
        step(before=now, after=following, rate=0.25, invocations=CELLS)
        now, following = following, now

    total, warmest = float(cantus.sum(now)), float(cantus.max(now))
    print(f"{now.device}: {total:.3f} in all, {warmest:.3f} where it is warmest")
    assert abs(total - 100) < 0.01, "heat got lost"


if __name__ == "__main__":
    main()
