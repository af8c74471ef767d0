"""An imitation of SimpleTuner's own worker agent, written from a description of what it sends and reads.

It sends no attempt numbers, no GPU ids and no protocol version, ignores every response except that of its registration,
and applies any `job_cancel` to the job it runs. It has a job until its last report was answered, and ignores offers until
then. Instead of training it waits for a gate in its home.

RELEASE selects the released behavior:

  A  v4.0.0 to v4.4.1 \  fail if an offer has no `dataloader`, after recording the job as their own; after a cancel
  B  v4.5.0 to v4.7.0 /  the monitor of the old job wakes up later and reports the end of the current job
  C  since v4.7.1
"""

import json
import os
import pathlib
import sys
import threading
import time
import urllib.error
import urllib.request

URL = os.environ["SIMPLETUNER_ORCHESTRATOR_URL"]
TOKEN = os.environ["SIMPLETUNER_WORKER_TOKEN"]
GATE = pathlib.Path(os.environ["MEET"], "gate")
IS_OLD_RELEASE = os.environ["RELEASE"] in ("A", "B")
# The monitor's polling interval, in seconds.
POLL_INTERVAL = 0.5 if IS_OLD_RELEASE else 0.02
running = {"job": None}
cancelled = threading.Event()


def log(*words):
    print(*words, flush=True)


def call(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"X-Worker-Token": TOKEN, "Content-Type": "application/json"}
    return urllib.request.urlopen(urllib.request.Request(URL + path, data, headers, method=method), timeout=60)


def register():
    gpu = {"name": "NVIDIA A100", "vram_gb": 80, "count": 1, "driver": "570.1", "accelerator": "cuda"}
    body = {"name": "old", "gpu_info": gpu, "persistent": os.environ.get("PERSISTENT") != "no", "current_job_id": running["job"]}
    response = json.load(call("POST", "/api/workers/register", body))
    resumed = (response.get("resume_job") or {}).get("job_id")
    log("registered, resume", resumed, "abandon", bool(response.get("abandon_job")))
    if response.get("abandon_job"):
        cancelled.set()
    return response["worker_id"]


def report(job, status, error=None):
    for _ in range(200):
        try:
            call("POST", f"/api/workers/job/{job}/status", {"status": status, "error": error}).read()
            return
        except urllib.error.HTTPError as rejected:
            log("report rejected", status, rejected.code)
            return
        except OSError:
            time.sleep(0.1)


def train(submit):
    job = submit["job_id"]
    assert isinstance(submit["config"], dict) and submit["config"], submit
    assert submit["upload_endpoint"].startswith("/") and isinstance(submit["upload_token"], str), submit
    report(job, "starting")
    report(job, "training")
    while not GATE.exists() and not cancelled.is_set():
        time.sleep(POLL_INTERVAL)
    if not cancelled.is_set():
        report(job, "completed")
        running["job"] = None
    elif not IS_OLD_RELEASE:
        report(job, "cancelled")
        running["job"] = None
    elif running["job"]:
        report(running["job"], "failed", "Training exited with code -15")
        running["job"] = None


def handle_event(event):
    log("heard", event["type"])
    if event["type"] == "job_submit":
        if running["job"]:
            log("already running a job, ignoring", event["job_id"])
            return
        running["job"] = event["job_id"]
        if IS_OLD_RELEASE:
            event["dataloader"]
        cancelled.clear()
        threading.Thread(target=train, args=(event,), daemon=True).start()
    elif event["type"] == "job_cancel":
        cancelled.set()
        if IS_OLD_RELEASE and running["job"]:
            job, running["job"] = running["job"], None
            report(job, "cancelled")
    elif event["type"] == "shutdown":
        sys.exit(0)


def send_heartbeats(worker):
    while True:
        time.sleep(1)
        status = "busy" if running["job"] else "idle"
        try:
            call("POST", "/api/workers/heartbeat", {"worker_id": worker, "status": status, "current_job_id": running["job"]})
        except OSError:
            pass


has_heartbeat_thread = False
while True:
    try:
        worker_id = register()
        if not has_heartbeat_thread:
            threading.Thread(target=send_heartbeats, args=(worker_id,), daemon=True).start()
            has_heartbeat_thread = True
        with call("GET", f"/api/workers/stream?worker_id={worker_id}") as stream:
            for line in stream:
                if line.startswith(b"data: "):
                    handle_event(json.loads(line[len("data: "):]))
    except KeyError as missing:
        log("worker error", missing)
        time.sleep(0.3)
    except urllib.error.HTTPError as rejected:
        log("rejected", rejected.code)
        if rejected.code == 401:
            sys.exit(1)
        time.sleep(0.3)
    except OSError:
        time.sleep(0.1)
