# What the scripts beside it share. Sourced, never run.
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

# Claims the shared target directory for this checkout until the calling script ends.
#
# Cargo names the artifacts of our own package alike in every checkout and judges them by file times, so that after a
# build in one checkout it would take that checkout's program for the other's. Whoever takes the directory over from
# another checkout therefore drops the package's fingerprints (its dependencies stay). Scripts of one checkout share
# the claim; those of another one wait.
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
