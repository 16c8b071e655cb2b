#!/usr/bin/env bash
# Programs of others that compute with wgpu, on the CPU device of Cantus and on llvmpipe (or whichever Vulkan device there is), in the same run:
#
#     crates/wgpu/strangers/run.sh [untouched | vello | train | operations | cubecl | sort | fft | physics | fluid]...
#
# None knows of Cantus: each is built with the wgpu-core of patch.sh, and CANTUS_WGPU=1 decides. `untouched` looks at what the patch changes. `vello` paints
# scenes and `train` a network of Burn's, whose results are compared; `operations` times those of benches/peers/burn. The others are the tests that CubeCL,
# lampshade, wgsl-fft, phyz-gpu and Dynamis carry, on each device. Ends with 1 if anything of ours failed.
#
# `wgpu` and `examples` are wgpu's own tests and examples, which no package has, and are not among those that run without a name. They come from wgpu's
# repository (WGPU_REPOSITORY is another address of it), at a commit some weeks before 30, and run with the published wgpu 30.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
work=${CARGO_TARGET_DIR:-$root/target}/strangers
export CARGO_TARGET_DIR=$work/target
mkdir -p "$work"
[ $# != 0 ] || set -- untouched vello train operations cubecl sort fft physics fluid
failed=0

# The patched wgpu-core, anew: cantus-hal may have changed.
rm -rf "$work/wgpu-core"
cargo fetch --quiet --locked --manifest-path "$here/Cargo.toml"
version=$(awk '/^name = "wgpu-core"$/ { getline; gsub(/[^0-9.]/, ""); print }' "$here/Cargo.lock")
CANTUS_HAL=$root/crates/hal sh "$here/../patch.sh" "$work/wgpu-core" "$version"

# What is built below that folder takes it. Others' code is built fast; ours, and what all shaders go through, as in a release.
mkdir -p "$work/.cargo"
{
    printf '[patch.crates-io]\nwgpu-core = { path = "%s" }\n' "$work/wgpu-core"
    printf '[profile.dev]\ndebug = false\n'
    printf '[profile.dev.package.%s]\nopt-level = 3\ncodegen-units = 1\ndebug-assertions = false\noverflow-checks = false\n' \
        cantus-base cantus-hal cantus-kernel cantus-spmd
    printf '[profile.dev.package.%s]\nopt-level = 2\n' naga wgpu-core
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

# compared NAME PROGRAM: what a program writes on each device.
compared() {
    local own=$work/$1-own other=$work/$1-other
    copy "$here" programs
    (cd "$work/programs" && cargo build --quiet -p strangers-compare)
    rm -rf "$own" "$other" && mkdir "$own" "$other"
    echo "- Cantus:"
    CANTUS_WGPU=1 VK_DRIVER_FILES=/dev/null "$CARGO_TARGET_DIR/debug/$2" "$own" || failed=1
    echo "- the other device:"
    CANTUS_WGPU=0 "$CARGO_TARGET_DIR/debug/$2" "$other" || echo "  it ended with $?"
    "$CARGO_TARGET_DIR/debug/strangers-compare" "$own" "$other" || failed=1
}

# The programs of benches/peers/burn.
burn() {
    copy "$root/benches/peers/burn" burn
    renewed burn
    (cd "$work/burn" && cargo build --quiet)
}

# Operations of `cantus bench`, and the side of each.
operations=(add:256 add_row:256 silu:256 gelu:256 softmax:256 reduce_rows:256 reduce_columns:256 cumsum:256 argmax:256 sort:256 topk:256 concat:256
    matmul:256 random:256 gather:256 conv2d:256 pool2d:256 bmm:64 attention:128)

# The median of each, in milliseconds.
medians() {
    local times
    printf '%s\n' "${operations[@]/%/:0.3}" | tr : ' ' | "$CARGO_TARGET_DIR/debug/peer-burn" | tail -n +2 | while read -ra times; do
        printf '%s\n' "${times[@]}" | sort -g | awk '{ all[NR] = $1 } END { printf "%.3f\n", 1000 * all[int((NR + 1) / 2)] }'
    done
}

# tested FOLDER ARGUMENTS…: what cargo says of tests, counts and those that failed.
tested() {
    (cd "$1" && shift && cargo test --no-fail-fast "$@" 2>&1) | { grep -E '^test result|FAILED|^error|signal' || true; }
    return "${PIPESTATUS[0]}"
}

# tests FOLDER ARGUMENTS…: a crate's tests on both devices, built before.
tests() {
    (cd "$1" && shift && cargo test --quiet --no-run "$@" 2>&1) | { grep -A 9 '^error' || true; }
    both tested "$@"
}

# wgpus: wgpu's tests and examples, as a workspace on the published wgpu 30. Tests run on the adapters that there are, where theirs read a file that a
# program of theirs has written.
wgpus() {
    local commit=1ab3b902895f56b02a2c91892444a85d9c200adf tree=$work/wgpu
    if [ "$(cat "$tree/commit" 2>/dev/null)" != $commit ]; then
        rm -rf "$tree" && git init --quiet "$tree"
        git -C "$tree" fetch --quiet --depth 1 "${WGPU_REPOSITORY:-https://github.com/gfx-rs/wgpu}" $commit
        git -C "$tree" -c advice.detachedHead=false checkout --quiet FETCH_HEAD -- Cargo.toml logo.png tests wgpu-macros wgpu-hal/examples wgpu-core/src/timestamp_normalization examples
        echo $commit >"$tree/commit"
        {
            printf '[workspace]\nmembers = ["tests", "wgpu-macros", "examples/features", "examples/standalone/01_hello_compute"]\nresolver = "2"\n'
            awk '/^\[workspace.package\]/ { on = 1 } /^\[patch/ { exit } on' "$tree/Cargo.toml" |
                sed -E -e '/path = "(\.\/)?(naga-test|naga\/|deno_|wgpu-core\/)/d' -e '/path = "\.\/(tests|wgpu-macros)"/!s/version = "[^"]*", path = "[^"]*"/version = "30"/'
        } >"$tree/manifest"
        mv "$tree/manifest" "$tree/Cargo.toml"
        sed -i 's/^wgpu = "29.*"/wgpu = "30"/' "$tree/examples/standalone/01_hello_compute/Cargo.toml"
        # Numbers that are the same in each run.
        sed -i 's/WyRand::new()/WyRand::new_seed(7)/' "$tree/examples/features/src/repeated_compute/mod.rs"
        # A name that changed before 30.
        grep -rlE 'TextureUsages::TRANSIENT\>' "$tree/tests" "$tree/examples" | xargs sed -i -E 's/(TextureUsages::TRANSIENT)\>/\1_ATTACHMENT/'
        perl -0pi -e 's/let config_text = .*?\n\n        report\n/
        let descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor { backends: wgpu::Backends::VULKAN, ..descriptor });
        let adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::VULKAN));
        GpuReport { devices: adapters.iter().map(AdapterReport::from_adapter).collect() }
/s' "$tree/tests/src/native.rs"
    fi
}

# each PROGRAM: wgpu's tests, each in a process of its own. Counts those that passed, those that draw (which the device refuses by a sentence), those that
# create a texture of a format that is not offered and those that wgpu leaves out here, and says why one failed. Fails where fewer than 95 of 100 passed.
each() {
    local name output code passed=0 failed=0 drawn=0 formats=0 out=0
    while read -r name; do
        case $name in
        '[Executed'*) ;;
        *)
            out=$((out + 1))
            continue
            ;;
        esac
        code=0
        output=$(timeout 300 "$1" --exact "$name" 2>&1 </dev/null) || code=$?
        if [ $code = 0 ]; then
            passed=$((passed + 1))
        elif grep -q 'runs compute pipelines only' <<<"$output"; then
            drawn=$((drawn + 1))
        elif grep -q 'are not allowed on a texture of type .* due to downlevel restrictions' <<<"$output"; then
            formats=$((formats + 1))
        else
            failed=$((failed + 1))
            echo "  ${name##* } ended with $code: $(grep -A 1 -m 1 'panicked at' <<<"$output" | tail -n 1 | cut -c 1-150)"
        fi
    done < <("$1" --list 2>/dev/null | sed -n 's/: test$//p')
    echo "  $passed passed, $failed failed, $drawn draw, $formats need a format that is missing, $out are left out by wgpu"
    [ $((20 * passed)) -ge $((19 * (passed + failed))) ]
}

# said PROGRAM ARGUMENTS…: the numbers that an example of wgpu's says, without times and the adapter.
said() {
    timeout 300 "$@" 2>&1 </dev/null | sed -nE -e '/RUNTIME/d' -e 's/^\[.* (INFO|ERROR) +wgpu_examples[^]]*\] //p' -e '/^(Result|Parsed)/p'
    return "${PIPESTATUS[0]}"
}

# examples: wgpu's examples that do not draw, and what they say on each device. big_compute_buffers is left out: it asks for arrays of bindings, which neither
# has. What hello_synchronization says of its hasty kernel is a race.
examples() {
    local name begin own=$work/said-own other=$work/said-other bin=$CARGO_TARGET_DIR/debug
    (cd "$work/wgpu" && cargo build --quiet -p wgpu-examples -p wgpu-example-01-hello-compute)
    for name in hello_compute repeated_compute hello_workgroups hello_synchronization storage_texture; do
        local call=("$bin/wgpu-examples" $name)
        [ $name != hello_compute ] || call=("$bin/wgpu-example-01-hello-compute" 1 2.5 -3 1e9)
        rm -rf "$work/pictures" && mkdir -p "$work/pictures/own" "$work/pictures/other"
        [ $name != storage_texture ] || call+=("$work/pictures/now.png")
        begin=$(date +%s%N)
        CANTUS_WGPU=1 VK_DRIVER_FILES=/dev/null said "${call[@]}" >"$own" || { echo "$name ended with $?" && failed=1; }
        local took=$((($(date +%s%N) - begin) / 1000000))
        [ ! -e "$work/pictures/now.png" ] || mv "$work/pictures/now.png" "$work/pictures/own"
        begin=$(date +%s%N)
        CANTUS_WGPU=0 said "${call[@]}" >"$other" || echo "$name ended with $? on the other device"
        echo "$name: $took ms, the other $((($(date +%s%N) - begin) / 1000000)) ms, $(wc -l <"$own") lines"
        [ ! -e "$work/pictures/now.png" ] || mv "$work/pictures/now.png" "$work/pictures/other"
        diff <(grep -vi hasty "$own") <(grep -vi hasty "$other") || failed=1
        [ $name != storage_texture ] || "$bin/strangers-compare" "$work"/pictures/{own,other} || failed=1
    done
}

for name in "$@"; do
    echo "## $name"
    case $name in
    untouched)
        copy "$here" programs
        (cd "$work/programs" && cargo build --quiet -p strangers-untouched)
        both "$CARGO_TARGET_DIR/debug/strangers-untouched"
        ;;
    vello)
        copy "$here" programs
        (cd "$work/programs" && cargo build --quiet -p strangers-vello)
        compared vello strangers-vello
        ;;
    train)
        burn
        compared train train-burn
        ;;
    operations)
        burn
        CANTUS_WGPU=1 VK_DRIVER_FILES=/dev/null medians >"$work/own" || failed=1
        CANTUS_WGPU=0 medians >"$work/other" || echo "the other device ended with $?"
        printf '%s\n' "${operations[@]}" | paste - "$work/own" "$work/other" |
            awk '{ printf "%s: %s ms, the other %s ms\n", $1, $2, $3; if ($3 > 0) { sum += log($2 / $3); n++ } }
                END { if (n) printf "geometric mean of the ratios: %.2f\n", exp(sum / n) }'
        ;;
    cubecl)
        published cubecl-wgpu 0.11.3
        renewed cubecl-wgpu
        # LLVM ends llvmpipe's process at 64-bit integers whose bits are reversed.
        tests "$work/cubecl-wgpu" --lib -- --skip test_reverse_bits
        ;;
    sort)
        published lampshade 0.13.0
        renewed lampshade
        tests "$work/lampshade" --tests
        ;;
    fft)
        # It is on wgpu 29, of which one function has another result in 30, and one structure another field.
        published wgsl-ping-pong-pipeline 0.1.1
        published wgsl-fft 0.5.1
        sed -i 's/^version = "29.*"/version = "30"/' "$work"/wgsl-*/Cargo.toml
        grep -rl 'get_mapped_range()' "$work"/wgsl-*/src | xargs sed -i 's/\.get_mapped_range()/&.unwrap()/'
        grep -rl 'force_fallback_adapter:' "$work"/wgsl-*/ --include='*.rs' | xargs sed -i 's/force_fallback_adapter: .*,/& apply_limit_buckets: false,/'
        printf '\n[patch.crates-io]\nwgsl-ping-pong-pipeline = { path = "../wgsl-ping-pong-pipeline" }\n' >>"$work/wgsl-fft/Cargo.toml"
        tests "$work/wgsl-fft" --tests
        ;;
    physics)
        # It is on wgpu 23: names and arguments have changed since.
        published phyz-gpu 0.1.0
        sed -i 's/^version = "23.*"/version = "30"/' "$work/phyz-gpu/Cargo.toml"
        sed -i -E -e 's/\.ok_or\(("Failed to find GPU adapter")\)/.map_err(|_| \1)/' -e 's/^            None,$//' -e 's/(memory_hints|force_fallback_adapter): .*,/& ..Default::default()/' \
            -e 's/push_constant_ranges: .*,/immediate_size: 0,/' -e 's/(bind_group_layouts: &\[)(.*)\],/\1Some(\2)],/' -e 's/Maintain::Wait/PollType::wait_indefinitely()/' \
            -e 's/get_mapped_range\(\)/&.unwrap()/' -e 's/\.poll\(.*\)/&.unwrap()/' -e '/backends:/{n;s/Default::default/wgpu::InstanceDescriptor::new_without_display_handle/}' \
            "$work"/phyz-gpu/src/*.rs
        tests "$work/phyz-gpu" --tests
        ;;
    fluid)
        published dynamis-world 0.7.0
        renewed dynamis-world
        tests "$work/dynamis-world" --test dynamis_world -- fluid --test-threads 1
        ;;
    wgpu)
        wgpus
        program=$(cd "$work/wgpu" && cargo test -p wgpu-test --test wgpu-gpu --no-run 2>&1 | sed -n 's/.*Executable .*(\(.*\))/\1/p')
        both each "$program"
        ;;
    examples)
        wgpus
        copy "$here" programs
        (cd "$work/programs" && cargo build --quiet -p strangers-compare)
        examples
        ;;
    *)
        echo "no such program: $name" >&2
        exit 2
        ;;
    esac
done
exit $failed
