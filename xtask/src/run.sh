#!/bin/bash
# Checks and measures this machine's devices with the programs beside it: no source, no Rust, no network.
#
#   ./run.sh [FOLDER]     FOLDER takes report.md and report.json [default: report, beside this file]
#
# CANTUS_BUNDLE_SECONDS bounds the whole [default: 540]; each part has a share of it. A part that fails, crashes or hangs is a line of the
# report, and the next one runs. The folder debs holds Debian packages (a Vulkan loader, say); they are unpacked beside the report.
# Exit code: 0 all is right, 1 something is not.
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/report}
mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd)
parts=$out/parts
rm -rf "$parts" && mkdir -p "$parts" || exit 1
whole=${CANTUS_BUNDLE_SECONDS:-540}
export XDG_CACHE_HOME="$parts/cache" HOME="${HOME:-$parts}" PATH="$here:$PATH"
chmod 700 "$parts" && mkdir -m 700 -p "$XDG_CACHE_HOME"

for package in "$here"/debs/*.deb; do
    [ -e "$package" ] || continue
    dpkg-deb -x "$package" "$parts/packages" 2>>"$parts/packages.log" || echo "$(basename "$package") could not be unpacked" >>"$parts/packages.log"
done
if [ -d "$parts/packages" ]; then
    for folder in "$parts"/packages/usr/lib/*-linux-gnu "$parts"/packages/usr/lib; do
        [ -d "$folder" ] && LD_LIBRARY_PATH="$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    done
    export LD_LIBRARY_PATH
fi

names=() states=() times=() failed=0
# part NAME SHARE COMMAND…: at most SHARE thousandths of the time; what it prints goes to NAME.log.
part() {
    local name=$1 seconds=$(($2 * whole / 1000)) started=$SECONDS state
    shift 2
    [ "$seconds" -gt 0 ] || seconds=1
    echo "$name, at most $seconds s"
    timeout --kill-after=5 "$seconds" "$@" >"$parts/$name.log" 2>"$parts/$name.err" </dev/null
    state=$?
    case $state in
        0) state=right ;;
        124 | 137) state="stopped after $seconds s" ;;
        1) state=wrong ;;
        *) state="ended with $state" ;;
    esac
    [ "$state" = right ] || failed=1
    names+=("$name") states+=("$state") times+=($((SECONDS - started)))
    echo "  $state, $((SECONDS - started)) s"
}

part devices 20 cantus devices -v
cantus devices --json >"$parts/devices.json" 2>/dev/null </dev/null || rm -f "$parts/devices.json"
for backend in cuda hip vulkan wgpu opencl cpu; do
    # A backend without a device is a line of `cantus devices`.
    grep -q "^[* ] $backend [0-9]" "$parts/devices.log" || continue
    part "verify-$backend" 120 cantus verify --backend "$backend" -o "$parts/verify-$backend.json"
done
for backend in cuda hip; do
    grep -q "^[* ] $backend [0-9]" "$parts/devices.log" || continue
    part "bench-$backend" 100 cantus bench --backend "$backend" --limit "$((90 * whole / 1000))s" --json "$parts/bench-$backend.json"
done
# Beside PyTorch, where there is one for the GPU.
if [ -x "$here/operations" ] && grep -q '^[* ] cuda [0-9]' "$parts/devices.log" && python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
    export CANTUS_BENCH_PYTHON=python3 CANTUS_BENCH_PEERS=$here/peers
    part operations 120 "$here/operations" --backend=cuda "" "" 2
fi
[ ! -x "$here/tensor_ops" ] || part tensor_ops 250 "$here/tensor_ops" --test-threads 2
[ ! -x "$here/small_dispatch" ] || part small_dispatch 60 "$here/small_dispatch" 5
part bench 150 cantus bench --limit "$((130 * whole / 1000))s" --json "$parts/bench.json"

# A string of JSON.
quoted() {
    local text=${1//\\/\\\\}
    text=${text//\"/\\\"}
    printf '"%s"' "${text//[$'\001'-$'\037']/ }"
}
{
    echo '{'
    echo "  \"system\": $(quoted "$(uname -srm)"),"
    echo '  "parts": {'
    for number in "${!names[@]}"; do
        comma=,
        [ "$number" -lt $((${#names[@]} - 1)) ] || comma=
        echo "    $(quoted "${names[$number]}"): { \"state\": $(quoted "${states[$number]}"), \"seconds\": ${times[$number]} }$comma"
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
    for number in "${!names[@]}"; do
        echo "| ${names[$number]} | ${states[$number]} | ${times[$number]} |"
    done
    for number in "${!names[@]}"; do
        name=${names[$number]}
        printf '\n## %s\n\n```\n' "$name"
        tail -c 20000 "$parts/$name.log"
        if [ "${states[$number]}" != right ]; then
            tail -c 4000 "$parts/$name.err"
        fi
        printf '\n```\n'
    done
} >"$out/report.md.tmp" && mv "$out/report.md.tmp" "$out/report.md"
rm -rf "$parts/cache"
echo "wrote $out/report.md and $out/report.json"
exit "$failed"
