"""Sum of the TCP segments of a row over several launches: segments sent and lost between hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fablint.model.facts.row_attributes import TcpSegments


def added_segments(parts: Sequence[TcpSegments]) -> TcpSegments:
    """Sums of the segments of launches that measured rounds of one row (docs/reference/run-format.md)."""
    names = sorted({name for part in parts for name in part.ends})
    number = {name: at for at, name in enumerate(names)}
    sent: Counter[str] = Counter()
    received: Counter[str] = Counter()
    pairs: dict[tuple[int, int], list[int]] = {}
    for part in parts:
        ends = part.ends
        sent.update(dict(zip(ends, part.sent, strict=True)))
        received.update(dict(zip(ends, part.received, strict=True)))
        for src, dst, *counts in part.pairs:
            total = pairs.setdefault((number[ends[src]], number[ends[dst]]), [0] * len(counts))
            total[:] = [a + b for a, b in zip(total, counts, strict=True)]
    return TcpSegments(
        ends=names,
        sent=[sent[name] for name in names],
        received=[received[name] for name in names],
        pairs=[[*pair, *counts] for pair, counts in sorted(pairs.items())],
        left_out=sum(part.left_out for part in parts),
        knows_spurious=all(part.knows_spurious for part in parts),
    )
