#!/usr/bin/env bash
# Runs the tests of web/ in headless Chromium, with WebGPU on SwiftShader and without WebGPU. Build first: ./build.sh. On Debian as
# root it installs Chromium. CANTUS names the program whose pictures are compared (built from here where left out), CHROMIUM a browser;
# CANTUS_SCREENSHOTS=1 writes web/screenshots anew.
set -euo pipefail
cd "$(dirname "$0")"
. ./node.sh

if [ -z "${CHROMIUM:-}" ] && ! command -v chromium >/dev/null && ! command -v google-chrome >/dev/null; then
    [ "$(id -u)" = 0 ] || { echo "needs Chromium: install it, or name one in CHROMIUM"; exit 1; }
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null
fi
if [ -z "${CANTUS:-}" ]; then
    cd ..
    cargo build --locked --quiet --bin cantus
    CANTUS=$(realpath "${CARGO_TARGET_DIR:-target}")/debug/cantus
    export CANTUS
    cd web
fi
# One after another: they share two cores with a GPU in software.
node --test --test-concurrency=1 --test-reporter=spec tests/*.test.mjs
