"""Finds out who wants to hear about the training."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .console import Console
from .errors import ConfigError
from .settings import read_json

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}


@dataclass(frozen=True)
class Listener:
    url: str
    token: str
    level: int

    @property
    def name(self) -> str:
        """For messages: the path of the address can be a secret."""
        return urlsplit(self.url).netloc


def listeners(value: Any, folder: Path, console: Console) -> list[Listener]:
    """`value` is an object, a list, a JSON string of either, or a path to a file."""
    content = _open(value, folder)
    found = []
    for entry in content if isinstance(content, list) else [content]:
        if not isinstance(entry, dict):
            raise ConfigError(f"webhook_config: an entry must be an object, not {entry!r}.")
        kind = entry.get("webhook_type")
        if kind == "raw":
            found.append(_listener(entry))
        else:
            console.warn(f"webhook_config: skipped an entry of type {kind!r}; only 'raw' is known")
    return found


def _open(value: Any, folder: Path) -> Any:
    if value is None or value == "":
        return []
    if not isinstance(value, str):
        return value
    text = value.strip()
    if not text.startswith(("{", "[")):
        return read_json(folder / text)
    try:
        return json.loads(text)
    except ValueError as error:
        raise ConfigError(f"webhook_config is not valid JSON: {error}.") from error


def _listener(entry: dict[str, Any]) -> Listener:
    url = str(entry.get("callback_url", ""))
    if not url.startswith(("http://", "https://")) or not urlsplit(url).netloc:
        raise ConfigError(
            "webhook_config: 'callback_url' of a raw webhook must be an address "
            "that starts with http:// or https://."
        )
    level = str(entry.get("log_level", "info")).lower()
    token = str(entry.get("auth_token") or "")
    return Listener(url, token, LEVELS.get(level, LEVELS["info"]))
