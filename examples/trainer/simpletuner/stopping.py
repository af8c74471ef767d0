"""Notices that somebody wants the training to stop."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

POLL_SECONDS = 0.05


class StopRequest:
    """Raised by SIGTERM, by SIGINT, or by the appearance of a file."""

    def __init__(self, stop_file: Path | None) -> None:
        self._stop_file = stop_file
        self._signal_name: str | None = None
        self._ignored = False
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)

    def ignore(self) -> None:
        """From now on only SIGKILL ends the process."""
        self._ignored = True

    def reason(self) -> str | None:
        """Why to stop, or None to go on."""
        if self._ignored:
            return None
        if self._signal_name:
            return self._signal_name
        if self._stop_file and self._stop_file.exists():
            return "the stop file"
        return None

    def sleep(self, seconds: float) -> None:
        """Sleep, but wake up soon after a request to stop."""
        end = time.monotonic() + seconds
        while self.reason() is None:
            left = end - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, POLL_SECONDS))

    def _on_signal(self, number: int, _frame: Any) -> None:
        # A plain assignment: a handler that takes a lock could find it taken
        # by the very code it interrupted.
        self._signal_name = signal.Signals(number).name
