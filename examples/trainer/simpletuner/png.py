"""Writes a PNG file: a signature, and chunks with a checksum each."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

SIGNATURE = b"\x89PNG\r\n\x1a\n"
BITS_PER_CHANNEL = 8
TRUECOLOUR = 2


def encode(width: int, rows: Sequence[bytes | bytearray]) -> bytes:
    """`rows` hold red, green and blue of each pixel, from the top."""
    header = struct.pack(">IIBBBBB", width, len(rows), BITS_PER_CHANNEL, TRUECOLOUR, 0, 0, 0)
    unfiltered = b"".join(b"\0" + row for row in rows)
    body = _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(unfiltered, 6))
    return SIGNATURE + body + _chunk(b"IEND", b"")


def _chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)
