"""Posts events in the background, so that a slow listener costs no training time."""

from __future__ import annotations

import http.client
import json
import threading
import time
import urllib.error
import urllib.request
from collections import deque
from enum import IntEnum
from typing import Any
from urllib.parse import urlsplit

from .console import Console
from .webhook_config import Listener

POST_SECONDS = 5.0
QUEUE_LENGTH = 256
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
CLOSING_PAUSE = 0.2
TRY_AGAIN = (408, 425, 429)
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Weight(IntEnum):
    """What goes first when the queue is full."""

    PROGRESS = 0
    NORMAL = 1
    TERMINAL = 2  # never dropped


class Courier(threading.Thread):
    """One thread and one bounded queue for each listener."""

    def __init__(self, listener: Listener, console: Console) -> None:
        super().__init__(daemon=True, name=f"webhook {listener.name}")
        self.listener = listener
        self._console = console
        self._queue: deque[tuple[Weight, dict[str, Any]]] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._pause = 0.0
        self._complained_of_rejection = False
        self._opener = _opener(listener.url)
        self.start()

    def put(self, event: dict[str, Any], weight: Weight) -> None:
        with self._changed:
            self._queue.append((weight, event))
            self._shrink()
            self._changed.notify()

    def close(self, deadline: float) -> None:
        """Wait until everything is sent, but not beyond the deadline."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self.join(max(0.0, deadline - time.monotonic()))
        if self.is_alive():
            self._console.warn(f"webhook {self.listener.name}: the last events could not be sent")

    def run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._closing)
                if not self._queue:
                    return
                weight, event = self._queue.popleft()
            if self._post(event):
                continue
            with self._changed:
                self._queue.appendleft((weight, event))
                self._shrink()
                self._changed.wait_for(lambda: self._closing, timeout=self._pause)
            if self._closing:
                time.sleep(CLOSING_PAUSE)

    def _shrink(self) -> None:
        if len(self._queue) > QUEUE_LENGTH:
            lightest = min(weight for weight, _ in self._queue)
            if lightest < Weight.TERMINAL:
                weights = [weight for weight, _ in self._queue]
                del self._queue[weights.index(lightest)]

    def _post(self, event: dict[str, Any]) -> bool:
        """True when the listener has had its chance to take the event."""
        headers = {"Content-Type": "application/json", "X-API-Key": self.listener.token}
        body = json.dumps(event, allow_nan=False).encode()
        request = urllib.request.Request(self.listener.url, body, headers, method="POST")
        try:
            with self._opener.open(request, timeout=POST_SECONDS) as answer:
                answer.read()
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code not in TRY_AGAIN:
                self._note_rejection(error.code)
                return True
            return self._note_absence(f"HTTP {error.code}")
        except (OSError, http.client.HTTPException) as error:
            return self._note_absence(str(getattr(error, "reason", error)))
        if self._pause:
            self._console.info(f"webhook {self.listener.name} answers again")
        self._pause = 0.0
        return True

    def _note_rejection(self, code: int) -> None:
        if not self._complained_of_rejection:
            self._complained_of_rejection = True
            self._console.warn(
                f"webhook {self.listener.name} rejected an event (HTTP {code}): check its "
                "auth_token and callback_url; the training goes on"
            )

    def _note_absence(self, why: str) -> bool:
        if not self._pause:
            self._console.warn(
                f"webhook {self.listener.name} does not answer ({why}); "
                "the training goes on and reports again later"
            )
        self._pause = min(max(2 * self._pause, FIRST_PAUSE), LONGEST_PAUSE)
        return False


def _opener(url: str) -> urllib.request.OpenerDirector:
    if urlsplit(url).hostname in LOOPBACK:
        # A proxy set for the internet cannot reach this machine's own ports.
        return urllib.request.build_opener(urllib.request.ProxyHandler({}))
    return urllib.request.build_opener()
