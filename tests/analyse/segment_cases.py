"""TCP segments of fabrics that lose some, drawn segment by segment: a generator of its own, beside lateness_cases.py.

Every segment of a pair is lost with the shares of the components that it crosses on its path. Of each that arrives the
acknowledgement may be lost on the path back: it is sent again though it has arrived, the receiver reports that, and the
report may be lost as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from lateness_cases import Layout, LossyFabric

from fablint.analyse import diagnose
from fablint.model import Finding, Row, Run, State
from fact_cases import with_facts


@dataclass(frozen=True)
class Resending:
    """A fabric whose times show nothing, and the share of segments that its components lose.

    Attributes:
        lossy: `h03 tx`, `h03 rx`, `l0>p1` (one direction of a cable), `l0=p1` or a switch, and the share.
        usual: share that every pair loses, multiplied for each pair by a factor of its own (`uneven`: of mean 1, and
            this coefficient of variation).
        segments: that a pair sends in one row.
        reports: do kernels say what had arrived already?
        interfaces: of each host; pairs use them in turn.
    """

    fabric: LossyFabric = field(default_factory=LossyFabric)
    lossy: Mapping[str, float] = field(default_factory=dict)
    usual: float = 0.0
    uneven: float = 0.0
    segments: int = 400
    reports: bool = True
    interfaces: tuple[str, ...] = ("hsn0",)

    def crossed(self, src: int, dst: int) -> list[str]:
        """What a segment crosses."""
        path = self.fabric.path(src, dst)
        links = [name for a, b in pairwise(path) for name in (f"{a}>{b}", f"{a}={b}", f"{b}={a}")]
        return [f"{self.fabric.names[src]} tx", f"{self.fabric.names[dst]} rx", *path, *links]

    def share(self, src: int, dst: int) -> float:
        """Of the segments from one host to another that are lost on components."""
        arrive = 1.0
        for name in self.crossed(src, dst):
            arrive *= 1 - self.lossy.get(name, 0.0)
        return 1 - arrive

    def measured(self, seed: int, layout: Layout = "list", rounds: int | None = None, calm: bool = True) -> Run:
        """A run with one row; not calm: one of streams, which is not judged by its times."""
        run = self.fabric.measured(layout, seed, rounds)
        row = run.rows[0]
        more: dict[str, Any] = {"tcp": self.tcp(row, seed)}
        if not calm:
            more |= {"windows": [64], "kernel": "bandwidth", "quantity": "bandwidth"}
        return replace(run, rows=(with_facts(row, **more),))

    def tcp(self, row: Row, seed: int) -> dict[str, Any]:
        """The row's attribute: pairs that the row measured, one rank on each host."""
        random = np.random.default_rng([seed, 4242])
        if row.layout == "list":
            src, column = np.nonzero(row.arrays["dst"] >= 0)
            pairs = {*zip(src.tolist(), row.arrays["dst"][src, column].tolist(), strict=True)}
        else:
            pairs = {*map(tuple, np.argwhere(row.arrays["count"][0, ..., 0] > 0).tolist())}
        ends = [f"{name}/{interface}" for name in self.fabric.names for interface in self.interfaces]
        sent, received = ([0] * len(ends) for _ in range(2))
        listed = []
        width = len(self.interfaces)
        for src, dst in sorted(pairs | {(b, a) for a, b in pairs}):
            at = (src + dst) % width
            segments, again, spurious = self._drawn(src, dst, random)
            here, there = src * width + at, dst * width + at
            sent[here] += segments
            received[there] += segments - again + spurious
            if again > spurious:
                listed.append([here, there, segments, again, spurious])
        return {
            "ends": ends, "sent": sent, "received": received, "pairs": listed, "left_out": 0,
            "knows_spurious": self.reports,
        }  # fmt: skip

    def _drawn(self, src: int, dst: int, random: np.random.Generator) -> tuple[int, int, int]:
        """Segments sent, sent again, and reported as having arrived already."""
        factor = random.gamma(1 / self.uneven**2, self.uneven**2) if self.uneven else 1.0
        path = 1 - (1 - self.share(src, dst)) * (1 - min(self.usual * factor, 0.9))
        back = self.share(dst, src)
        lost = random.binomial(self.segments, path)
        twice = random.binomial(self.segments - lost, back)
        reported = random.binomial(twice, 1 - back) if self.reports else 0
        return self.segments + lost + twice, lost + twice, reported

    def findings(
        self, seed: int, layout: Layout = "list", rounds: int | None = None, calm: bool = True
    ) -> list[Finding]:
        """What a whole diagnosis says against components."""
        verdict = diagnose(self.measured(seed, layout, rounds, calm), self.fabric.topology).verdict
        return [finding for finding in verdict.findings if finding.state in (State.FAULT, State.SUSPECT)]


def reported(findings: list[Finding], state: State = State.FAULT) -> list[tuple[str, str, str | None]]:
    """Component, name and direction of the findings in this state."""
    return sorted(
        (finding.component, finding.name, finding.direction) for finding in findings if finding.state is state
    )
