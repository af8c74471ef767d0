# shellcheck shell=sh
# What the start scripts of rented hosts share. Sourced, never run.
#
# Where the agent comes from, the first that is there: SIMPLETUNER_WORKER_BIN, the PATH, or SIMPLETUNER_WORKER_DOWNLOAD (an
# https:// address of your own, checked by SIMPLETUNER_WORKER_SHA256). An orchestrator gives out no programs.

say() { printf '%s\n' "start: $*" >&2; }
die() {
    say "$*"
    exit 78
}

# Prints where the agent is; runs in a shell of its own.
find_agent() {
    if [ -n "${SIMPLETUNER_WORKER_BIN:-}" ]; then
        [ -x "$SIMPLETUNER_WORKER_BIN" ] || die "SIMPLETUNER_WORKER_BIN=$SIMPLETUNER_WORKER_BIN is no program"
        printf '%s' "$SIMPLETUNER_WORKER_BIN"
    elif command -v simpletuner-worker; then
        :
    elif [ -n "${SIMPLETUNER_WORKER_DOWNLOAD:-}" ]; then
        [ -n "${SIMPLETUNER_WORKER_SHA256:-}" ] || die "SIMPLETUNER_WORKER_DOWNLOAD needs SIMPLETUNER_WORKER_SHA256 beside it"
        mkdir -p "$SIMPLETUNER_WORK_DIR"
        file=$SIMPLETUNER_WORK_DIR/simpletuner-worker
        curl -fsSL --retry 5 -o "$file.new" "$SIMPLETUNER_WORKER_DOWNLOAD" || die "the agent cannot be downloaded"
        printf '%s  %s\n' "$SIMPLETUNER_WORKER_SHA256" "$file.new" | sha256sum -c - >/dev/null 2>&1 ||
            die "what was downloaded is not what SIMPLETUNER_WORKER_SHA256 says"
        chmod 0755 "$file.new" && mv "$file.new" "$file"
        printf '%s' "$file"
    else
        die "there is no simpletuner-worker: put it into the image, or set SIMPLETUNER_WORKER_BIN or SIMPLETUNER_WORKER_DOWNLOAD"
    fi
}

# Runs the agent to its end, passing signals on, and answers with its exit code.
run_agent() {
    SIMPLETUNER_MAX_IDLE=${SIMPLETUNER_MAX_IDLE:-15m}
    export SIMPLETUNER_WORK_DIR SIMPLETUNER_WORKER_NAME SIMPLETUNER_MAX_IDLE
    # A host that cannot work is stopped like one that has none, as it costs as much.
    agent=$(find_agent) || return $?
    unset SIMPLETUNER_WORKER_BIN SIMPLETUNER_WORKER_DOWNLOAD SIMPLETUNER_WORKER_SHA256
    # The report stands in the host's log when nothing works; it is no reason not to try.
    "$agent" doctor "$@" >&2 || say "the doctor found something, see above"
    # What was started here cannot be left behind: the host ends with it.
    "$agent" --on-stop requeue "$@" &
    pid=$!
    trap 'kill -TERM "$pid" 2>/dev/null' TERM INT HUP
    code=0
    wait "$pid" || code=$?
    # A signal ends the wait, and not the agent.
    while kill -0 "$pid" 2>/dev/null; do
        code=0
        wait "$pid" || code=$?
    done
    trap - TERM INT HUP
    say "the agent ended with $code"
    return "$code"
}
