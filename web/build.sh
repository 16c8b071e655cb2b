#!/usr/bin/env bash
# Builds all of web/: the two .wasm modules, the npm package (npm/, pkg/) and the page (dist/). Needs Rust 1.95 with the target
# wasm32-unknown-unknown, Node 20.19 and npm; on Debian as root it installs what is missing. `--quick` builds unoptimised modules.
set -euo pipefail
cd "$(dirname "$0")"
profile=release
[ "${1:-}" != --quick ] || profile=quick

install() {
    [ "$(id -u)" = 0 ] || { echo "needs $*: install it, or run this as root on Debian"; exit 1; }
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# Node: the system's where it is new enough for Vite, npm's own package of it otherwise.
command -v npm >/dev/null || install nodejs npm
. ./node.sh

[ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --no-audit --no-fund

module() {
    CARGO_TARGET_DIR=../target/cross ../.ci/cross wasm32-unknown-unknown build --locked --profile "$profile" --package cantus-web --features "$1"
}

cargo build --locked --package cantus-bindgen --profile tool --target-dir ../target/tools
for build in field playground; do
    features=
    [ "$build" = field ] || features=$build
    module "$features"
    ../target/tools/tool/cantus-bindgen "../target/cross/wasm32-unknown-unknown/$profile/cantus_web.wasm" "pkg/$build"
done

npx tsc --noEmit
npx tsc -p lib
npx vite build --logLevel warn
ls -l pkg/*/cantus_bg.wasm
