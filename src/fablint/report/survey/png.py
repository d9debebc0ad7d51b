"""A minimal writer of greyscale PNG images (ISO/IEC 15948): how a report carries its matrices."""

from __future__ import annotations

import struct
import zlib

import numpy as np

_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def grey_png(pixels: np.ndarray) -> bytes:
    """Pixels (height, width) uint8 as a PNG file: 8 bits a pixel, without gamma, so that values pass unchanged."""
    height, width = pixels.shape
    lines = np.zeros((height, width + 1), dtype=np.uint8)  # every line starts with its filter type, 0: none
    lines[:, 1:] = pixels
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 3)), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(kind, content) for kind, content in chunks)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
