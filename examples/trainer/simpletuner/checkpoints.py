"""Saves the state of a run, and continues from it as if nothing had happened."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from . import tensorfile
from .console import Console
from .errors import ConfigError
from .network import Network, Tensors
from .optimizer import AdamW

WEIGHTS = "model.safetensors"
OPTIMIZER = "optimizer.safetensors"
STATE = "trainer_state.json"

FINISHED_NAME = re.compile(r"checkpoint-(\d+)")
UNFINISHED = ".unfinished-"

UNREADABLE = (OSError, ValueError, LookupError, TypeError, AttributeError)


@dataclass
class Position:
    """Where in the run we are.

    The order of the samples is computed from the seed and the epoch, so there
    is no state of a random generator to keep besides the step.
    """

    step: int = 0
    loss: float = 0.0
    accuracy: float = 0.0


class Checkpoints:
    """The `checkpoint-<step>` directories below the output directory."""

    def __init__(self, output_dir: Path, limit: int, console: Console) -> None:
        self._root = output_dir
        self._limit = limit
        self._console = console
        try:
            output_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                f"Cannot create the output_dir {output_dir}: {error.strerror or error}."
            ) from error
        for leftover in output_dir.glob(f"{UNFINISHED}*"):
            _remove(leftover)

    def save(self, network: Network, optimizer: AdamW, position: Position) -> Path:
        """Write everything beside its final place, then rename it there."""
        target = self._root / f"checkpoint-{position.step}"
        draft = self._root / f"{UNFINISHED}{target.name}"
        draft.mkdir()
        write_model(draft / WEIGHTS, network, position)
        _write_exact(draft / OPTIMIZER, network, optimizer)
        (draft / STATE).write_text(json.dumps(asdict(position), indent=2) + "\n")
        for file in draft.iterdir():
            _sync(file)
        if target.exists():
            target.rename(self._root / f"{UNFINISHED}old-{target.name}")
        draft.rename(target)
        _remove(self._root / f"{UNFINISHED}old-{target.name}")
        self._prune(keep=target)
        return target

    def save_final(self, network: Network, position: Position) -> Path:
        target = self._root / WEIGHTS
        draft = self._root / f"{UNFINISHED}{WEIGHTS}"
        write_model(draft, network, position)
        _sync(draft)
        draft.replace(target)
        return target

    def restore(self, wanted: str, network: Network, optimizer: AdamW) -> Position | None:
        """Continue from "latest" or from a named checkpoint; None starts afresh."""
        if wanted == "latest":
            return self._restore_latest(network, optimizer)
        path = Path(wanted) if os.path.isabs(wanted) else self._root / wanted
        try:
            return _read(path, network, optimizer)
        except UNREADABLE as error:
            raise ConfigError(
                f"resume_from_checkpoint: cannot read {path} ({error}); "
                'name an existing checkpoint, or "latest".'
            ) from error

    def _restore_latest(self, network: Network, optimizer: AdamW) -> Position | None:
        for path in reversed(self._finished()):
            try:
                return _read(path, network, optimizer)
            except UNREADABLE as error:
                self._console.warn(f"{path.name} cannot be read ({error}); trying an older one")
        return None

    def _finished(self) -> list[Path]:
        steps = {}
        for path in self._root.iterdir():
            match = FINISHED_NAME.fullmatch(path.name)
            if match:
                steps[path] = int(match[1])
        return sorted(steps, key=steps.__getitem__)

    def _prune(self, keep: Path) -> None:
        if self._limit:
            older = [path for path in self._finished() if path != keep]
            for path in older[: max(0, len(older) + 1 - self._limit)]:
                _remove(path)


def write_model(path: Path, network: Network, position: Position) -> None:
    """The weights as other tools expect them."""
    notes = {"format": "pt", "step": str(position.step), "accuracy": f"{position.accuracy:.4f}"}
    tensorfile.write(path, "F32", network.tensors, network.shapes(), notes)


def _write_exact(path: Path, network: Network, optimizer: AdamW) -> None:
    """The weights and the optimizer's memory in full precision."""
    tensors: Tensors = {}
    shapes = {}
    sources = {"weights": network.tensors, "mean": optimizer.means, "square": optimizer.squares}
    for prefix, source in sources.items():
        for name, rows in source.items():
            tensors[f"{prefix}.{name}"] = rows
            shapes[f"{prefix}.{name}"] = network.shapes()[name]
    tensorfile.write(path, "F64", tensors, shapes, {})


def _read(path: Path, network: Network, optimizer: AdamW) -> Position:
    position = Position(**json.loads((path / STATE).read_text()))
    stored = tensorfile.read(path / OPTIMIZER)
    targets = {"weights": network.tensors, "mean": optimizer.means, "square": optimizer.squares}
    found = {
        prefix: {name: stored[f"{prefix}.{name}"] for name in target}
        for prefix, target in targets.items()
    }
    if _sizes(found["weights"]) != _sizes(network.tensors):
        raise ConfigError(
            f"{path.name} holds a network of another size: restore the old "
            "'example_hidden_units', or train into another output_dir."
        )
    for prefix, target in targets.items():
        target.update(found[prefix])
    return position


def _sizes(tensors: Tensors) -> dict[str, list[int]]:
    return {name: [len(row) for row in rows] for name, rows in tensors.items()}


def _sync(path: Path) -> None:
    """A rename must never overtake the content it makes visible."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
