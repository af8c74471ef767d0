"""Draws what the network makes of digits it has never been trained on.

A picture is a grid of held-out digits. A green frame is a right answer, a red
one a mistake; below each digit stand the answer and how sure the network is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .canvas import Canvas, Colour
from .dataset import CLASSES, Digits
from .errors import ConfigError
from .font import width as text_width
from .network import Network
from .settings import read_json
from .upscale import PAPER, drawing

COLUMNS, ROWS = 10, 6
DIGIT = 48
FRAME = 2
TILE = DIGIT + 4 * FRAME
CAPTION = 24
GAP_X, GAP_Y = 12, 10
MARGIN = 28
HEADER = 62

BACKGROUND: Colour = (10, 12, 16)
TRACK: Colour = (33, 38, 45)
BRIGHT: Colour = (230, 237, 243)
DIM: Colour = (125, 133, 144)
GREEN: Colour = (63, 185, 80)
RED: Colour = (248, 81, 73)

DEFAULT_PROMPTS = {"every digit": "0 1 2 3 4 5 6 7 8 9"}


@dataclass(frozen=True)
class Page:
    """A named choice of held-out digits, the same at each validation."""

    title: str
    digits: Digits
    drawings: list[list[bytes]]


def pages(prompt_file: Path | None, held_out: Digits) -> list[Page]:
    """One page for each prompt: a text that names the digits to draw."""
    prompts = DEFAULT_PROMPTS if prompt_file is None else read_json(prompt_file)
    if not isinstance(prompts, dict):
        raise ConfigError(f"{prompt_file} must hold a JSON object: a digit prompt for each name.")
    return [_page(name, _wanted(name, prompt), held_out) for name, prompt in prompts.items()]


def draw(page: Page, network: Network, heading: str) -> bytes:
    """The page as a PNG."""
    width = 2 * MARGIN + COLUMNS * TILE + (COLUMNS - 1) * GAP_X
    height = 2 * MARGIN + HEADER + ROWS * (TILE + CAPTION) + (ROWS - 1) * GAP_Y
    canvas = Canvas(width, height, BACKGROUND)
    right = 0
    for index, (image, label) in enumerate(zip(page.digits.images, page.digits.labels)):
        column, row = divmod(index, ROWS)
        x = MARGIN + column * (TILE + GAP_X)
        y = MARGIN + HEADER + row * (TILE + CAPTION + GAP_Y)
        chances = network.predict(image)
        answer = chances.index(max(chances))
        right += answer == label
        colour = GREEN if answer == label else RED
        _draw_tile(canvas, x, y, page.drawings[index], colour)
        _draw_answer(canvas, x, y + TILE + 7, answer, chances[answer], colour)
    _draw_header(canvas, page.title, heading, right, len(page.digits))
    return canvas.png()


def _draw_tile(canvas: Canvas, x: int, y: int, rows: Sequence[bytes], colour: Colour) -> None:
    inside = TILE - 2 * FRAME
    canvas.rounded(x, y, TILE, TILE, 8, colour)
    canvas.rounded(x + FRAME, y + FRAME, inside, inside, 6, PAPER)
    canvas.picture(x + 2 * FRAME, y + 2 * FRAME, rows)


def _draw_answer(
    canvas: Canvas, x: int, y: int, answer: int, sureness: float, colour: Colour
) -> None:
    canvas.text(x + 2, y, str(answer), colour, scale=2)
    left, length = x + 20, TILE - 22
    canvas.rectangle(left, y + 5, length, 4, TRACK)
    canvas.rectangle(left, y + 5, round(length * sureness), 4, colour)


def _draw_header(canvas: Canvas, title: str, heading: str, right: int, count: int) -> None:
    score = f"{right}/{count} right"
    full = canvas.width - 2 * MARGIN
    canvas.text(MARGIN, MARGIN, title, BRIGHT, scale=2)
    canvas.text(MARGIN + 2 * text_width(title) + 24, MARGIN, heading, DIM, scale=2)
    colour = GREEN if right == count else BRIGHT
    canvas.text(canvas.width - MARGIN - 2 * text_width(score), MARGIN, score, colour, scale=2)
    canvas.rectangle(MARGIN, MARGIN + 28, full, 4, TRACK)
    canvas.rectangle(MARGIN, MARGIN + 28, full * right // max(count, 1), 4, GREEN)


def _wanted(name: str, prompt: object) -> list[int]:
    digits = [int(letter) for letter in str(prompt) if letter in "0123456789"]
    if not digits or len(digits) > COLUMNS:
        raise ConfigError(
            f"The validation prompt '{name}' must name 1 to {COLUMNS} digits, not {prompt!r}."
        )
    return digits


def _page(name: str, wanted: list[int], held_out: Digits) -> Page:
    """Each wanted digit gets its share of the columns."""
    supply = {digit: _samples_of(digit, held_out) for digit in range(CLASSES)}
    chosen = []
    for column in range(COLUMNS):
        samples = supply[wanted[column * len(wanted) // COLUMNS]]
        chosen += samples[:ROWS]
        del samples[:ROWS]
    digits = held_out.pick(chosen)
    drawings = [drawing(image, DIGIT) for image in digits.images]
    return Page(name.replace("_", " "), digits, drawings)


def _samples_of(digit: int, held_out: Digits) -> list[int]:
    return [index for index, label in enumerate(held_out.labels) if label == digit]
