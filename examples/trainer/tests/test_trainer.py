"""What the trainer learns, what it leaves behind, and how it can be stopped."""

from __future__ import annotations

import json
import math
import signal
import struct
import time
import zlib
from functools import partial
from pathlib import Path
from typing import Any

from .harness import CONFIGS, SMALL, TrainerCase, has_reached, is_status, wait_until

SLOW = {"max_train_steps": 10000, "example_step_delay_ms": 5}


class Learning(TrainerCase):
    def accuracy_of(self, name: str) -> float:
        env = {"CONFIG_PATH": str(CONFIGS / name / "config.json")}
        code, out, err = self.finish(self.start_with(env))
        self.assertEqual(code, 0, err)
        self.assertIn("training completed", out)
        config = json.loads((CONFIGS / name / "config.json").read_text())
        last = self.output / f"checkpoint-{config['--max_train_steps']}" / "trainer_state.json"
        return json.loads(last.read_text())["accuracy"]

    def test_reads_held_out_digits(self) -> None:
        self.assertGreater(self.accuracy_of("digits"), 0.95)

    def test_quick_configuration_is_good_enough(self) -> None:
        self.assertGreater(self.accuracy_of("digits-quick"), 0.80)

    def test_configurations_travel(self) -> None:
        for file in CONFIGS.rglob("*.json"):
            self.assertNotIn('"/', file.read_text(), f"an absolute path in {file}")


class Output(TrainerCase):
    def test_model_is_a_safetensors_file(self) -> None:
        self.assertEqual(self.run_to_end({})[0], 0)
        header, body = read_safetensors(self.output / "model.safetensors")
        self.assertEqual(header.pop("__metadata__")["step"], "12")
        units = SMALL["example_hidden_units"]
        self.assertEqual(
            {name: entry["shape"] for name, entry in header.items()},
            {
                "hidden.weight": [units, 64],
                "hidden.bias": [units],
                "output.weight": [10, units],
                "output.bias": [10],
            },
        )
        end = 0
        for entry in header.values():
            first, last = entry["data_offsets"]
            self.assertEqual((entry["dtype"], first), ("F32", end))
            self.assertEqual(last - first, 4 * math.prod(entry["shape"]))
            end = last
        self.assertEqual(end, len(body))
        self.assertTrue(any(struct.unpack(f"<{end // 4}f", body)))

    def test_validation_images_are_png_files(self) -> None:
        self.assertEqual(self.run_to_end({"validation_steps": 6})[0], 0)
        images = self.output / "validation_images"
        names = {file.name for file in images.iterdir()}
        self.assertEqual(names, {"step_0_0.png", "step_6_0.png", "step_12_0.png"})
        for file in images.iterdir():
            width, height, pixels = read_png(file.read_bytes())
            self.assertEqual(len(pixels), height * (1 + 3 * width))
            self.assertIn(bytes((63, 185, 80)), pixels, "no frame is green")

    def test_old_checkpoints_make_room(self) -> None:
        self.output.mkdir()
        (self.output / ".unfinished-checkpoint-8").mkdir()
        self.assertEqual(self.run_to_end({"checkpoints_total_limit": 2})[0], 0)
        names = {file.name for file in self.output.iterdir()}
        expected = {"checkpoint-8", "checkpoint-12", "model.safetensors", "validation_images"}
        self.assertEqual(names, expected)

    def test_same_seed_same_weights(self) -> None:
        for name, seed in (("a", 1), ("b", 1), ("c", 2)):
            config = {"seed": seed, "output_dir": str(self.folder / name)}
            self.assertEqual(self.run_to_end(config)[0], 0)
        a, b, c = ((self.folder / name / "model.safetensors").read_bytes() for name in "abc")
        self.assertEqual(a, b)
        self.assertNotEqual(a, c)


class Resuming(TrainerCase):
    def test_interrupted_and_whole_runs_end_alike(self) -> None:
        whole = {"max_train_steps": 60, "output_dir": str(self.folder / "whole")}
        self.assertEqual(self.run_to_end(whole)[0], 0)

        listener = self.listener()
        config = {"max_train_steps": 60, "webhook_config": listener.entry()}
        process = self.start({**config, "example_step_delay_ms": 40})
        listener.wait_for(has_reached(7))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.finish(process)[0], 75)

        code, out, _ = self.run_to_end(config)
        self.assertEqual(code, 0)
        self.assertRegex(out, r"continuing from step \d+")
        self.assertEqual(
            (self.output / "model.safetensors").read_bytes(),
            (self.folder / "whole" / "model.safetensors").read_bytes(),
        )

    def test_a_damaged_checkpoint_is_passed_over(self) -> None:
        self.assertEqual(self.run_to_end({})[0], 0)
        (self.output / "checkpoint-12" / "optimizer.safetensors").write_bytes(b"damaged")
        code, out, _ = self.run_to_end({})
        self.assertEqual(code, 0)
        self.assertIn("checkpoint-12 cannot be read", out)
        self.assertIn("continuing from step 8", out)

    def test_another_network_size_is_rejected(self) -> None:
        self.assertEqual(self.run_to_end({})[0], 0)
        code, _, err = self.run_to_end({"example_hidden_units": 9})
        self.assertEqual(code, 2)
        self.assertIn("holds a network of another size", err)


class Stopping(TrainerCase):
    def assert_stops(self, process: Any, ask: Any) -> None:
        asked = time.monotonic()
        ask()
        code, _, err = self.finish(process)
        self.assertEqual(code, 75, err)
        self.assertLess(time.monotonic() - asked, 5)
        self.assertTrue(list(self.output.glob("checkpoint-*/optimizer.safetensors")))

    def test_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=number):
                listener = self.listener()
                process = self.start({**SLOW, "webhook_config": listener.entry()})
                listener.wait_for(is_status("running"))
                self.assert_stops(process, partial(process.send_signal, number))
                self.assertEqual(listener.statuses()[-1], "interrupted")
                self.assertTrue(listener.of_type("training.checkpoint"))

    def test_stop_file(self) -> None:
        stop_file = self.folder / "stop"
        listener = self.listener()
        config = {**SLOW, "webhook_config": listener.entry()}
        process = self.start(config, SIMPLETUNER_STOP_FILE=str(stop_file))
        listener.wait_for(has_reached(1))
        self.assert_stops(process, stop_file.touch)

    def test_while_silent(self) -> None:
        listener = self.listener()
        config = {"example_silent_seconds": 600, "webhook_config": listener.entry()}
        process = self.start(config)
        listener.wait_for(lambda event: event.get("stage", {}).get("key") == "training")
        heard = len(listener.events)
        self.assert_stops(process, lambda: process.send_signal(signal.SIGTERM))
        self.assertEqual(listener.events[heard]["type"], "training.checkpoint")

    def test_while_a_listener_hangs(self) -> None:
        url = f"http://127.0.0.1:{self.silent_port()}/"
        entry = {"webhook_type": "raw", "callback_url": url}
        process = self.start({**SLOW, "webhook_config": entry})
        wait_until((self.output / "checkpoint-4").exists)
        self.assert_stops(process, lambda: process.send_signal(signal.SIGTERM))

    def test_sigterm_can_be_ignored(self) -> None:
        listener = self.listener()
        config = {**SLOW, "webhook_config": listener.entry(), "example_ignore_sigterm": True}
        process = self.start(config)
        listener.wait_for(is_status("running"))
        process.send_signal(signal.SIGTERM)
        listener.wait_for(has_reached(20))
        process.kill()
        self.assertEqual(self.finish(process)[0], -signal.SIGKILL)


class BrokenConfigurations(TrainerCase):
    def assert_rejected(self, result: tuple[int, str, str], reason: str) -> None:
        code, _, err = result
        self.assertEqual(code, 2, err)
        self.assertIn(reason, err)
        self.assertEqual(len(err.splitlines()), 1, err)

    def test_no_readable_file(self) -> None:
        broken = self.folder / "broken.json"
        broken.write_text("{")
        cases = [
            ({}, "CONFIG_PATH is not set"),
            ({"CONFIG_PATH": str(self.folder / "none.json")}, "No such file"),
            ({"CONFIG_PATH": str(broken)}, "is not valid JSON"),
        ]
        for env, reason in cases:
            with self.subTest(reason):
                self.assert_rejected(self.finish(self.start_with(env)), reason)

    def test_impossible_values(self) -> None:
        cases: list[tuple[dict[str, Any], str]] = [
            ({"max_train_steps": "many"}, "'max_train_steps' must be a whole number"),
            ({"--learning_rate": -1}, "'learning_rate' must be a number"),
            ({"lr_scheduler": "zigzag"}, "'lr_scheduler' must be one of"),
            ({"data_backend_config": "none.json"}, "none.json"),
            ({"webhook_config": "[1"}, "webhook_config is not valid JSON"),
            ({"webhook_config": {"webhook_type": "raw"}}, "'callback_url'"),
            ({"resume_from_checkpoint": "checkpoint-7"}, "name an existing checkpoint"),
        ]
        for config, reason in cases:
            with self.subTest(reason):
                self.assert_rejected(self.run_to_end(config), reason)

    def test_a_rejection_inside_the_run_is_reported(self) -> None:
        listener = self.listener()
        config = {"data_backend_config": "none.json", "webhook_config": listener.entry()}
        self.assert_rejected(self.run_to_end(config), "none.json")
        self.assertEqual(listener.of_type("error")[0]["severity"], "error")
        self.assertEqual(listener.statuses(), ["starting", "failed"])

    def test_both_spellings_and_numbers_as_text(self) -> None:
        config = {"--max_train_steps": "3", "--learning_rate": "1e-3", "unknown": [1]}
        code, out, err = self.run_to_end(config)
        self.assertEqual(code, 0, err)
        self.assertIn("step 3/3", out)


def read_safetensors(path: Path) -> tuple[dict[str, Any], bytes]:
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def read_png(content: bytes) -> tuple[int, int, bytes]:
    """Width, height and the unpacked pixels; checks every checksum."""
    if content[:8] != b"\x89PNG\r\n\x1a\n":
        raise AssertionError("not a PNG file")
    chunks: dict[bytes, bytes] = {}
    place = 8
    while place < len(content):
        (length,) = struct.unpack(">I", content[place : place + 4])
        kind = content[place + 4 : place + 8]
        body = content[place + 8 : place + 8 + length]
        (checksum,) = struct.unpack(">I", content[place + 8 + length : place + 12 + length])
        if zlib.crc32(kind + body) != checksum:
            raise AssertionError(f"the checksum of {kind!r} is wrong")
        chunks[kind] = body
        place += 12 + length
    width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
    return width, height, zlib.decompress(chunks[b"IDAT"])
