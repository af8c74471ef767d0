# Functions that the other scripts share. Source it; do not run it.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/simpletuner
cd "$ROOT"
mkdir -p "$CACHE"

say() { printf '%s\n' "$*"; }
die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

python_packages() { # NAME PIP_ARGUMENT...: installs packages once, into an environment in the cache, and sets VENV to it
    VENV=$CACHE/$1
    shift
    [ ! -e "$VENV/complete" ] || return 0
    say "installing ${VENV##*/}" >&2
    rm -rf "$VENV"
    python3 -m venv "$VENV"
    timeout 600 "$VENV/bin/pip" install --quiet "$@" >&2
    touch "$VENV/complete"
}

# Claims the shared target directory for this checkout until the calling script ends.
#
# Cargo names the artifacts of our own package identically in every checkout and compares file times, so after a build
# in one checkout it would use that checkout's program for another one. A checkout that takes over the directory
# therefore deletes the fingerprints of the package (those of its dependencies remain). Scripts of one checkout share
# the claim; those of other checkouts wait.
claim_target() {
    local owner=$CARGO_TARGET_DIR/.checkout
    mkdir -p "$CARGO_TARGET_DIR"
    exec 9>"$CARGO_TARGET_DIR/.claim"
    while :; do
        flock -s 9
        [ "$(cat "$owner" 2>/dev/null)" = "$ROOT" ] && return
        flock -u 9
        flock -n -x 9 || {
            say "waiting until $(cat "$owner" 2>/dev/null) has finished its build"
            flock -w 7200 -x 9 || die "that build has not ended for two hours; stop it and try again"
        }
        find "$CARGO_TARGET_DIR" -maxdepth 5 -type d -path '*/.fingerprint/simpletuner-*' -prune -exec rm -rf {} +
        printf '%s' "$ROOT" >"$owner"
        flock -u 9
    done
}

# Compilers include source paths in messages; this makes them the same on every machine. Paths of the
# checkout are already relative: mapping them here would change the flags of every dependency, and each
# checkout would rebuild them all. Release builds of benchmarks need the same flags, or they would rebuild the dependencies.
remap_paths() {
    local host rust each pair flags= c=
    host=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
    rust=$(rustc --print sysroot)
    for pair in "$CARGO_TARGET_DIR=/target" "${CARGO_HOME:-$HOME/.cargo}=/cargo" "$rust=/rust"; do
        flags+=" --remap-path-prefix=$pair"
        c+=" -ffile-prefix-map=$pair"
    done
    # These are added to the flags in .cargo/config.toml; RUSTFLAGS would replace them.
    for each in "CARGO_TARGET_${host}_RUSTFLAGS" CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS; do
        export "$each=${!each:-}$flags"
    done
    export CFLAGS="${CFLAGS:-}$c" CXXFLAGS="${CXXFLAGS:-}$c"
    # C code contains this instead of the time of the build. A constant, because it is compiled again if this changes.
    export SOURCE_DATE_EPOCH=1
}
