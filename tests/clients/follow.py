"""A user's script with the client that a generator created from the API's description (`scripts/clients`)."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TypeVar

from simpletuner_client import AuthenticatedClient
from simpletuner_client.api.configurations import put_config
from simpletuner_client.api.jobs import cancel_job, get_job, read_log_lines, submit_job
from simpletuner_client.api.workers import create_worker
from simpletuner_client.models import (
    ConfigBundle,
    ConfigBundleFiles,
    ConfigView,
    CreatedWorker,
    CreateWorker,
    JobStatus,
    JobView,
    Labels,
    LogLines,
    Problem,
    SubmitJob,
    SubmitJobResponse,
    Target,
    WorkerType,
)
from simpletuner_client.types import Response

ENDED = {JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED}
TIMEOUT = 120  # seconds

T = TypeVar("T")


def expect(kind: type[T], response: object) -> T:
    """Returns a response, which must be of this type."""
    assert isinstance(response, kind), response
    return response


def follow(client: AuthenticatedClient, job: str) -> JobView:
    """Polls a job until it has ended."""
    end = time.monotonic() + TIMEOUT
    while time.monotonic() < end:
        view = expect(JobView, get_job.sync(job, client=client))
        if view.status in ENDED:
            return view
        time.sleep(0.2)
    raise AssertionError(f"{job} has not ended")


def main() -> None:
    url, token, agent, config = sys.argv[1:]
    client = AuthenticatedClient(base_url=url, token=token, raise_on_unexpected_status=True)

    worker = CreateWorker(name="python", worker_type=WorkerType.PERSISTENT)
    created = expect(CreatedWorker, create_worker.sync(client=client, body=worker))
    duplicate: Response[CreatedWorker | Problem] = create_worker.sync_detailed(client=client, body=worker)
    assert (duplicate.status_code, expect(Problem, duplicate.parsed).code) == (409, "name_taken"), duplicate

    files = ConfigBundleFiles.from_dict({file.name: file.read_text() for file in Path(config).iterdir()})
    stored = put_config.sync("from-python", client=client, body=ConfigBundle(files=files), if_none_match="*")
    assert expect(ConfigView, stored).revision == 1

    environment = os.environ | {"SIMPLETUNER_WORKER_TOKEN": created.token}
    with subprocess.Popen([agent, "--persistent"], env=environment, stdout=sys.stderr) as running:
        try:
            job = SubmitJob(config_name="from-python", target=Target.WORKER, max_retries=0)
            view = follow(client, expect(SubmitJobResponse, submit_job.sync(client=client, body=job)).job_id)
            assert view.status is JobStatus.COMPLETED, view
            assert view.worker_id == created.worker_id and view.ended_at is not None, view
            lines = expect(LogLines, read_log_lines.sync(view.job_id, client=client))
            assert lines.total > 0 and lines.lines[0].text, lines
        finally:
            running.terminate()

    job.worker_labels = Labels.from_dict({"gpu_type": "none-has-it"})
    waiting = expect(SubmitJobResponse, submit_job.sync(client=client, body=job))
    assert waiting.status is JobStatus.QUEUED and waiting.allocated_worker_id is None, waiting
    expect(JobView, cancel_job.sync(waiting.job_id, client=client))
    assert follow(client, waiting.job_id).status is JobStatus.CANCELLED
    print(json.dumps({"completed": view.job_id, "cancelled": waiting.job_id}))


if __name__ == "__main__":
    main()
