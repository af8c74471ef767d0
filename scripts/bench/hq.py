"""Measures HyperQueue, a task scheduler without a database: its server and one worker with as many places as the argument says.

Each line of standard input is a command, and each has one line of output:

    rate N       runs N tasks of /bin/true, and prints the seconds until all have ended
    start FILE   runs a task that writes its time (ns) to FILE, and prints the time before the submit (ns)
"""

import os
import sys
import time
from pathlib import Path

from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig

def rate(client, count: int) -> str:
    """The library looks for the end of a job once a second, so the last task writes the time."""
    ended = Path("ended").absolute()
    job = Job()
    tasks = [job.program(["/bin/true"]) for _ in range(count)]
    job.program(["sh", "-c", f"date +%s%N >{ended}"], deps=tasks)
    began = time.time_ns()
    client.wait_for_jobs([client.submit(job)])
    return str((int(ended.read_text()) - began) / 1e9)


def start(client, file: str) -> str:
    job = Job()
    job.program(["sh", "-c", f"date +%s%N >{file}.new; mv {file}.new {file}"])
    began = time.time_ns()
    client.submit(job)
    return str(began)


def main() -> None:
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the library prints what it has started
    with LocalCluster() as cluster:
        cluster.start_worker(WorkerConfig(cores=int(sys.argv[1])))
        client = cluster.client()
        for line in sys.stdin:
            command, argument = line.split()
            result = rate(client, int(argument)) if command == "rate" else start(client, argument)
            print(result, file=output, flush=True)


main()
