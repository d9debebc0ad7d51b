"""Ping loss, and the ends that cause it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.address_conflicts import contested_ends
from fablint.preflight.check import Check
from fablint.preflight.fleet import Fleet
from fablint.preflight.judges import pings
from fablint.preflight.judges.pings import with_passes
from fablint.preflight.pings.losses import EndLoss
from fablint.preflight.pings.mesh import End, Reach
from fablint.preflight.pings.triage import Rail, rails_of
from fablint.text.units import share_text

_MAX_WARN = 0.2  # of the pings: a larger share is a failure


def _ping_loss(check: Check, reach: Reach, fleet: Fleet) -> Iterable[Result]:
    results: list[Result] = []
    tried: set[End] = set()
    for rail in rails_of(reach, contested_ends(fleet)):
        tried |= {end for one in rail.pings if not one.kind and one.sent for end in one[:2]}
        results += _results(check, rail)
        results += _not_confirmed(check, rail, {End(one.host, one.target) for one in results})
    return with_passes(check, tried, results)


def _results(check: Check, rail: Rail) -> Iterator[Result]:
    losses = rail.losses
    for end, loss in losses.ends.items():
        say = check.failure if loss.all.share > _MAX_WARN else check.warning
        yield say(*end, _words(loss), round(loss.all.share, 4), 0)
    if losses.among:
        message = (
            f"{losses.rest} pings between these are lost, {share_text(losses.rest.share)}, and no NIC loses clearly "
            "more than the others: check the switches and cables between them"
        )
        yield from (check.warning(*end, message, round(losses.rest.share, 4), 0) for end in losses.among)


def _not_confirmed(check: Check, rail: Rail, judged_ends: Collection[End]) -> Iterator[Result]:
    """Yield a skip for each end with losses in the first pass, and without a second one."""
    once = [one for one in rail.pings if not one.kind and one.received < one.sent and not one.is_second]
    ends = {end for one in once for end in one[:2]} - set(judged_ends)
    yield from (check.skip(*end, "pings were lost, and there was no second pass of pings") for end in sorted(ends))


PING_LOSS = Check(
    id="net.ping.loss",
    what="the ping loss of every NIC of the fabric that answers some pings",
    source="ping between all hosts, in rounds; after losses a second time, later, between the NICs that had them",
    rule=(
        "none lost in one of two passes, fewer than 2 in the second, or no more than elsewhere on the rail; "
        f"more than {share_text(_MAX_WARN)} fails. Round trips do not show the direction"
    ),
    severity=Severity.FAIL,
    component="nic",
    remedy="check the error counters of the NIC and of its switch port; clean and reseat the cable, then replace it",
    judge=pings(_ping_loss),
)


def _words(loss: EndLoss) -> str:
    return (
        f"{loss.all} pings lost, {loss.all.share:.2g} of them"
        f" ({loss.own} sent by it, {loss.others} sent to it), with {loss.lossy} of {loss.partners} others"
    )
