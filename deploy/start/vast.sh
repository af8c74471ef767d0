#!/bin/sh
# A worker on an instance of Vast.ai: takes jobs, and stops the instance when there is no work for SIMPLETUNER_MAX_IDLE (15m).
#
# Use it as the instance's on-start script. Set SIMPLETUNER_ORCHESTRATOR_URL and SIMPLETUNER_WORKER_TOKEN as environment
# variables of your account or of the template (`-e SIMPLETUNER_WORKER_TOKEN=…`). Arguments are the agent's.
# SIMPLETUNER_KEEP_HOST=1 leaves the instance running at the end.
set -u
. "$(dirname "$0")/common.sh"

SIMPLETUNER_WORK_DIR=${SIMPLETUNER_WORK_DIR:-/var/lib/simpletuner-worker}
SIMPLETUNER_WORKER_NAME=${SIMPLETUNER_WORKER_NAME:-vast-${CONTAINER_ID:-$(hostname)}}

code=0
run_agent "$@" || code=$?

# The provider gives every instance a key that can stop it and nothing else.
if [ -n "${CONTAINER_ID:-}" ] && [ -n "${CONTAINER_API_KEY:-}" ] && [ "${SIMPLETUNER_KEEP_HOST:-0}" != 1 ]; then
    say "stopping instance $CONTAINER_ID"
    vastai stop instance "$CONTAINER_ID" --api-key "$CONTAINER_API_KEY" ||
        say "the instance could not be stopped: it goes on costing, stop it by hand"
fi
exit "$code"
