#!/usr/bin/env bash
# Programs of others that compute with wgpu, on the CPU device of Cantus and on llvmpipe (or whichever Vulkan device there is), in the same run:
#
#     crates/wgpu/strangers/run.sh [vello | cubecl | physics]...
#
# None knows of Cantus: each is built with the wgpu-core of patch.sh, and CANTUS_WGPU=1 decides. `vello` paints scenes, which are compared. `cubecl` and
# `physics` are the tests that CubeCL and Dynamis carry, on each device. Ends with 1 if anything of ours failed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
work=${CARGO_TARGET_DIR:-$root/target}/strangers
export CARGO_TARGET_DIR=$work/target
mkdir -p "$work"
[ $# != 0 ] || set -- vello cubecl physics
failed=0

# The patched wgpu-core, anew: cantus-hal may have changed.
rm -rf "$work/wgpu-core"
cargo fetch --quiet --locked --manifest-path "$here/Cargo.toml"
version=$(awk '/^name = "wgpu-core"$/ { getline; gsub(/[^0-9.]/, ""); print }' "$here/Cargo.lock")
CANTUS_HAL=$root/crates/hal sh "$here/../patch.sh" "$work/wgpu-core" "$version"

# What is built below that folder takes it. Others' code is built fast, and ours as in a release.
mkdir -p "$work/.cargo"
{
    printf '[patch.crates-io]\nwgpu-core = { path = "%s" }\n' "$work/wgpu-core"
    printf '[profile.dev]\ndebug = false\n'
    printf '[profile.dev.package.%s]\nopt-level = 3\ncodegen-units = 1\n' cantus-base cantus-hal cantus-kernel cantus-spmd
} >"$work/.cargo/config.toml"

# copy FOLDER NAME: a copy in $work; its lock stays where it is.
copy() {
    rm -rf "${work:?}/$2"
    cp -R "$1" "$work/$2"
    rm -rf "$work/$2/target"
    chmod -R u+w "$work/$2"
}

# published NAME VERSION: a copy of a published crate, with an empty workspace, as it lies within another's folder.
published() {
    local fetch=$work/fetch
    rm -rf "$fetch" && mkdir -p "$fetch/src" && touch "$fetch/src/lib.rs"
    printf '[package]\nname = "fetch"\nedition = "2024"\n[workspace]\n[dependencies]\n%s = "=%s"\n' "$1" "$2" >"$fetch/Cargo.toml"
    cargo fetch --quiet --manifest-path "$fetch/Cargo.toml"
    copy "$(ls -d "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/"$1-$2" | head -n 1)" "$1"
    printf '\n[workspace]\n' >>"$work/$1/Cargo.toml"
}

# renewed NAME: what the lock that came with it says of wgpu-core, anew.
renewed() {
    (cd "$work/$1" && cargo update --quiet wgpu-core)
}

# both COMMAND…: on ours, then on the other device.
both() {
    local begin=$SECONDS
    echo "- Cantus:"
    CANTUS_WGPU=1 VK_DRIVER_FILES=/dev/null "$@" || failed=1
    echo "  $((SECONDS - begin)) s"
    begin=$SECONDS
    echo "- the other device:"
    CANTUS_WGPU=0 "$@" || echo "  it ended with $?"
    echo "  $((SECONDS - begin)) s"
}

# computed NAME: a program of this folder, whose files are compared.
computed() {
    local own other
    copy "$here" programs
    (cd "$work/programs" && cargo build --quiet -p "strangers-$1" -p strangers-compare)
    own=$work/$1-own other=$work/$1-other
    rm -rf "$own" "$other" && mkdir "$own" "$other"
    echo "- Cantus:"
    CANTUS_WGPU=1 VK_DRIVER_FILES=/dev/null "$CARGO_TARGET_DIR/debug/strangers-$1" "$own" || failed=1
    echo "- the other device:"
    CANTUS_WGPU=0 "$CARGO_TARGET_DIR/debug/strangers-$1" "$other" || echo "  it ended with $?"
    "$CARGO_TARGET_DIR/debug/strangers-compare" "$own" "$other" || failed=1
}

# What cargo says of tests: counts, and those that failed.
tested() {
    (cd "$1" && shift && cargo test --no-fail-fast "$@" 2>&1) | { grep -E '^test result|FAILED|^error|signal' || true; }
    return "${PIPESTATUS[0]}"
}

for name in "$@"; do
    echo "## $name"
    case $name in
    vello) computed "$name" ;;
    cubecl)
        published cubecl-wgpu 0.11.3
        renewed cubecl-wgpu
        # LLVM ends llvmpipe's process at 64-bit integers whose bits are reversed.
        both tested "$work/cubecl-wgpu" --lib -- --skip test_reverse_bits
        ;;
    physics)
        published dynamis-world 0.7.0
        renewed dynamis-world
        both tested "$work/dynamis-world" --test dynamis_world
        ;;
    *)
        echo "no such program: $name" >&2
        exit 2
        ;;
    esac
done
exit $failed
