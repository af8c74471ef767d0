"""Runs the trainer as a real process, and listens to what it posts."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

TRAINER = Path(__file__).resolve().parents[1]
CONFIGS = TRAINER.parent / "configs"
TOKEN = "job-secret"
PATIENCE = 60.0

Event = dict[str, Any]

# Few steps and few pictures: what most tests need.
SMALL = {
    "max_train_steps": 12,
    "lr_warmup_steps": 2,
    "train_batch_size": 16,
    "example_hidden_units": 8,
    "validation_steps": 0,
    "checkpointing_steps": 4,
    "eval_steps_interval": 4,
    "logging_steps": 4,
    "resume_from_checkpoint": "latest",
}


class Listener:
    """A webhook listener that remembers what it heard and with which key."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.keys: set[str | None] = set()
        self._heard = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/events"

    def entry(self, **extra: Any) -> Event:
        return {"webhook_type": "raw", "callback_url": self.url, "auth_token": TOKEN, **extra}

    def wait_for(self, wanted: Callable[[Event], bool]) -> Event:
        """The first event that is wanted, heard already or yet to come."""
        with self._heard:
            found = self._heard.wait_for(
                lambda: next(filter(wanted, self.events), None), timeout=PATIENCE
            )
        if found is None:
            raise AssertionError(f"not heard; the last events were {self.events[-3:]}")
        return found

    def statuses(self) -> list[str]:
        return [event["data"]["status"] for event in self.of_type("training.status")]

    def of_type(self, kind: str) -> list[Event]:
        return [event for event in self.events if event["type"] == kind]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(listener) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with listener._heard:
                    listener.events.append(json.loads(body))
                    listener.keys.add(self.headers["X-API-Key"])
                    listener._heard.notify_all()
                self.send_response(403 if self.path == "/refuse" else 204)
                self.end_headers()

            def log_message(self, *_args: Any) -> None:
                pass

        return Handler


class TrainerCase(unittest.TestCase):
    """A test with a directory of its own for configuration and output."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.output = self.folder / "output"

    def listener(self) -> Listener:
        listener = Listener()
        self.addCleanup(listener.close)
        return listener

    def silent_port(self) -> int:
        """A port that takes connections and never answers."""
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)
        return server.getsockname()[1]

    def start(self, config: Event, **env: str) -> subprocess.Popen[str]:
        """Start the trainer on a configuration of the test's own."""
        (self.folder / "multidatabackend.json").write_text(
            json.dumps([{"instance_data_dir": "builtin:digits"}])
        )
        path = self.folder / "config.json"
        path.write_text(json.dumps({**SMALL, "output_dir": str(self.output), **config}))
        return self.start_with({"CONFIG_PATH": str(path), **env})

    def start_with(self, env: dict[str, str]) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "simpletuner.train"],
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(TRAINER), **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self.addCleanup(_end, process)
        return process

    def run_to_end(self, config: Event, **env: str) -> tuple[int, str, str]:
        return self.finish(self.start(config, **env))

    def finish(self, process: subprocess.Popen[str]) -> tuple[int, str, str]:
        """Exit code, stdout and stderr."""
        out, err = process.communicate(timeout=PATIENCE)
        return process.returncode, out, err


def wait_until(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not ready():
        if time.monotonic() > deadline:
            raise AssertionError("what the test waits for did not happen")
        time.sleep(0.01)


def is_status(status: str) -> Callable[[Event], bool]:
    return lambda event: event.get("data", {}).get("status") == status


def has_reached(step: int) -> Callable[[Event], bool]:
    return lambda event: event.get("progress", {}).get("current", -1) >= step


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.kill()
    process.communicate()
