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

# The modules: the installed target where there is one, Debian's Rust and its library sources otherwise.
module() {
    local flags=(build --locked --profile "$profile" --target wasm32-unknown-unknown --package cantus-web --features "$1")
    if rustc --print target-libdir --target wasm32-unknown-unknown 2>/dev/null | xargs test -d; then
        CARGO_TARGET_DIR=../target/web cargo "${flags[@]}"
        built=../target/web
    else
        if ! [ -x /usr/bin/rustc ] || ! [ -d /usr/share/doc/rust-web-src ] || ! command -v wasm-ld-19 >/dev/null; then
            install rustc-web cargo-web rust-web-src libstd-rust-web-dev rust-web-llvm lld-19
        fi
        (
            hash -r
            export RUSTC_BOOTSTRAP=1 RUSTC CARGO_TARGET_DIR=../target/cross CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=wasm-ld-19
            RUSTC=$(command -pv rustc)
            "$(command -pv cargo)" "${flags[@]}" -Z build-std=std,panic_abort
        )
        built=../target/cross
    fi
}

cargo build --locked --package cantus-bindgen --profile tool --target-dir ../target/tools
for build in field playground; do
    features=
    [ "$build" = field ] || features=$build
    module "$features"
    ../target/tools/tool/cantus-bindgen "$built/wasm32-unknown-unknown/$profile/cantus_web.wasm" "pkg/$build"
done

npx tsc --noEmit
npx tsc -p lib
npx vite build --logLevel warn
ls -l pkg/*/cantus_bg.wasm
