"""Types: twenty programs under `mypy --strict`, and under pyright where it is installed; they run as well."""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).with_name("typed_programs.py")


def test_the_programs_run():
    runpy.run_path(str(PROGRAMS))


def test_the_programs_have_types():
    pytest.importorskip("mypy")
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", str(PROGRAMS)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_pyright_agrees(tmp_path):
    pyright = shutil.which("pyright")
    if pyright is None:
        pytest.skip("pyright is not installed")
    done = subprocess.run([pyright, "--pythonpath", sys.executable, str(PROGRAMS)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_mistake_is_found(tmp_path):
    """The check can fail: an array is no text."""
    pytest.importorskip("mypy")
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import cantus\n\nx: str = cantus.ones(3) - cantus.ones(3)\n")
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", str(wrong)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 1 and "Array" in done.stdout, done.stdout + done.stderr
