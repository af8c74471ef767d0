"""A network with one hidden layer, and how its error flows back through it."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from operator import mul

from .dataset import CLASSES, PIXELS, Digits

# A matrix is a list of rows; a vector is a matrix with one row.
Row = list[float]
Tensors = dict[str, list[Row]]

SMALLEST_PROBABILITY = 1e-12


class Network:
    """64 pixels -> hidden units (ReLU) -> ten probabilities (softmax)."""

    def __init__(self, tensors: Tensors) -> None:
        self.tensors = tensors

    @classmethod
    def fresh(cls, hidden_units: int, seed: int) -> Network:
        rng = random.Random(f"weights {seed}")
        return cls(
            {
                "hidden.weight": _gaussian(rng, hidden_units, PIXELS),
                "hidden.bias": [[0.0] * hidden_units],
                "output.weight": _gaussian(rng, CLASSES, hidden_units),
                "output.bias": [[0.0] * CLASSES],
            }
        )

    @property
    def size(self) -> int:
        return sum(len(row) for rows in self.tensors.values() for row in rows)

    def shapes(self) -> dict[str, list[int]]:
        """Sizes as other tools write them: a vector has one dimension."""
        return {
            name: [len(rows[0])] if name.endswith("bias") else [len(rows), len(rows[0])]
            for name, rows in self.tensors.items()
        }

    def predict(self, image: Row) -> Row:
        return _softmax(self._scores(self._hidden(image)))

    def gradients(self, batch: Digits) -> tuple[float, Tensors]:
        """The mean loss over a batch, and how each weight should change it."""
        hidden = [self._hidden(image) for image in batch.images]
        guesses = [_softmax(self._scores(units)) for units in hidden]
        loss = mean_loss(guesses, batch.labels)

        output_errors = guesses
        for error, label in zip(output_errors, batch.labels):
            error[label] -= 1.0
        columns = list(zip(*self.tensors["output.weight"]))
        hidden_errors = [
            [_dot(error, column) if unit > 0 else 0.0 for column, unit in zip(columns, units)]
            for error, units in zip(output_errors, hidden)
        ]
        return loss, {
            "hidden.weight": _mean_products(hidden_errors, batch.images),
            "hidden.bias": [_mean(hidden_errors)],
            "output.weight": _mean_products(output_errors, hidden),
            "output.bias": [_mean(output_errors)],
        }

    def _hidden(self, image: Row) -> Row:
        (biases,) = self.tensors["hidden.bias"]
        rows = self.tensors["hidden.weight"]
        return [max(0.0, _dot(row, image) + bias) for row, bias in zip(rows, biases)]

    def _scores(self, hidden: Row) -> Row:
        (biases,) = self.tensors["output.bias"]
        rows = self.tensors["output.weight"]
        return [_dot(row, hidden) + bias for row, bias in zip(rows, biases)]


def mean_loss(guesses: Sequence[Row], labels: Sequence[int]) -> float:
    """Cross-entropy: how surprised the network is by the right answers."""
    chances = (max(guess[label], SMALLEST_PROBABILITY) for guess, label in zip(guesses, labels))
    return -sum(map(math.log, chances)) / len(labels)


def _dot(left: Iterable[float], right: Iterable[float]) -> float:
    return sum(map(mul, left, right))


def _softmax(scores: Row) -> Row:
    highest = max(scores)
    powers = [math.exp(score - highest) for score in scores]
    total = sum(powers)
    return [power / total for power in powers]


def _mean(rows: Sequence[Row]) -> Row:
    return [sum(column) / len(rows) for column in zip(*rows)]


def _mean_products(errors: Sequence[Row], inputs: Sequence[Row]) -> list[Row]:
    """The mean over the batch of error x input, for each pair of units."""
    count = len(inputs)
    input_columns = list(zip(*inputs))
    return [[_dot(error, column) / count for column in input_columns] for error in zip(*errors)]


def _gaussian(rng: random.Random, rows: int, columns: int) -> list[Row]:
    # He et al.: keeps the size of the signal even from layer to layer.
    spread = math.sqrt(2 / columns)
    return [[rng.gauss(0.0, spread) for _ in range(columns)] for _ in range(rows)]
