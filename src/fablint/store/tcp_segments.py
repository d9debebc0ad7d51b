"""Sum of the row attribute `tcp` over several launches: segments sent and lost between hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any


def added_segments(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Sums of the attributes of launches that measured rounds of one row (docs/reference/run-format.md)."""
    names = sorted({name for part in parts for name in part["ends"]})
    number = {name: at for at, name in enumerate(names)}
    sums: dict[str, Counter[str]] = {"sent": Counter(), "received": Counter()}
    pairs: dict[tuple[int, int], list[int]] = {}
    for part in parts:
        ends = part["ends"]
        for quantity, by_pair in sums.items():
            by_pair.update(dict(zip(ends, part[quantity], strict=True)))
        for src, dst, *counts in part["pairs"]:
            own = pairs.setdefault((number[ends[src]], number[ends[dst]]), [0] * len(counts))
            own[:] = [a + b for a, b in zip(own, counts, strict=True)]
    return {
        "ends": names,
        **{quantity: [by_pair[name] for name in names] for quantity, by_pair in sums.items()},
        "pairs": [[*pair, *counts] for pair, counts in sorted(pairs.items())],
        "left_out": sum(part["left_out"] for part in parts),
        "knows_spurious": all(part["knows_spurious"] for part in parts),
    }
