#!/usr/bin/env bash
# Builds all of web/: the four .wasm modules, the npm package (npm/, pkg/) and the page (dist/, for any static host and any path; ./serve
# serves it). Needs Rust 1.95 with the target wasm32-unknown-unknown, Node 20.19 and npm. The module with threads builds Rust's own library
# again, which takes its sources (rustup component add rust-src; Debian: rust-web-src): without them the build ends at once and says so. On
# Debian as root it installs what is missing. `--quick` is for the tests: larger modules, of which the playground's serves for the proofs too.
set -euo pipefail
cd "$(dirname "$0")"
profile=release
features=playground
if [ "${1:-}" = --quick ]; then
    profile=quick
    # Both of the page's modules, with threads and without, as they have one type.
    features=playground,zk
fi
# Written last: without it nothing is tested.
rm -f pkg/profile

. ../.ci/shell.sh
# Node: the system's where it is new enough for Vite, npm's own package of it otherwise.
command -v npm >/dev/null || packages nodejs npm
. ./node.sh

[ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --no-audit --no-fund

# What is missing is said, or on Debian installed, before anything is built.
CANTUS_CROSS_STD=1 ../.ci/cross wasm32-unknown-unknown fetch --locked --quiet
# module FOLDERS TARGETS FLAGS ARGUMENTS…: builds a module, and binds it into these folders of pkg.
module() {
    local folders=$1 targets=$2 flags=$3 folder
    shift 3
    CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS=$flags CARGO_TARGET_DIR=$targets ../.ci/cross wasm32-unknown-unknown build --locked --profile "$profile" --package cantus-web "$@" || return
    for folder in $folders; do
        ../target/tools/tool/cantus-bindgen "$targets/wasm32-unknown-unknown/$profile/cantus_web.wasm" "pkg/$folder" || return
    done
}
others() {
    module field ../target/cross "$simd" || return
    if [ "$profile" = quick ]; then
        module "playground proofs" ../target/cross "$simd" --features "$features"
    else
        module playground ../target/cross "$simd" --features "$features" || return
        # Sums of points run by the executor: the operations on tensors, and what plans them, are only to be small.
        module proofs ../target/cross "$simd" --config 'profile.release.package.cantus-cpu.opt-level="z"' \
            --config 'profile.release.package.cantus-engine.opt-level="z"' --features zk
    fi
}
# With SIMD, which every browser has had for years: the CPU's kernels run two to three times as fast.
simd="-C target-feature=+simd128"
# Memory that workers share.
shared="$simd,+atomics,+bulk-memory,+mutable-globals -C link-arg=--shared-memory -C link-arg=--import-memory -C link-arg=--max-memory=4294967296
    -C link-arg=--export=__wasm_init_tls -C link-arg=--export=__tls_size -C link-arg=--export=__tls_align -C link-arg=--export=__tls_base"

cargo build --locked --package cantus-bindgen --profile tool --target-dir ../target/tools
# The CPU's module with threads, for pages that are isolated.
threads() {
    CANTUS_CROSS_STD=1 module threads "$1" "$shared" --no-default-features --features "$features"
}
if [ "$profile" = quick ]; then
    # One after another: macros and what else runs here are built once.
    others
    threads ../target/cross
else
    # Beside each other: each is linked for minutes on one processor.
    built=yes
    threads ../target/cross-threads &
    others || built=
    wait "$!" || built=
    [ -n "$built" ]
fi

npx tsc --noEmit
npx tsc -p lib
npx vite build --logLevel warn
node compress.mjs "$@"
ls -l pkg/*/cantus_bg.wasm
echo "$profile" >pkg/profile
