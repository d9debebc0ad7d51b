"""How many pings are lost, and at which end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.checks.network.reachability import ReachCheck, contested_in
from fablint.preflight.fleet import Fleet
from fablint.preflight.pings.losses import EndLoss
from fablint.preflight.pings.mesh import End, Reach
from fablint.preflight.pings.triage import Rail, rails_of

_MOST = 0.2  # of the pings: more fails


class PingLoss(ReachCheck):
    id = "net.ping.loss"
    what = "pings from and to every NIC of the fabric that are lost, though others come back"
    source = "ping between all hosts, in rounds; where some are lost, more of them"
    rule = (
        f"fewer than 2 lost, or no more than elsewhere on the rail; more than {_MOST:.0%} fails. Of round trips the "
        "direction cannot be told"
    )
    severity = Severity.FAIL
    component = "nic"
    remedy = "look at the error counters of the NIC and of its switch port; clean and reseat the cable, then replace it"

    def look(self, reach: Reach, fleet: Fleet) -> Iterable[Result]:
        told: list[Result] = []
        tried: set[End] = set()
        for rail in rails_of(reach, contested_in(fleet)):
            tried |= {end for one in rail.pings if not one.kind and one.sent for end in one[:2]}
            told += self._said(rail)
        return [*told, *self.rest(tried, told)]

    def _said(self, rail: Rail) -> Iterator[Result]:
        found = rail.losses
        for end, loss in found.ends.items():
            say = self.wrong if loss.all.share > _MOST else self.warned
            yield say(*end, _words(loss), round(loss.all.share, 4), 0)
        if found.among:
            message = (
                f"{found.rest} pings between these are lost, {found.rest.share:.1%}, and no NIC loses clearly more "
                "than the others: look at the switches and cables between them"
            )
            yield from (self.warned(*end, message, round(found.rest.share, 4), 0) for end in found.among)


def _words(loss: EndLoss) -> str:
    return (
        f"{loss.all} pings lost, {loss.all.share:.2g} of them"
        f" ({loss.own} that it sent, {loss.others} sent to it), with {loss.lossy} of {loss.partners} others"
    )
