"""A profile of the device's work, as a table and as a file for Perfetto; and scopes that free memory."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from . import _devices


class Profile(_devices.Table):
    """Times by operation and device, the longest first."""

    columns = ("operation", "device", "count", "milliseconds", "GB/s", "GFLOP/s")

    def __init__(self, rows: list[Any], seconds: float, trace: str) -> None:
        super().__init__(
            {
                "operation": operation,
                "device": device,
                "count": count,
                "milliseconds": f"{1000 * total:.3f}",
                "GB/s": None if bandwidth is None else f"{bandwidth:.1f}",
                "GFLOP/s": None if rate is None else f"{rate:.1f}",
            }
            for operation, device, count, total, bandwidth, rate in rows
        )
        self.seconds = seconds
        self._trace = trace

    def save(self, path: str) -> None:
        """Writes a trace for Perfetto's and Chrome's viewers."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._trace)


def profile(work: Callable[[], Any], *, device: Any = None) -> Profile:
    """Calls `work` and shows the work of the device. Arrays are lazy, so read or `eval` them within. Devices other than the CPU time their kernels where
    the environment has CANTUS_PROFILE=1 when Cantus is first used; a RuntimeError says so. On the CPU this variable also turns arithmetic of few numbers,
    which is computed when it is called, into work that is listed.

    >>> import cantus
    >>> found = cantus.profile(lambda: cantus.exp(cantus.ones(1000)).eval())
    >>> len(found) > 0
    True
    """
    return Profile(*_devices.device(device).engine.profile(work))


@contextmanager
def memory_scope(*, device: Any = None) -> Iterator[None]:
    """Returns unused memory to the system at its end.

    >>> import cantus
    >>> with cantus.memory_scope():
    ...     total = float(cantus.sum(cantus.ones(1000)))
    """
    try:
        yield
    finally:
        gc.collect(0)
        _devices.device(device).engine.trim()
