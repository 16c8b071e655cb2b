"""Each test that takes `device` runs on every device of CANTUS_TEST_DEVICES, which is the CPU alone without it. Of the devices behind the first a
share of these tests runs, one in CANTUS_TEST_SHARE (1: all of them), chosen by CANTUS_TEST_SEED: their compilers take long.
"""

from __future__ import annotations

import os
import zlib

# Read by SciPy when it is imported.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import pytest  # noqa: E402

import cantus  # noqa: E402

DEVICES = os.environ.get("CANTUS_TEST_DEVICES", "cpu").split(",")
SHARE = int(os.environ.get("CANTUS_TEST_SHARE", "1"))
SEED = os.environ.get("CANTUS_TEST_SEED", "")


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> cantus.Device:
    with cantus.device(request.param) as chosen:
        yield chosen


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    def runs(item: pytest.Item) -> bool:
        parameters = getattr(item, "callspec", None)
        if parameters is None or parameters.params.get("device", DEVICES[0]) == DEVICES[0]:
            return True
        return zlib.crc32(f"{item.nodeid} {SEED}".encode()) % SHARE == 0

    left = [item for item in items if not runs(item)]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if runs(item)]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Writes each skipped test to CANTUS_SKIPS, which ./test lists at its end."""
    path = os.environ.get("CANTUS_SKIPS")
    if path and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        why = " ".join(reason.removeprefix("Skipped: ").split())
        with open(path, "a", encoding="utf-8") as skips:
            skips.write(f"{report.nodeid}\t{why}\n")
