#!/usr/bin/env bash
# Runs the tests of web/ in headless Chromium, with WebGPU on SwiftShader and without WebGPU. Build first: ./build.sh. On Debian as
# root it installs Chromium. CANTUS names the program whose pictures are compared (built from here where left out), CHROMIUM a browser;
# CANTUS_SCREENSHOTS=1 writes web/screenshots anew. The gallery's pieces take turns (CANTUS_TURN=N names one); CANTUS_TESTS=all runs all of them.
set -euo pipefail
cd "$(dirname "$0")"
[ -e pkg/profile ] || { echo "there is no whole build of the page: run web/build.sh" >&2; exit 1; }
. ./node.sh
. ../.ci/shell.sh

if [ -z "${CHROMIUM:-}" ] && ! command -v chromium >/dev/null && ! command -v google-chrome >/dev/null; then
    packages chromium fonts-dejavu-core || { echo "or name a browser in CHROMIUM" >&2; exit 1; }
fi
if [ -z "${CANTUS:-}" ]; then
    cd ..
    cargo build --locked --quiet --bin cantus
    CANTUS=$(realpath "${CARGO_TARGET_DIR:-target}")/debug/cantus
    export CANTUS
    cd web
fi
take_turn
# One after another: they share two cores with a GPU in software.
node --test --test-concurrency=1 --test-reporter=spec tests/*.test.mjs
echo "turn $CANTUS_TURN (CANTUS_TURN=$CANTUS_TURN repeats it)"
