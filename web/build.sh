#!/usr/bin/env bash
# Builds all of web/: the two .wasm modules, the npm package (npm/, pkg/) and the page (dist/, for any static host and any path; ./serve serves it). Needs Rust 1.95 with the target
# wasm32-unknown-unknown, Node 20.19 and npm; on Debian as root it installs what is missing. `--quick` builds unoptimised modules.
set -euo pipefail
cd "$(dirname "$0")"
profile=release
[ "${1:-}" != --quick ] || profile=quick

. ../.ci/shell.sh
# Node: the system's where it is new enough for Vite, npm's own package of it otherwise.
command -v npm >/dev/null || packages nodejs npm
. ./node.sh

[ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --no-audit --no-fund

# With SIMD, which every browser has had for years: the CPU's kernels run two to three times as fast.
export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS="-C target-feature=+simd128"
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
node compress.mjs "$@"
ls -l pkg/*/cantus_bg.wasm
