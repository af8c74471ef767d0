"""Enlarges an 8 x 8 digit into a smooth drawing."""

from __future__ import annotations

from functools import lru_cache

from .dataset import SIDE
from .network import Row

PAPER = (13, 17, 23)
INK = (240, 246, 252)

# Few enough for a small file, too many for the eye to tell apart at this size.
LEVELS = 48


def drawing(image: Row, size: int) -> list[bytes]:
    """Rows of red, green and blue, light ink on dark paper."""
    taps = _taps(size)
    lines = [image[i : i + SIDE] for i in range(0, len(image), SIDE)]
    wide = [_stretch(line, taps) for line in lines]
    columns = [_stretch(list(column), taps) for column in zip(*wide)]
    return [b"".join([PALETTE[_level(value)] for value in row]) for row in zip(*columns)]


@lru_cache(maxsize=1)
def _taps(size: int) -> list[list[tuple[int, float]]]:
    """For each new pixel the old pixels it is made of, and their shares."""
    taps = []
    for position in range(size):
        centre = (position + 0.5) * SIDE / size - 0.5
        first = int(centre // 1) - 1
        shares = [(old, _spline(centre - old)) for old in range(first, first + 4)]
        taps.append([(old, share) for old, share in shares if 0 <= old < SIDE])
    return taps


def _spline(distance: float) -> float:
    """Mitchell and Netravali's cubic: smooth, with hardly any ringing."""
    x = abs(distance)
    if x < 1:
        return (7 * x**3 - 12 * x**2 + 16 / 3) / 6
    if x < 2:
        return (-7 / 3 * x**3 + 12 * x**2 - 20 * x + 32 / 3) / 6
    return 0.0


def _stretch(line: Row, taps: list[list[tuple[int, float]]]) -> Row:
    return [sum([line[old] * share for old, share in tap]) for tap in taps]


def _level(value: float) -> int:
    return max(0, min(LEVELS - 1, int(value * LEVELS)))


def _colour(level: int) -> bytes:
    """Paper to ink, with the edges of the strokes made crisper."""
    share = min(1.0, max(0.0, (level / LEVELS - 0.06) / 0.86))
    share = share * share * (3 - 2 * share)
    return bytes(round(dark + (light - dark) * share) for dark, light in zip(PAPER, INK))


PALETTE = [_colour(level) for level in range(LEVELS)]
