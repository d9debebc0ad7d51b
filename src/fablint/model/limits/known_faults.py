"""Known faults: findings about components that a site file suppresses until a date."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from fablint.model.component import OF_HOSTS, ComponentRef
from fablint.model.host_name import HostNames
from fablint.model.verdict import Finding, FormerState, State

COUNTED = (State.FAULT, State.SUSPECT, State.CONFOUNDED)  # states of a finding that can be suppressed


@dataclass(frozen=True)
class KnownFault:
    """Components whose findings do not count until a date. A known host includes its NICs, GPUs and cables."""

    components: frozenset[str]  # as findings print them: `host n003`, `cable s2=s5`
    until: date  # the last day
    reason: str
    loss: float | None  # largest loss that is known; a larger one counts
    where: str  # `site.toml: suppress 2 (cable s2=s5)`

    @cached_property
    def _hosts(self) -> HostNames:
        """The hosts among the components, which a site and a run may spell in different forms."""
        return HostNames(text.removeprefix("host ") for text in self.components if text.startswith("host "))

    def covers(self, finding: Finding) -> bool:
        """Return whether all components of a finding are known, and its loss is not larger than the known one."""
        is_larger = self.loss is not None and (finding.effect is None or abs(finding.effect) > self.loss)
        return not is_larger and self.names(finding)

    def names(self, finding: Finding) -> bool:
        """Return whether all components of a finding are known, whatever its loss."""
        return finding.state in COUNTED and all(map(self._has, finding.components))

    def _has(self, component: ComponentRef) -> bool:
        hosts = component.hosts if component.kind in OF_HOSTS else ()
        of_hosts = bool(hosts) and all(self._hosts.find(host) is not None for host in hosts)
        return of_hosts or bool(self.components & _names(component))

    def mark(self, finding: Finding) -> Finding:
        """Return the finding as a suppressed one."""
        suppressed = FormerState(state=finding.state, until=self.until.isoformat(), reason=self.reason)
        return finding.model_copy(update={"state": State.SUPPRESSED, "suppressed": suppressed})


def _names(component: ComponentRef) -> frozenset[str]:
    """Names of a component: with its ends in either order unless it is directed, and of a link also its cable's."""
    plain = component.model_copy(update={"direction": None})
    named = [plain, plain.cable] if plain.kind == "link" and len(plain.ends) == 2 else [plain]
    swapped = [one.model_copy(update={"ends": one.ends[::-1]}) for one in named if not one.directed]
    return frozenset(one.text for one in (*named, *swapped))


def first_cover(faults: Iterable[KnownFault], finding: Finding) -> KnownFault | None:
    """Return the first known fault that covers a finding."""
    return next((fault for fault in faults if fault.covers(finding)), None)
