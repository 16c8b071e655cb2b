# Sourced by the scripts: Debian's packages, the turn, and what does not run.

# skip NAME REASON: says that something is left out, and why. ./test lists it at its end.
skip() {
    echo "not run: $1: $2"
    [ -z "${CANTUS_SKIPS:-}" ] || printf '%s\t%s\n' "$1" "$2" >>"$CANTUS_SKIPS"
}

# packages NAME…: installs those that are missing, on Debian as root. Elsewhere it names them and fails.
packages() {
    local missing=()
    for package in "$@"; do
        dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package")
    done
    [ ${#missing[@]} != 0 ] || return 0
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        skip "what needs ${missing[*]}" "not installed (names of Debian's packages)"
        return 1
    fi
    echo "installing ${missing[*]} (Debian's packages; the tests use them)"
    # Another apt may be at work: wait for it. `update` has a lock of its own, which that option doesn't cover.
    local wait=(-o DPkg::Lock::Timeout=600) tries=0
    until apt-get update -qq || [ $((tries += 1)) = 20 ]; do sleep 15; done
    DEBIAN_FRONTEND=noninteractive apt-get install "${wait[@]}" -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# The libraries whose items apps see. `cantus` re-exports those of the others, and cargo-semver-checks looks into no other crate.
public_crates() {
    local name
    for name in cantus cantus-base cantus-build cantus-circuits cantus-cudarc cantus-data cantus-device cantus-engine cantus-field cantus-graph cantus-group cantus-hal cantus-kernel cantus-link cantus-npy cantus-publish \
        cantus-spmd cantus-stream cantus-translate cantus-wgpu cantus-zk; do
        printf -- '--package %s ' $name
    done
}

# take_turn: names the turn of what is taken by turns in CANTUS_TURN: by commit, so that in time each part has its turn.
take_turn() {
    local commit
    if [ -z "${CANTUS_TURN:-}" ]; then
        commit=$(git rev-parse --short=7 HEAD 2>/dev/null || echo 0)
        CANTUS_TURN=$((16#$commit % 1000))
    fi
    export CANTUS_TURN
}
