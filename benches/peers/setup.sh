#!/usr/bin/env bash
# Makes the peers of the benches: NumPy, PyTorch, JAX and numba in a Python environment, and with `setup.sh burn` Burn's program too (minutes of compiling).
set -euo pipefail
cd "$(dirname "$0")"
python3 -m venv .venv
.venv/bin/pip install --quiet --disable-pip-version-check 'numpy==2.3.5' 'torch==2.15.*' 'jax[cpu]==0.10.*' 'numba==0.68.*' 'array-api-compat==1.*'
if [ "${1:-}" = burn ]; then
    cargo build --release --manifest-path burn/Cargo.toml
fi
