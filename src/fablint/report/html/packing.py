"""Values and arrays as text inside the page."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import numpy as np

_MOST_CODE = 65_534


def packed(values: np.ndarray, kind: str) -> str:
    """Base64 of little-endian numbers of a numpy type."""
    return base64.b64encode(np.asarray(values).astype(kind).tobytes()).decode()


def coded(values: np.ndarray) -> dict[str, Any]:
    """Base64 of two bytes for each number, in steps from the lowest one on; code 0 is NaN."""
    finite_values = values[np.isfinite(values)]
    low, high = (float(finite_values.min()), float(finite_values.max())) if finite_values.size else (0.0, 0.0)
    step = (high - low) / _MOST_CODE or 1.0
    codes = np.where(np.isfinite(values), 1 + np.rint((np.nan_to_num(values) - low) / step), 0)
    return {"codes": packed(codes, "<u2"), "low": low, "step": step}


def number(value: float) -> float | None:
    """JSON has no NaN."""
    return float(value) if np.isfinite(value) else None


def embeddable(value: Any) -> str:
    """JSON that can stand inside a script element: no `<`, `>` or `&` survives unescaped."""
    escapes = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
    return re.sub("[<>&\u2028\u2029]", lambda match: escapes[match[0]], json.dumps(value, allow_nan=False))
