"""Arrays as text inside the page."""

from __future__ import annotations

import base64

import numpy as np


def packed(values: np.ndarray, kind: str) -> str:
    """Base64 of little-endian numbers of a numpy type."""
    return base64.b64encode(np.asarray(values).astype(kind).tobytes()).decode()


def number(value: float) -> float | None:
    """JSON has no NaN."""
    return float(value) if np.isfinite(value) else None
