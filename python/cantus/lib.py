"""Windows, under the name that libraries look for in an array's module: NumPy's `lib`."""

from __future__ import annotations

import numpy as np


class stride_tricks:
    """As `numpy.lib.stride_tricks`; windows are copies.

    >>> import cantus
    >>> cantus.lib.stride_tricks.sliding_window_view(cantus.arange(4), 2).tolist()
    [[0, 1], [1, 2], [2, 3]]
    """

    sliding_window_view = staticmethod(np.lib.stride_tricks.sliding_window_view)
