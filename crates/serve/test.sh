#!/usr/bin/env bash
# The service as a real process on loopback: what it answers, what it refuses, what it survives; its description under schemathesis; clients made
# from the description, in Python and TypeScript; the guide's examples. The program is built as ./test builds the rest. What is done as often as
# there is time for, with what a nightly run may set it to:
#   CANTUS_KILLS=200         how often the process is killed
#   CANTUS_FLAT_SECONDS=600  how long its memory is watched
#   CANTUS_EXAMPLES=100      requests that schemathesis makes up for each route
#   CANTUS_QUIET=1           latencies are held to their bounds too: only where nothing else runs
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/shell.sh

# What cannot be tested here; where everything is known to be there, that is a failure.
missing() {
    skip "$1" "$2"
    [ "${CI:-}" != true ]
}

build=(--locked --workspace --exclude cantus-benches --exclude cantus-example-ahead --exclude cantus-example-typed --features "${CANTUS_FEATURES:-service,zk,traces}")
# CI has had both for the whole workspace, with these features.
if [ -z "${CANTUS_FEATURES:-}" ]; then
    cargo clippy "${build[@]}" --bin cantus-serve --example load -- --deny warnings
    # A device that is lost in mid-job, and memory that is refused.
    cargo test "${build[@]}" --package cantus-serve --lib --test allocations
fi
cargo build "${build[@]}" --bin cantus-serve --example load
CANTUS_SERVE=${CARGO_TARGET_DIR:-$PWD/target}/debug/cantus-serve
export CANTUS_SERVE
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python=$PWD/.venv/bin
if ! [ -e .venv/serve ] && ! { python3 -m venv .venv && "$python/pip" install --quiet --disable-pip-version-check \
    'numpy>=2' 'pytest<9' safetensors 'schemathesis>=4,<5' 'openapi-python-client<1' && touch .venv/serve; }; then
    missing "all tests of the service" "pytest, schemathesis and openapi-python-client cannot be installed"
    exit
fi
ls /usr/lib/*/faketime/libfaketime.so.1 >/dev/null 2>&1 || missing "a clock that jumps" "faketime is not installed"
"$python/python" -m pytest -q --durations=10 -p no:cacheprovider crates/serve/tests

# From here on one service answers.
"$CANTUS_SERVE" --open --listen 127.0.0.1:0 --data "$work/data" --kernels --kernel-time 1 2>"$work/log" &
service=$!
trap 'kill $service; rm -rf "$work"' EXIT
address=
until [ -n "$address" ]; do
    kill -0 $service 2>/dev/null || { cat "$work/log" && exit 1; }
    sleep 0.1
    address=$(sed -n 's|^listening on \(http://[0-9.:]*\);.*|\1|p' "$work/log")
done

echo "the description, and answers to what schemathesis makes of it"
examples=${CANTUS_EXAMPLES:-20}
(cd "$work" && "$python/schemathesis" --config-file "$OLDPWD/crates/serve/tests/schemathesis.toml" run "$address/openapi.json" --seed 1 --max-examples "$examples")

echo "a client for Python"
curl -sf "$address/openapi.json" -o "$work/openapi.json"
(cd "$work" && "$python/openapi-python-client" generate --path openapi.json --meta none --output-path cantus_client >/dev/null)
PYTHONPATH=$work "$python/python" crates/serve/tests/client.py "$address"

echo "a client for TypeScript"
cp crates/serve/tests/client/* "$work"
if command -v npm >/dev/null && (cd "$work" && npm ci --silent --no-audit --no-fund); then
    (cd "$work" && npx openapi-typescript openapi.json -o api.ts >/dev/null && npx tsc && node client.js "$address")
else
    missing "a client for TypeScript" "npm is not installed, or does not get its packages"
fi
