"""The rows of a check: small messages show paths and waiting, large ones the width of links."""

from __future__ import annotations

from fablint.model import RowSpec

ROWS = (RowSpec("latency", sizes=(8,)), RowSpec("bandwidth", sizes=(1 << 20,), warmup=(2, 2)))
