#!/usr/bin/env bash
# The service as a real process on loopback: what it answers, what it refuses, what it survives; its description under schemathesis; clients made
# from the description, in Python and TypeScript; the guide's examples. The program is built as ./test builds the rest. CANTUS_KILLS is how
# often it is killed, CANTUS_FLAT_SECONDS how long its memory is watched.
set -euo pipefail
cd "$(dirname "$0")/.."

build=(--locked --workspace --exclude cantus-benches --features viewer,service,zk)
cargo clippy "${build[@]}" --bin cantus-serve --example load -- --deny warnings
cargo build "${build[@]}" --bin cantus-serve --example load
CANTUS_SERVE=${CARGO_TARGET_DIR:-$PWD/target}/debug/cantus-serve
export CANTUS_SERVE
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if ! [ -e .venv/serve ]; then
    python3 -m venv .venv
    .venv/bin/pip install --quiet --disable-pip-version-check 'numpy>=2' 'pytest<9' safetensors 'schemathesis>=4,<5' 'openapi-python-client<1'
    touch .venv/serve
fi
.venv/bin/python -m pytest -q -p no:cacheprovider serve/tests

# From here on one service answers.
"$CANTUS_SERVE" --open --listen 127.0.0.1:0 --data "$work/data" --kernels --kernel-time 1 2>"$work/log" &
service=$!
trap 'kill $service; rm -rf "$work"' EXIT
address=
for _ in $(seq 100); do
    address=$(sed -n 's|^listening on \(http://[0-9.:]*\);.*|\1|p' "$work/log")
    [ -z "$address" ] || break
    sleep 0.1
done
[ -n "$address" ] || { cat "$work/log" && exit 1; }

echo "the description, and answers to what schemathesis makes of it"
(cd "$work" && "$OLDPWD/.venv/bin/schemathesis" --config-file "$OLDPWD/serve/tests/schemathesis.toml" run "$address/openapi.json" --seed 1)

echo "a client for Python"
curl -sf "$address/openapi.json" -o "$work/openapi.json"
(cd "$work" && "$OLDPWD/.venv/bin/openapi-python-client" generate --path openapi.json --meta none --output-path cantus_client >/dev/null)
PYTHONPATH=$work .venv/bin/python serve/tests/client.py "$address"

if command -v npm >/dev/null; then
    echo "a client for TypeScript"
    cp serve/tests/client/* "$work"
    (cd "$work" && npm ci --silent --no-audit --no-fund && npx openapi-typescript openapi.json -o api.ts >/dev/null && npx tsc && node client.js "$address")
else
    echo "not run: the client for TypeScript: npm is not installed"
fi
