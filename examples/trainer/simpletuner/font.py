"""A bitmap font, five pixels wide and seven high.

Each letter is seven rows from the top; the five low bits of a row are its pixels.
"""

HEIGHT = 7
ADVANCE = 6

_ROWS = {
    " ": "00 00 00 00 00 00 00",
    ".": "00 00 00 00 00 0C 0C",
    ",": "00 00 00 00 0C 04 08",
    ":": "00 0C 0C 00 0C 0C 00",
    "-": "00 00 00 1F 00 00 00",
    "+": "00 04 04 1F 04 04 00",
    "/": "01 01 02 04 08 10 10",
    "%": "18 19 02 04 08 13 03",
    "0": "0E 11 13 15 19 11 0E",
    "1": "04 0C 04 04 04 04 0E",
    "2": "0E 11 01 02 04 08 1F",
    "3": "1F 02 04 02 01 11 0E",
    "4": "02 06 0A 12 1F 02 02",
    "5": "1F 10 1E 01 01 11 0E",
    "6": "06 08 10 1E 11 11 0E",
    "7": "1F 01 02 04 08 08 08",
    "8": "0E 11 11 0E 11 11 0E",
    "9": "0E 11 11 0F 01 02 0C",
    "A": "0E 11 11 1F 11 11 11",
    "B": "1E 11 11 1E 11 11 1E",
    "C": "0E 11 10 10 10 11 0E",
    "D": "1C 12 11 11 11 12 1C",
    "E": "1F 10 10 1E 10 10 1F",
    "F": "1F 10 10 1E 10 10 10",
    "G": "0E 11 10 17 11 11 0F",
    "H": "11 11 11 1F 11 11 11",
    "I": "0E 04 04 04 04 04 0E",
    "J": "07 02 02 02 02 12 0C",
    "K": "11 12 14 18 14 12 11",
    "L": "10 10 10 10 10 10 1F",
    "M": "11 1B 15 15 11 11 11",
    "N": "11 11 19 15 13 11 11",
    "O": "0E 11 11 11 11 11 0E",
    "P": "1E 11 11 1E 10 10 10",
    "Q": "0E 11 11 11 15 12 0D",
    "R": "1E 11 11 1E 14 12 11",
    "S": "0F 10 10 0E 01 01 1E",
    "T": "1F 04 04 04 04 04 04",
    "U": "11 11 11 11 11 11 0E",
    "V": "11 11 11 11 11 0A 04",
    "W": "11 11 11 15 15 1B 11",
    "X": "11 11 0A 04 0A 11 11",
    "Y": "11 11 11 0A 04 04 04",
    "Z": "1F 01 02 04 08 10 1F",
}

_GLYPHS = {letter: [int(row, 16) for row in rows.split()] for letter, rows in _ROWS.items()}


def pixels(text: str) -> list[tuple[int, int]]:
    """The (x, y) of each lit pixel; small letters are drawn as capitals."""
    return [
        (ADVANCE * index + column, y)
        for index, letter in enumerate(text.upper())
        for y, row in enumerate(_GLYPHS.get(letter, _GLYPHS[" "]))
        for column in range(5)
        if row & (0x10 >> column)
    ]


def width(text: str) -> int:
    return max(0, ADVANCE * len(text) - 1)
