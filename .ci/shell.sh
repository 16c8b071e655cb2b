# Sourced by the scripts: stages with their times, and Debian's packages.

# stage NAME COMMAND…: runs it, and says how long it took.
stage() {
    local name=$1 start=$SECONDS
    shift
    printf '\n== %s\n' "$name"
    "$@"
    printf '== %s: %d s\n' "$name" $((SECONDS - start))
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
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}
