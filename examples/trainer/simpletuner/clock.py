"""How fast the training goes, and when to say so."""

from __future__ import annotations

import time

from .settings import Settings

# Eight reports a second: enough for a lively chart, no burden for a listener.
SECONDS_BETWEEN_REPORTS = 0.125


class Clock:
    """Starts with the first step of this process, not of the whole run."""

    def __init__(self, first_step: int, settings: Settings) -> None:
        self._first_step = first_step
        self._settings = settings
        self._started = time.monotonic()
        self._next_report = self._started + SECONDS_BETWEEN_REPORTS

    def report_is_due(self) -> bool:
        now = time.monotonic()
        if now < self._next_report:
            return False
        self._next_report = now + SECONDS_BETWEEN_REPORTS
        return True

    def samples_per_second(self, step: int) -> float:
        return (step - self._first_step) * self._settings.train_batch_size / self._elapsed()

    def eta_seconds(self, step: int) -> float | None:
        done = step - self._first_step
        if not done:
            return None
        return self._elapsed() / done * (self._settings.max_train_steps - step)

    def _elapsed(self) -> float:
        return max(time.monotonic() - self._started, 1e-6)
