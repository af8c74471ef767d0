"""A picture in memory that can be drawn on."""

from __future__ import annotations

import math
from collections.abc import Sequence

from . import font, png

Colour = tuple[int, int, int]


class Canvas:
    def __init__(self, width: int, height: int, background: Colour) -> None:
        self.width = width
        self.rows = [bytearray(bytes(background) * width) for _ in range(height)]

    def rectangle(self, x: int, y: int, width: int, height: int, colour: Colour) -> None:
        stripe = bytes(colour) * width
        for row in self.rows[y : y + height]:
            row[3 * x : 3 * (x + width)] = stripe

    def rounded(self, x: int, y: int, width: int, height: int, radius: int, colour: Colour) -> None:
        """A rectangle whose corners are quarter circles with smooth edges."""
        self.rectangle(x + radius, y, width - 2 * radius, height, colour)
        self.rectangle(x, y + radius, width, height - 2 * radius, colour)
        for down in range(radius):
            for right in range(radius):
                cover = _cover(radius - right - 0.5, radius - down - 0.5, radius)
                for px in (x + right, x + width - 1 - right):
                    for py in (y + down, y + height - 1 - down):
                        self._blend(px, py, colour, cover)

    def picture(self, x: int, y: int, rows: Sequence[bytes]) -> None:
        for row, pixels in zip(self.rows[y:], rows):
            row[3 * x : 3 * x + len(pixels)] = pixels

    def text(self, x: int, y: int, text: str, colour: Colour, scale: int = 1) -> None:
        for right, down in font.pixels(text):
            self.rectangle(x + scale * right, y + scale * down, scale, scale, colour)

    def png(self) -> bytes:
        return png.encode(self.width, self.rows)

    def _blend(self, x: int, y: int, colour: Colour, cover: float) -> None:
        row = self.rows[y]
        for channel, value in enumerate(colour, start=3 * x):
            row[channel] = round(row[channel] + (value - row[channel]) * cover)


def _cover(across: float, down: float, radius: int) -> float:
    """How much of a pixel lies inside a circle, near enough."""
    return min(1.0, max(0.0, radius + 0.5 - math.hypot(across, down)))
