"""The events a listener hears. examples/README.md shows each of them."""

from __future__ import annotations

import base64
import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from .delivery import Courier, Weight
from .errors import Interrupted
from .webhook_config import LEVELS

Event = dict[str, Any]


@dataclass(frozen=True)
class Progress:
    current: int
    total: int
    eta_seconds: float | None
    metrics: dict[str, float]

    def as_json(self) -> Event:
        # JSON has no word for "not a number".
        metrics = {name: value for name, value in self.metrics.items() if math.isfinite(value)}
        eta = None if self.eta_seconds is None else round(self.eta_seconds, 1)
        return {
            "current": self.current,
            "total": self.total,
            "percent": round(100 * self.current / max(self.total, 1), 1),
            "eta_seconds": eta,
            "metrics": metrics,
        }


class Reporter:
    """Gives every listener the events that its log level asks for."""

    def __init__(self, couriers: Sequence[Courier]) -> None:
        self._couriers = couriers
        self._about: Event = {"job_id": os.environ.get("SIMPLETUNER_JOB_ID")}
        attempt = os.environ.get("SIMPLETUNER_ATTEMPT", "")
        if attempt.isdigit():
            self._about["attempt"] = int(attempt)

    @contextmanager
    def stage(self, key: str, label: str, progress: Progress | None = None) -> Iterator[None]:
        """Tell that a stage runs, and then how it ended."""
        self._stage(key, label, "running", progress)
        try:
            yield
        except Interrupted:
            self._stage(key, label, "interrupted")
            raise
        except BaseException:
            self._stage(key, label, "failed")
            raise
        self._stage(key, label, "completed")

    def status(self, status: str, progress: Progress | None = None) -> None:
        event: Event = {"type": "training.status", "data": {"status": status}}
        if progress:
            event["progress"] = progress.as_json()
        severity = {"failed": "error", "interrupted": "warning"}.get(status, "info")
        weight = {"running": Weight.PROGRESS, "starting": Weight.NORMAL}
        self._send(event, severity, weight.get(status, Weight.TERMINAL))

    def checkpoint(self, path: Path, label: str, is_final: bool) -> None:
        checkpoint = {"path": str(path.resolve()), "label": label, "is_final": is_final}
        weight = Weight.TERMINAL if is_final else Weight.NORMAL
        self._send({"type": "training.checkpoint", "checkpoint": checkpoint}, weight=weight)

    def notify(self, title: str, message: str, severity: str = "info") -> None:
        self._send({"type": "notification", "title": title, "message": message}, severity)

    def samples(self, title: str, message: str, step: int, pngs: Sequence[bytes]) -> None:
        """A notification that carries pictures."""
        images = [base64.b64encode(png).decode() for png in pngs]
        event = {"type": "notification", "title": title, "message": message}
        self._send({**event, "data": {"step": step}, "images": images})

    def error(self, title: str, message: str) -> None:
        event = {"type": "error", "title": title, "message": message}
        self._send(event, "error", Weight.TERMINAL)

    def close(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        for courier in self._couriers:
            courier.close(deadline)

    def _stage(self, key: str, label: str, status: str, progress: Progress | None = None) -> None:
        stage: Event = {"key": key, "label": label, "status": status}
        if progress:
            stage["progress"] = progress.as_json()
        severity = {"failed": "error", "interrupted": "warning"}.get(status, "info")
        self._send({"type": "lifecycle.stage", "stage": stage}, severity)

    def _send(self, event: Event, severity: str = "info", weight: Weight = Weight.NORMAL) -> None:
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        stamp = {"timestamp": now.replace("+00:00", "Z"), **self._about, "severity": severity}
        full = {"type": event["type"], **stamp, **event}
        for courier in self._couriers:
            if LEVELS[severity] >= courier.listener.level:
                courier.put(full, weight)
