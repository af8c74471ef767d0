"""A user's script with the client that a generator made of the API's description (`scripts/clients`)."""

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
PATIENCE = 120  # seconds

T = TypeVar("T")


def expect(kind: type[T], answer: object) -> T:
    """What was answered, if it is of this kind."""
    assert isinstance(answer, kind), answer
    return answer


def follow(client: AuthenticatedClient, job: str) -> JobView:
    """Looks at a job until it has ended."""
    end = time.monotonic() + PATIENCE
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
    made = expect(CreatedWorker, create_worker.sync(client=client, body=worker))
    twice: Response[CreatedWorker | Problem] = create_worker.sync_detailed(client=client, body=worker)
    assert (twice.status_code, expect(Problem, twice.parsed).code) == (409, "name_taken"), twice

    files = ConfigBundleFiles.from_dict({file.name: file.read_text() for file in Path(config).iterdir()})
    stored = put_config.sync("from-python", client=client, body=ConfigBundle(files=files), if_none_match="*")
    assert expect(ConfigView, stored).revision == 1

    environment = os.environ | {"SIMPLETUNER_WORKER_TOKEN": made.token}
    with subprocess.Popen([agent, "--persistent"], env=environment, stdout=sys.stderr) as running:
        try:
            job = SubmitJob(config_name="from-python", target=Target.WORKER, max_retries=0)
            view = follow(client, expect(SubmitJobResponse, submit_job.sync(client=client, body=job)).job_id)
            assert view.status is JobStatus.COMPLETED, view
            assert view.worker_id == made.worker_id and view.ended_at is not None, view
            lines = expect(LogLines, read_log_lines.sync(view.job_id, client=client))
            assert lines.total > 0 and lines.lines[0].text, lines
        finally:
            running.terminate()

    job.worker_labels = Labels.from_dict({"gpu_type": "none-has-it"})
    waits = expect(SubmitJobResponse, submit_job.sync(client=client, body=job))
    assert waits.status is JobStatus.QUEUED and waits.allocated_worker_id is None, waits
    expect(JobView, cancel_job.sync(waits.job_id, client=client))
    assert follow(client, waits.job_id).status is JobStatus.CANCELLED
    print(json.dumps({"completed": view.job_id, "cancelled": waits.job_id}))


if __name__ == "__main__":
    main()
