"""The handwritten digits: 8 x 8 pixels of 0..1 and the digit they show."""

from __future__ import annotations

import gzip
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import ConfigError
from .settings import read_json

SIDE = 8
PIXELS = SIDE * SIDE
CLASSES = 10
BRIGHTEST = 16

BUILTIN = {"builtin:digits": Path(__file__).parent / "data" / "digits.csv.gz"}

# Not the training seed: runs with different seeds are compared on the same digits.
SPLIT_SEED = 0


@dataclass(frozen=True)
class Digits:
    """Images and labels, one of each per sample."""

    images: list[list[float]]
    labels: list[int]

    def __len__(self) -> int:
        return len(self.labels)

    def pick(self, indices: list[int]) -> Digits:
        return Digits([self.images[i] for i in indices], [self.labels[i] for i in indices])


@dataclass(frozen=True)
class Split:
    training: Digits
    held_out: Digits


def load(backend_file: Path) -> Split:
    """The data set that the data backend file names, split for training."""
    backend = _only_backend(backend_file)
    source = backend.get("instance_data_dir")
    if source not in BUILTIN:
        raise ConfigError(
            f"{backend_file.name}: 'instance_data_dir' must be 'builtin:digits', "
            f"the only data set the example trainer has, not {source!r}."
        )
    return _split(_read(BUILTIN[source]), _held_out_fraction(backend, backend_file))


def _only_backend(path: Path) -> dict[str, Any]:
    content = read_json(path)
    backends = content if isinstance(content, list) else [content]
    active = [one for one in backends if isinstance(one, dict) and not one.get("disabled")]
    if len(active) != 1:
        raise ConfigError(
            f"{path.name} must be a list with exactly one active data backend; "
            f"it has {len(active)}."
        )
    return active[0]


def _held_out_fraction(backend: dict[str, Any], path: Path) -> float:
    value = backend.get("held_out_fraction", 0.2)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.02 <= value <= 0.9:
        raise ConfigError(
            f"{path.name}: 'held_out_fraction' must be a number from 0.02 to 0.9, not {value!r}."
        )
    return float(value)


def _read(path: Path) -> Digits:
    images, labels = [], []
    with gzip.open(path, "rt", encoding="ascii") as lines:
        for line in lines:
            *pixels, label = map(float, line.split(","))
            images.append([pixel / BRIGHTEST for pixel in pixels])
            labels.append(int(label))
    return Digits(images, labels)


def _split(digits: Digits, held_out_fraction: float) -> Split:
    order = list(range(len(digits)))
    random.Random(SPLIT_SEED).shuffle(order)
    cut = round(len(order) * held_out_fraction)
    return Split(training=digits.pick(order[cut:]), held_out=digits.pick(order[:cut]))
