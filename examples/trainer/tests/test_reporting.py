"""What listeners hear, and that a bad listener never harms the training."""

from __future__ import annotations

import base64
import json
import socket
import threading
import time
import unittest
from datetime import datetime
from pathlib import Path
from typing import Any

from simpletuner.delivery import QUEUE_LENGTH, Courier, Weight
from simpletuner.webhook_config import Listener as Destination

from .harness import TOKEN, Listener, TrainerCase


class Webhooks(TrainerCase):
    def test_every_form_of_webhook_config(self) -> None:
        forms = {
            "object": lambda entry: entry,
            "list": lambda entry: [{"webhook_type": "discord"}, entry],
            "string of an object": json.dumps,
            "string of a list": lambda entry: json.dumps([entry]),
            "file": self.in_a_file,
        }
        for name, form in forms.items():
            with self.subTest(name):
                listener = self.listener()
                config = {"webhook_config": form(listener.entry()), "max_train_steps": 2}
                config["output_dir"] = str(self.folder / name)
                code, _, err = self.run_to_end(config)
                self.assertEqual(code, 0, err)
                self.assertEqual(listener.keys, {TOKEN})
                self.assertEqual(listener.statuses()[-1], "completed")

    def in_a_file(self, entry: dict[str, Any]) -> str:
        (self.folder / "webhook.json").write_text(json.dumps([entry]))
        return "webhook.json"

    def test_the_story_of_a_run(self) -> None:
        listener = self.listener()
        config = {"webhook_config": listener.entry()}
        env = {"SIMPLETUNER_JOB_ID": "job-7", "SIMPLETUNER_ATTEMPT": "2"}
        self.assertEqual(self.run_to_end(config, **env)[0], 0)

        self.assert_common_fields(listener)
        stages = [
            (event["stage"]["key"], event["stage"]["status"])
            for event in listener.of_type("lifecycle.stage")
        ]
        keys = ("loading_data", "training", "saving")
        self.assertEqual(
            stages, [(key, status) for key in keys for status in ("running", "completed")]
        )
        self.assertEqual(listener.statuses()[0], "starting")
        self.assertEqual(listener.statuses()[-1], "completed")
        self.assert_last_progress(listener.of_type("training.status")[-2]["progress"])

        checkpoints = [event["checkpoint"] for event in listener.of_type("training.checkpoint")]
        self.assertEqual([one["is_final"] for one in checkpoints], [False] * 3 + [True])
        for checkpoint in checkpoints:
            self.assertTrue(Path(checkpoint["path"]).exists())
        samples = [event for event in listener.events if "images" in event]
        self.assertEqual([event["data"]["step"] for event in samples], [0, 12])
        for event in samples:
            self.assertTrue(base64.b64decode(event["images"][0]).startswith(b"\x89PNG"))

    def assert_common_fields(self, listener: Listener) -> None:
        for event in listener.events:
            self.assertEqual((event["job_id"], event["attempt"]), ("job-7", 2))
            self.assertIn(event["severity"], ("info", "warning", "error"))
            datetime.fromisoformat(event["timestamp"].replace("Z", "+00:00"))

    def assert_last_progress(self, progress: dict[str, Any]) -> None:
        self.assertEqual((progress["current"], progress["total"]), (12, 12))
        self.assertEqual((progress["percent"], progress["eta_seconds"]), (100.0, 0.0))
        self.assertEqual(
            set(progress["metrics"]),
            {"loss", "learning_rate", "epoch", "accuracy", "samples_per_second"},
        )

    def test_reports_at_most_ten_times_a_second(self) -> None:
        listener = self.listener()
        config = {"webhook_config": listener.entry(), "max_train_steps": 100}
        self.assertEqual(self.run_to_end(config)[0], 0)
        moments = [
            datetime.fromisoformat(event["timestamp"].replace("Z", "+00:00")).timestamp()
            for event in listener.of_type("training.status")
            if event["data"]["status"] == "running"
        ]
        # The first and the last report stand outside the rhythm.
        self.assertLessEqual(len(moments), 2 + 10 * (moments[-1] - moments[0]))

    def test_failure_and_log_level(self) -> None:
        listener = self.listener()
        config = {"webhook_config": listener.entry(log_level="error"), "example_fail_at_step": 6}
        code, _, err = self.run_to_end(config)
        self.assertEqual(code, 1)
        self.assertIn("Traceback", err)
        self.assertEqual(
            [event["type"] for event in listener.events],
            ["lifecycle.stage", "error", "training.status"],
        )
        self.assertIn("example_fail_at_step", listener.of_type("error")[0]["message"])
        self.assertEqual(listener.statuses(), ["failed"])

    def test_an_absent_listener_is_mentioned_once(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        entry = {"webhook_type": "raw", "callback_url": url}
        code, out, _ = self.run_to_end({"webhook_config": entry})
        self.assertEqual(code, 0)
        self.assertEqual(out.count("does not answer"), 1)

    def test_a_refusing_listener_is_mentioned_once(self) -> None:
        listener = self.listener()
        entry = {**listener.entry(), "callback_url": listener.url.replace("/events", "/refuse")}
        code, out, _ = self.run_to_end({"webhook_config": entry})
        self.assertEqual(code, 0)
        self.assertEqual(out.count("rejected an event (HTTP 403)"), 1)


class Queueing(unittest.TestCase):
    def test_a_full_queue_drops_progress_and_never_the_end(self) -> None:
        gate = threading.Event()
        heard: list[dict[str, Any]] = []
        courier = Courier(Destination("http://127.0.0.1:9/", "", 20), console=None)  # type: ignore[arg-type]

        def post(event: dict[str, Any]) -> bool:
            gate.wait()
            heard.append(event)
            return True

        courier._post = post  # type: ignore[method-assign]
        courier.put({"n": "end"}, Weight.TERMINAL)
        for number in range(2 * QUEUE_LENGTH):
            courier.put({"n": number}, Weight.PROGRESS)
        courier.put({"n": "checkpoint"}, Weight.NORMAL)
        gate.set()
        courier.close(time.monotonic() + 10)
        numbers = [event["n"] for event in heard]
        self.assertIn("end", numbers)
        self.assertEqual(numbers[-2:], [2 * QUEUE_LENGTH - 1, "checkpoint"])
        self.assertLessEqual(len(numbers), QUEUE_LENGTH + 1)
