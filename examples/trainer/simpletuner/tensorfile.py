"""Writes and reads safetensors files.

Eight bytes with the length of the header, the header (JSON), then the numbers:
https://github.com/huggingface/safetensors#format. All little-endian.
"""

from __future__ import annotations

import json
import sys
from array import array
from pathlib import Path

from .network import Row, Tensors

TYPE_CODES = {"F32": "f", "F64": "d"}


def write(
    path: Path, dtype: str, tensors: Tensors, shapes: dict[str, list[int]], notes: dict[str, str]
) -> None:
    header: dict[str, object] = {"__metadata__": notes}
    body = bytearray()
    for name, rows in tensors.items():
        start = len(body)
        body += _to_bytes(rows, dtype)
        header[name] = {
            "dtype": dtype,
            "shape": shapes[name],
            "data_offsets": [start, len(body)],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the numbers start at a multiple of eight
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)


def read(path: Path) -> Tensors:
    """The tensors as lists of rows."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        numbers = _from_bytes(content[start + first : start + last], entry["dtype"])
        width = entry["shape"][-1]
        tensors[name] = [numbers[i : i + width] for i in range(0, len(numbers), width)]
    return tensors


def _to_bytes(rows: list[Row], dtype: str) -> bytes:
    numbers = array(TYPE_CODES[dtype], [number for row in rows for number in row])
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def _from_bytes(content: bytes, dtype: str) -> Row:
    numbers: array[float] = array(TYPE_CODES[dtype])
    numbers.frombytes(content)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()
