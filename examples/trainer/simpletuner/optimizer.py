"""AdamW, and how its learning rate changes over the run."""

from __future__ import annotations

import math

from .network import Tensors
from .settings import Settings

MEAN_DECAY = 0.9
SQUARE_DECAY = 0.999
EPSILON = 1e-8


class AdamW:
    """Remembers a running mean and a running square of each gradient."""

    def __init__(self, tensors: Tensors, weight_decay: float) -> None:
        self.means = _zeros_like(tensors)
        self.squares = _zeros_like(tensors)
        self._weight_decay = weight_decay

    def update(self, tensors: Tensors, gradients: Tensors, rate: float, step: int) -> None:
        """Move the weights in place; `step` counts from 1."""
        mean_scale = 1 / (1 - MEAN_DECAY**step)
        square_scale = 1 / (1 - SQUARE_DECAY**step)
        for name, rows in tensors.items():
            keep = 1.0 if name.endswith("bias") else 1 - rate * self._weight_decay
            parts = zip(rows, gradients[name], self.means[name], self.squares[name])
            for row, slopes, mean, square in parts:
                mean[:] = [MEAN_DECAY * m + (1 - MEAN_DECAY) * g for m, g in zip(mean, slopes)]
                square[:] = [
                    SQUARE_DECAY * s + (1 - SQUARE_DECAY) * g * g for s, g in zip(square, slopes)
                ]
                row[:] = [
                    w * keep - rate * m * mean_scale / (math.sqrt(s * square_scale) + EPSILON)
                    for w, m, s in zip(row, mean, square)
                ]


def learning_rate(settings: Settings, step: int) -> float:
    """The rate for a step that counts from 1."""
    warmup = settings.lr_warmup_steps
    if step <= warmup:
        return settings.learning_rate * step / warmup
    done = (step - 1 - warmup) / max(1, settings.max_train_steps - warmup)
    if settings.lr_scheduler == "cosine":
        return settings.learning_rate * (1 + math.cos(math.pi * done)) / 2
    if settings.lr_scheduler == "linear":
        return settings.learning_rate * (1 - done)
    return settings.learning_rate


def _zeros_like(tensors: Tensors) -> Tensors:
    return {name: [[0.0] * len(row) for row in rows] for name, rows in tensors.items()}
