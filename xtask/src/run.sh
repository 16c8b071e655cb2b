#!/bin/bash
# Checks and measures this machine's devices with the programs beside it: no source, no Rust, no network.
#
#   ./run.sh [FOLDER]     FOLDER takes report.md and report.json [default: report, beside this file]
#
# What tells most comes first: the rows of `cantus bench` on each backend of a GPU beside PyTorch's times or recorded ones, what apps feel of each
# backend, whether each device is right, programs in Python, textures, small dispatches, every dtype and shape, and everything else. The folder's rows-*.json
# and backends.json have the form that benches/tables.py reads.
#
# CANTUS_BUNDLE_SECONDS bounds a call [default: 540]; each part has a share of it. A part that fails, crashes or hangs is a line of the report, and the
# next one runs. Another call with the same folder goes on: parts that ended are kept, those that were stopped or not begun run, and rows that were timed
# are not timed again. CANTUS_BUNDLE_FRESH=1 starts over. Where a device is hardware, software devices (llvmpipe, PoCL) are left out, but for `cpu`.
# CANTUS_BUNDLE_SIDES, such as 64, replaces the sizes of the rows, for a trial.
#
# The folder debs holds Debian packages (a Vulkan loader, say), and wheels the Python package; both are unpacked into FOLDER/parts.
# Exit code: 0 all is right, 1 something is not.
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/report}
for packed in "$here"/*.gz; do
    [ ! -e "$packed" ] || gunzip --force "$packed" || exit 1
done
mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd)
parts=$out/parts
[ "${CANTUS_BUNDLE_FRESH:-0}" = 0 ] || rm -rf "$parts" || exit 1
mkdir -p "$parts" || exit 1
whole=${CANTUS_BUNDLE_SECONDS:-540}
sides=${CANTUS_BUNDLE_SIDES:-}
export XDG_CACHE_HOME="$parts/cache" HOME="${HOME:-$parts}" PATH="$here:$PATH"
chmod 700 "$parts" && mkdir -m 700 -p "$XDG_CACHE_HOME"

for package in "$here"/debs/*.deb; do
    [ -e "$package" ] && [ ! -e "$parts/packages/$(basename "$package")" ] || continue
    dpkg-deb -x "$package" "$parts/packages" 2>>"$parts/packages.log" || echo "$(basename "$package") could not be unpacked" >>"$parts/packages.log"
    : >"$parts/packages/$(basename "$package")"
done
if [ -d "$parts/packages" ]; then
    for folder in "$parts"/packages/usr/lib/*-linux-gnu "$parts"/packages/usr/lib; do
        [ -d "$folder" ] && LD_LIBRARY_PATH="$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    done
    export LD_LIBRARY_PATH
fi
for wheel in "$here"/wheels/*.whl; do
    [ -e "$wheel" ] && [ ! -d "$parts/python" ] || continue
    python3 -m pip install --quiet --no-index --no-deps --target "$parts/python" "$wheel" 2>>"$parts/packages.log" || rm -rf "$parts/python"
done
[ ! -d "$parts/python" ] || export PYTHONPATH="$parts/python${PYTHONPATH:+:$PYTHONPATH}"

# part NAME SHARE COMMAND…: at most SHARE thousandths of the time; what it prints goes to NAME.log, and how it ended to NAME.state.
part() {
    local name=$1 seconds=$(($2 * whole / 1000)) started=$SECONDS state
    shift 2
    echo "$name" >>"$parts/names.new"
    case $(cut -f1 "$parts/$name.state" 2>/dev/null) in
        right | wrong | ended*) echo "$name, as it was: $(cut -f1 "$parts/$name.state")" && return ;;
    esac
    [ "$seconds" -le $((whole - SECONDS)) ] || seconds=$((whole - SECONDS))
    # With little time left, a part is stopped or not begun.
    [ "$seconds" -gt 0 ] || { [ "$SECONDS" -lt "$whole" ] && seconds=1; }
    if [ "$seconds" -le 0 ]; then
        [ -e "$parts/$name.state" ] || printf 'not begun\t0\n' >"$parts/$name.state"
        return
    fi
    echo "$name, at most $seconds s"
    timeout --kill-after=5 "$seconds" "$@" >"$parts/$name.log" 2>"$parts/$name.err" </dev/null
    state=$?
    case $state in
        0) state=right ;;
        124 | 137) state="stopped after $seconds s" ;;
        1) state=wrong ;;
        *) state="ended with $state" ;;
    esac
    printf '%s\t%s\n' "$state" $((SECONDS - started)) >"$parts/$name.state"
    echo "  $state, $((SECONDS - started)) s"
}

# without NAME REASON: a line of the report for a part that cannot run here.
without() {
    echo "$1" >>"$parts/names.new"
    printf 'not run: %s\t0\n' "$2" >"$parts/$1.state"
    echo "$1, not run: $2"
}

rm -f "$parts/names.new"
part devices 20 cantus devices -v
cantus devices --json >"$parts/devices.json" 2>/dev/null </dev/null || rm -f "$parts/devices.json"
# A backend without a device is no such line of `cantus devices`.
has() { grep -q "^[* ] $1 [0-9]" "$parts/devices.log"; }
is_hardware() { grep "^[* ] $1 [0-9]" "$parts/devices.log" | grep -q 'discrete gpu\|integrated gpu\|virtual gpu'; }
hardware=0
for backend in cuda hip vulkan wgpu opencl; do
    ! is_hardware $backend || hardware=1
done
# counts PART BACKEND: true for a device that is worth a GPU's minutes.
counts() {
    if ! has "$2"; then
        without "$1-$2" "no device"
    elif [ $hardware = 1 ] && ! is_hardware "$2"; then
        without "$1-$2" "the device is software"
    else
        return 0
    fi
    return 1
}
if [ $hardware = 1 ] && [ -d /etc/OpenCL/vendors ]; then
    # The loader sees all drivers but PoCL's.
    mkdir -p "$parts/vendors"
    for file in /etc/OpenCL/vendors/*.icd; do
        [ ! -e "$file" ] || grep -qi pocl "$file" || cp "$file" "$parts/vendors/"
    done
    export OCL_ICD_VENDORS="$parts/vendors"
fi

# The rows: by cuda beside PyTorch, where there is one for the GPU; by the others beside the times that PyTorch then had, or the recorded ones.
recorded=$here/peers/operations-h100.json
if [ -x "$here/operations" ]; then
    for backend in cuda hip vulkan wgpu opencl; do
        counts rows $backend || continue
        beside=(--beside="$recorded")
        if [ $backend = cuda ] && python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
            export CANTUS_BENCH_PYTHON=python3 CANTUS_BENCH_PEERS=$here/peers
            beside=()
        elif [ -s "$parts/rows-cuda.json" ]; then
            beside=(--beside="$parts/rows-cuda.json")
        fi
        part "rows-$backend" 110 "$here/operations" --backend=$backend --json="$parts/rows-$backend.json" "${beside[@]}" "" "$sides" 2
    done
fi
[ ! -x "$here/backends" ] || part backends 50 "$here/backends" --json="$parts/backends.json" "" 5
for backend in cuda hip vulkan wgpu opencl cpu; do
    [ $backend = cpu ] || counts verify $backend || continue
    part "verify-$backend" 110 cantus verify --backend "$backend" -o "$parts/verify-$backend.json"
done
# By the Python package: programs in NumPy's style, beside PyTorch where there is one, and every dtype and shape.
reason=
[ -d "$here/programs" ] || reason="the bundle has no programs in Python"
[ -n "$reason" ] || reason=$(python3 -c 'import numpy, cantus' 2>&1 | tail -n 1)
for backend in cuda vulkan; do
    if [ -n "$reason" ]; then
        without "programs-$backend" "$reason"
        without "shapes-$backend" "$reason"
        continue
    fi
    if counts programs $backend; then
        peers=(numpy)
        ! python3 -c 'import torch' 2>/dev/null || peers=(torch)
        peer=cpu
        ! is_hardware cuda || peer=cuda
        part "programs-$backend" 90 env CANTUS_DEVICE=$backend CANTUS_PEER_DEVICE=$peer python3 "$here/programs/run.py" --peers "${peers[@]}" --rounds 2 --runs 2 --json "$parts/programs-$backend.json"
    fi
    ! counts shapes $backend || part "shapes-$backend" 60 env CANTUS_DEVICE=$backend python3 "$here/programs/shapes.py" --rows 120 --seconds 0.05 --json "$parts/shapes-$backend.json"
done
for backend in vulkan wgpu; do
    [ -x "$here/textures" ] && counts textures $backend || continue
    part "textures-$backend" 40 "$here/textures" --backend=$backend 3
done
# The names of wgpu's adapters end with the API.
[ ! -x "$here/small_dispatch" ] || part small_dispatch 50 "$here/small_dispatch" 5
for backend in cuda hip; do
    ! has $backend || part "bench-$backend" 90 cantus bench --backend "$backend" --limit "$((80 * whole / 1000))s" --json "$parts/bench-$backend.json"
done
[ ! -x "$here/tensor_ops" ] || part tensor_ops 250 "$here/tensor_ops" --test-threads 2
part bench 120 cantus bench --limit "$((100 * whole / 1000))s" --json "$parts/bench.json"

# A string of JSON.
quoted() {
    local text=${1//\\/\\\\}
    text=${text//\"/\\\"}
    printf '"%s"' "${text//[$'\001'-$'\037']/ }"
}
mapfile -t names <"$parts/names.new"
failed=0 count=0
{
    echo '{'
    echo "  \"system\": $(quoted "$(uname -srm)"),"
    echo '  "parts": {'
    for name in "${names[@]}"; do
        count=$((count + 1))
        comma=,
        [ $count -lt ${#names[@]} ] || comma=
        IFS=$'\t' read -r state seconds <"$parts/$name.state"
        [[ "$state" = right || "$state" = "not run: "* ]] || failed=1
        echo "    $(quoted "$name"): { \"state\": $(quoted "$state"), \"seconds\": $seconds }$comma"
    done
    printf '  }'
    for file in "$parts"/*.json; do
        [ -s "$file" ] || continue
        printf ',\n  %s: ' "$(quoted "$(basename "$file" .json)")"
        cat "$file"
    done
    printf '\n}\n'
} >"$out/report.json.tmp" && mv "$out/report.json.tmp" "$out/report.json"
{
    echo "# Cantus on $(uname -srm)"
    echo
    echo '| part | outcome | seconds |'
    echo '| --- | --- | --- |'
    for name in "${names[@]}"; do
        IFS=$'\t' read -r state seconds <"$parts/$name.state"
        echo "| $name | $state | $seconds |"
    done
    for name in "${names[@]}"; do
        printf '\n## %s\n\n```\n' "$name"
        tail -c 20000 "$parts/$name.log" 2>/dev/null
        grep -q '^\(right\|not run\)' "$parts/$name.state" || tail -c 4000 "$parts/$name.err" 2>/dev/null
        printf '\n```\n'
    done
} >"$out/report.md.tmp" && mv "$out/report.md.tmp" "$out/report.md"
# What drivers have compiled serves the next call of parts that were stopped.
grep -q '^\(stopped\|not begun\)' "$parts"/*.state || rm -rf "$parts/cache"
echo "wrote $out/report.md and $out/report.json"
exit "$failed"
