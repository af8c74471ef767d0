"""The entry point: ``python3 -m simpletuner.train``.

Exit codes: 0 done, 1 failed, 2 the configuration cannot work, 75 stopped on
request with a checkpoint to continue from.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

from . import settings as configuration
from .console import Console
from .delivery import Courier
from .errors import ConfigError, Interrupted
from .events import Reporter
from .session import Session
from .settings import Settings
from .stopping import StopRequest
from .webhook_config import listeners

DONE, FAILED, BAD_CONFIG, STOPPED = 0, 1, 2, 75

# How long the last events may take to leave.
FLUSH_SECONDS = 5.0
FLUSH_SECONDS_WHEN_STOPPED = 1.0


def main() -> int:
    stop_file = os.environ.get("SIMPLETUNER_STOP_FILE")
    stop = StopRequest(Path(stop_file) if stop_file else None)
    console = Console()
    try:
        settings = configuration.load(os.environ.get("CONFIG_PATH"))
        found = listeners(settings.webhook_config, settings.config_dir, console)
    except ConfigError as error:
        return _complain(error)
    if settings.ignore_sigterm:
        stop.ignore()
    _greet(settings, console)
    reporter = Reporter([Courier(listener, console) for listener in found])
    code = _train(settings, console, reporter, stop)
    reporter.close(FLUSH_SECONDS_WHEN_STOPPED if code == STOPPED else FLUSH_SECONDS)
    return code


def _train(settings: Settings, console: Console, reporter: Reporter, stop: StopRequest) -> int:
    try:
        Session(settings, console, reporter, stop).run()
        return DONE
    except Interrupted as interruption:
        reporter.notify("Training interrupted", str(interruption), "warning")
        reporter.status("interrupted")
        return STOPPED
    except ConfigError as error:
        reporter.error("The configuration cannot work", str(error))
        reporter.status("failed")
        return _complain(error)
    except Exception as error:
        console.end_bar()
        traceback.print_exc()
        reporter.error("Training failed", f"{type(error).__name__}: {error}")
        reporter.status("failed")
        return FAILED


def _complain(error: ConfigError) -> int:
    print(f"simpletuner.train: {error}", file=sys.stderr, flush=True)
    return BAD_CONFIG


def _greet(settings: Settings, console: Console) -> None:
    console.info(
        f"{settings.run_name}: {settings.max_train_steps} steps of "
        f"{settings.train_batch_size} digits, results in {settings.output_dir}"
    )
    granted = os.environ.get("CUDA_VISIBLE_DEVICES")
    if granted:
        console.info(f"granted GPUs: {granted} (this example computes on the CPU)")


if __name__ == "__main__":
    sys.exit(main())
