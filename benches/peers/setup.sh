#!/usr/bin/env bash
# Makes the Python environment of the benches' peers.
set -euo pipefail
cd "$(dirname "$0")"
python3 -m venv .venv
.venv/bin/pip install --quiet --disable-pip-version-check numpy==2.3.5
