"""Pairs of ranks as arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int32]
Pairs = npt.NDArray[np.int32]  # (k, 2) ranks, each at most once


def pair_keys(pairs: Pairs, ranks: int) -> npt.NDArray[np.int64]:
    """(k,) one number per unordered pair."""
    keys: npt.NDArray[np.int64] = pairs.min(axis=1).astype(np.int64) * ranks + pairs.max(axis=1)
    return keys
