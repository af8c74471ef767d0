#!/bin/sh
# A worker on a RunPod pod: takes jobs, and stops the pod when there is no work for SIMPLETUNER_MAX_IDLE (15m).
#
# Use it as the pod's start command. Set SIMPLETUNER_ORCHESTRATOR_URL and, as a secret of RunPod's with this name,
# SIMPLETUNER_WORKER_TOKEN: in the template, `SIMPLETUNER_WORKER_TOKEN={{ RUNPOD_SECRET_simpletuner_worker_token }}`.
# Arguments are the agent's. SIMPLETUNER_KEEP_HOST=1 leaves the pod running at the end.
set -u
. "$(dirname "$0")/common.sh"

# The volume, if there is one: an attempt that was being reported is reported by the next pod that has it.
if [ -z "${SIMPLETUNER_WORK_DIR:-}" ]; then
    SIMPLETUNER_WORK_DIR=/var/lib/simpletuner-worker
    if [ -d /workspace ]; then SIMPLETUNER_WORK_DIR=/workspace/simpletuner-worker; fi
fi
SIMPLETUNER_WORKER_NAME=${SIMPLETUNER_WORKER_NAME:-runpod-${RUNPOD_POD_ID:-$(hostname)}}

code=0
run_agent "$@" || code=$?

if [ -n "${RUNPOD_POD_ID:-}" ] && [ "${SIMPLETUNER_KEEP_HOST:-0}" != 1 ]; then
    say "stopping pod $RUNPOD_POD_ID"
    runpodctl stop pod "$RUNPOD_POD_ID" || say "the pod could not be stopped: it goes on costing, stop it by hand"
fi
exit "$code"
