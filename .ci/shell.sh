# Sourced by the scripts: stages with their times, and Debian's packages.

# Each stage with its seconds, and what did not run: what `summary` prints.
stages=()
left_out=()
stage=
stage_log=$(mktemp)
trap 'rm -f "$stage_log"; [ -z "$stage" ] || printf "== %s: failed\n" "$stage"' EXIT

# stage NAME COMMAND…: runs it, says how long it took, and remembers the lines that say what did not run.
stage() {
    local start=$SECONDS out err tee line seconds
    stage=$1
    shift
    printf '\n== %s\n' "$stage"
    exec {out}>&1 {err}>&2 > >(tee "$stage_log") 2>&1
    tee=$!
    "$@"
    exec >&"$out" 2>&"$err" {out}>&- {err}>&-
    wait "$tee" || true
    seconds=$((SECONDS - start))
    printf '== %s: %d s\n' "$stage" "$seconds"
    stages+=("$(printf '%5d s  %s' "$seconds" "$stage")")
    while IFS= read -r line; do
        left_out+=("$stage: $line")
    done < <(grep -iE '^(not run|no device|no compiler|not validated|not installed)' "$stage_log" | cut -c 1-200 | sort -u)
    stage=
}

# skip NAME REASON: says that a stage is left out, and why.
skip() {
    echo "not run: $1: $2"
    left_out+=("$1: $2")
}

# summary: the stages with their seconds, and what did not run.
summary() {
    printf '\nstages:\n'
    printf '%s\n' "${stages[@]}"
    if [ ${#left_out[@]} != 0 ]; then
        printf '\nnot run:\n'
        printf '  %s\n' "${left_out[@]}"
    fi
}

# packages NAME…: installs those that are missing, on Debian as root. Elsewhere it names them and fails.
packages() {
    local missing=()
    for package in "$@"; do
        dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package")
    done
    [ ${#missing[@]} != 0 ] || return 0
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "not installed: ${missing[*]} (names of Debian's packages)" >&2
        return 1
    fi
    echo "installing ${missing[*]} (Debian's packages; the tests use them)"
    # Another apt may be at work: wait for it. `update` has a lock of its own, which that option doesn't cover.
    local wait=(-o DPkg::Lock::Timeout=600) tries=0
    until apt-get update -qq || [ $((tries += 1)) = 20 ]; do sleep 15; done
    DEBIAN_FRONTEND=noninteractive apt-get install "${wait[@]}" -y -qq --no-install-recommends "${missing[@]}" >/dev/null
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
