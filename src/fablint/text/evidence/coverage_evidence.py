"""Evidence about components that are healthy, that are not judged, or whose measurements are missing."""

from __future__ import annotations

from typing import Literal, TypedDict, Unpack

from fablint.model.names import fold
from fablint.model.registry import Quantity
from fablint.text.sentence_kind import Names, Plain, Sentence
from fablint.text.units import share_text

few_hosts = Sentence[int]("measured with fewer than {fewest} other hosts")
few_judged_hosts = Plain("half of its hosts or more are not judged")
heterogeneous = Sentence[float](
    "these differ so much that a loss of up to {hidden:%} cannot be distinguished from normal"
)
few_link_pairs = Sentence[int]("each crossed by fewer than {fewest} measured pairs")
shared_ecmp_paths = Plain("ECMP paths of concurrent pairs: a pair that shares a link is as slow as one on a slow link")
behind_switch = Sentence[str]("all messages of these hosts cross {switch}, which is slow itself")
healthy_hosts = Sentence[int]("""each measured with at least {partners:#other host}; compared with the median of all
    hosts""")
in_the_median = Sentence[float]("""in the median: up to {share:%} of the measurements of one of them could be slow
    unseen""")
healthy_switches = Plain("their hosts are no slower than those of other switches")
healthy_links = Sentence[int, int]("""{links:#directed link}, each crossed by at least {pairs:#measured pair};
    compared with the median of all""")


@Sentence
def hidden_loss(
    *,
    bound: float | None = None,
    quantity: Quantity,
    limit: float,
    adaptive: Literal[True] | None = None,
) -> str:
    kind = "added latency" if quantity == "latency" else "lost bandwidth"
    hidden = f"any {kind}" if bound is None else f"up to {share_text(bound)} {kind}"
    among = " (adaptive routing spreads messages over links)" if adaptive else ""
    return f"{hidden} would not be noticed{among}; OK requires less than {share_text(limit)}"


missing_scattered = Sentence[int, int]("""{missing:,} of {planned:,} measurements are missing; no host, NIC or pair
    of switches has them in common""")
missing_unlocated = Sentence[int, int]("""{missing:,} of {planned:,} measurements are missing; the run does not
    record of which pairs""")


class MissingFields(TypedDict):
    """Numbers of missing and planned cells of a component, and those of the opposite direction."""

    missing: int
    planned: int
    opposite: int
    opposite_planned: int


@Sentence
def missing_of_end(
    *,
    direction: Literal["tx", "rx"],
    several: bool,
    of_hosts: bool,
    outward: bool,
    partners: Names,
    **cells: Unpack[MissingFields],
) -> str:
    """Return `64 of 64 measurements from it are missing, 0 of 64 to it`."""
    subject = "each of them" if several else "its hosts" if of_hosts else "it"
    word, other = ("from", "to") if direction == "tx" else ("to", "from")
    outside = f" {other} hosts elsewhere" if outward else ""
    named = f" (those {other} {fold(partners)})" if partners else ""
    opposite = f"{_opposite(cells)} {other} {subject}" if cells["opposite_planned"] else ""
    return f"{_missing(cells)} {word} {subject}{outside} are missing{named}{opposite}"


@Sentence
def missing_between(*, sender: str, receiver: str, **cells: Unpack[MissingFields]) -> str:
    """Return `64 of 64 measurements from lf1 to lf6 are missing, 0 of 64 in the opposite direction`."""
    has_opposite = sender != receiver and cells["opposite_planned"]
    opposite = f"{_opposite(cells)} in the opposite direction" if has_opposite else ""
    return f"{_missing(cells)} from {sender} to {receiver} are missing{opposite}"


def _missing(cells: MissingFields) -> str:
    return f"{cells['missing']:,} of {cells['planned']:,} measurements"


def _opposite(cells: MissingFields) -> str:
    return f", {cells['opposite']:,} of {cells['opposite_planned']:,}"
