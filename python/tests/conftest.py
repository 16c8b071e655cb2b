"""Each test that takes `device` runs on every device of CANTUS_TEST_DEVICES, which is the CPU alone without it."""

from __future__ import annotations

import os

import pytest

import cantus

DEVICES = os.environ.get("CANTUS_TEST_DEVICES", "cpu").split(",")


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> cantus.Device:
    with cantus.device(request.param) as chosen:
        yield chosen
