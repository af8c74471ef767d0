"""Reads config.json into settings that are known to make sense."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import ConfigError

SCHEDULES = ("constant", "linear", "cosine")


@dataclass(frozen=True)
class Settings:
    """Everything the trainer can be told. The field names are the keys."""

    config_dir: Path
    output_dir: Path
    data_backend_config: Path
    user_prompt_library: Path | None
    webhook_config: Any
    run_name: str
    seed: int
    learning_rate: float
    lr_scheduler: str
    lr_warmup_steps: int
    weight_decay: float
    train_batch_size: int
    max_train_steps: int
    logging_steps: int
    eval_steps: int
    validation_steps: int
    checkpointing_steps: int
    checkpoints_total_limit: int
    resume_from_checkpoint: str | None
    hidden_units: int
    fail_at_step: int
    silent_seconds: float
    step_delay_ms: float
    ignore_sigterm: bool


def load(path_text: str | None) -> Settings:
    """The settings in the file that CONFIG_PATH names."""
    if not path_text:
        raise ConfigError("CONFIG_PATH is not set: set it to the path of a config.json.")
    path = Path(path_text)
    content = read_json(path)
    if not isinstance(content, dict):
        raise ConfigError(f"{path} must hold a JSON object with one entry per setting.")
    return _settings(_Keys(path, content))


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {error.strerror or error}.") from error
    except ValueError as error:
        raise ConfigError(f"{path} is not valid JSON: {error}.") from error


def _settings(keys: _Keys) -> Settings:
    prompts = keys.text("user_prompt_library", "")
    return Settings(
        config_dir=keys.folder,
        output_dir=Path(keys.text("output_dir", "output")),
        data_backend_config=keys.folder / keys.text("data_backend_config", "multidatabackend.json"),
        user_prompt_library=keys.folder / prompts if prompts else None,
        webhook_config=keys.raw("webhook_config"),
        run_name=keys.text("tracker_run_name", "") or keys.text("tracker_project_name", "digits"),
        seed=keys.whole("seed", 42),
        learning_rate=keys.number("learning_rate", 5e-3),
        lr_scheduler=keys.choice("lr_scheduler", "cosine", SCHEDULES),
        lr_warmup_steps=keys.whole("lr_warmup_steps", 50),
        weight_decay=keys.number("adam_weight_decay", 0.01),
        train_batch_size=keys.whole("train_batch_size", 32, least=1),
        max_train_steps=keys.whole("max_train_steps", 1000, least=1),
        logging_steps=keys.whole("logging_steps", 20, least=1),
        eval_steps=keys.whole("eval_steps_interval", 25, least=1),
        validation_steps=keys.whole("validation_steps", 200),
        checkpointing_steps=keys.whole("checkpointing_steps", 200),
        checkpoints_total_limit=keys.whole("checkpoints_total_limit", 0),
        resume_from_checkpoint=keys.text("resume_from_checkpoint", "") or None,
        hidden_units=keys.whole("example_hidden_units", 40, least=1),
        fail_at_step=keys.whole("example_fail_at_step", 0),
        silent_seconds=keys.number("example_silent_seconds", 0.0),
        step_delay_ms=keys.number("example_step_delay_ms", 0.0),
        ignore_sigterm=keys.flag("example_ignore_sigterm", False),
    )


class _Keys:
    """Looks up settings by name; complains in one sentence that names the key."""

    def __init__(self, path: Path, content: dict[str, Any]) -> None:
        self.folder = path.parent
        self._name = path.name
        # `key` and `--key` are the same setting; the later one in the file counts.
        self._values = {key.lstrip("-"): value for key, value in content.items()}

    def raw(self, key: str) -> Any:
        return self._values.get(key)

    def text(self, key: str, default: str) -> str:
        value = self._given(key, default)
        if not isinstance(value, str):
            raise self._wrong(key, "text", value)
        return value.strip()

    def choice(self, key: str, default: str, known: tuple[str, ...]) -> str:
        value = self.text(key, default)
        if value not in known:
            raise self._wrong(key, f"one of {', '.join(known)}", value)
        return value

    def number(self, key: str, default: float) -> float:
        value = self._given(key, default)
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if isinstance(value, bool) or not math.isfinite(number) or number < 0:
            raise self._wrong(key, "a number that is not negative", value)
        return number

    def whole(self, key: str, default: int, least: int = 0) -> int:
        wanted = f"a whole number of at least {least}"
        value = self._given(key, default)
        try:
            number = int(value) if isinstance(value, str) else value
        except ValueError:
            raise self._wrong(key, wanted, value) from None
        if isinstance(number, float) and number.is_integer():
            number = int(number)
        if isinstance(number, bool) or not isinstance(number, int) or number < least:
            raise self._wrong(key, wanted, value)
        return number

    def flag(self, key: str, default: bool) -> bool:
        value = str(self._given(key, default)).strip().lower()
        if value in ("true", "1", "yes"):
            return True
        if value in ("false", "0", "no"):
            return False
        raise self._wrong(key, "true or false", value)

    def _given(self, key: str, default: Any) -> Any:
        value = self._values.get(key)
        return default if value is None else value

    def _wrong(self, key: str, wanted: str, value: Any) -> ConfigError:
        return ConfigError(f"{self._name}: '{key}' must be {wanted}, not {value!r}.")
