"""Pairs of ranks as arrays."""

from __future__ import annotations

import numpy as np

from fablint.model.arrays import Codes, RankPairs


def pair_keys(pairs: RankPairs, ranks: int) -> Codes:
    """(k,) one number per unordered pair."""
    keys: Codes = pairs.min(axis=1).astype(np.int64) * ranks + pairs.max(axis=1)
    return keys
