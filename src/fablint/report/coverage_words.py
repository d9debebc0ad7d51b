"""How much of the fabric was measured, in words."""

from __future__ import annotations

import numpy as np

from fablint.report.link_coverage import links_judged
from fablint.report.summary import cells_of_run
from fablint.report.survey.report_source import ReportSource


def coverage_words(source: ReportSource) -> str:
    """`98,304 of 16,773,120 ordered pairs (0.6 %), plan complete; judged 64 of 64 links`."""
    words = [f"{pairs_words(_pairs(source), source.run.ranks)}, {_plan(source)}"] if source.cells else []
    links = links_judged(source.diagnosis.verdict)
    return "; ".join([*words, f"judged {links}"] if links else words)


def pairs_words(measured: int, ranks: int) -> str:
    """`98,304 of 16,773,120 ordered pairs (0.6 %)`; without a share where all were measured."""
    total = ranks * (ranks - 1)
    share = 100 * measured / max(total, 1)
    digits = f"{share:.2g}" if share < 10 else f"{min(share, 99.9):.3g}"
    words = f"{measured:,} of {total:,} ordered pairs"
    return words if measured >= total else f"{words} ({digits} %)"


def _pairs(source: ReportSource) -> int:
    """Ordered pairs of ranks that some row measured."""
    keys = [
        np.unique(own.cells.src.astype(np.int64) * source.run.ranks + own.cells.dst)
        for own in source.cells.values()
        if own.cells.complete
    ]
    whole = int(np.unique(np.concatenate(keys)).size) if keys else 0
    sampled = (source.surveys[name] for name, own in source.cells.items() if not own.cells.complete)
    return max([whole, *(max(one.distribution.pairs() for one in sizes) for sizes in sampled)])


def _plan(source: ReportSource) -> str:
    measured, planned = cells_of_run(source.run)
    if measured >= planned and source.run.state == "complete":
        return "plan complete"
    return f"{min(100 * measured / max(planned, 1), 99.9):.3g} % of the plan"
