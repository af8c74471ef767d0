"""What a user sees: log lines on stdout, a progress bar on stderr."""

from __future__ import annotations

import os
import sys
from datetime import datetime
from typing import TextIO

BAR_CELLS = 24
EIGHTHS = " ▏▎▍▌▋▊▉"


class Console:
    """Both streams, kept apart so that either can be read by a program."""

    def __init__(self) -> None:
        for stream in (sys.stdout, sys.stderr):
            # A locale without UTF-8 must cost a few characters, not the run.
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
        # On one screen, or in one log, a line must not continue the bar.
        self._share_a_place = _place(sys.stdout) == _place(sys.stderr)
        self._bar_is_open = False

    def info(self, message: str) -> None:
        self._line("INFO ", message)

    def warn(self, message: str) -> None:
        self._line("WARN ", message)

    def bar(self, done: int, total: int, note: str) -> None:
        """Redraw the progress bar in place."""
        percent = 100 * done // max(total, 1)
        sys.stderr.write(f"\r{percent:3d}% |{_cells(done, total)}| {done}/{total} {note} ")
        sys.stderr.flush()
        self._bar_is_open = True

    def end_bar(self) -> None:
        if self._bar_is_open:
            sys.stderr.write("\n")
            sys.stderr.flush()
            self._bar_is_open = False

    def _line(self, level: str, message: str) -> None:
        if self._bar_is_open and self._share_a_place:
            sys.stderr.write("\r\033[K" if sys.stderr.isatty() else "\r")
            sys.stderr.flush()
        clock = datetime.now().strftime("%Y-%m-%d %H:%M:%S")
        sys.stdout.write(f"{clock} {level} {message}\n")
        sys.stdout.flush()


def _place(stream: TextIO) -> tuple[int, int] | None:
    """Where a stream leads; none for one that is no file."""
    try:
        status = os.fstat(stream.fileno())
    except OSError:
        return None
    return (status.st_dev, status.st_ino)


def _cells(done: int, total: int) -> str:
    full, part = divmod(8 * BAR_CELLS * done // max(total, 1), 8)
    return ("█" * full + EIGHTHS[part])[:BAR_CELLS].ljust(BAR_CELLS)
