"""Base of the checks of fabric tools, which run on one machine. Results name the host or the switch at fault."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar

from fablint.model.host_name import one_spelling
from fablint.model.preflight_results import Result
from fablint.preflight.base import Check
from fablint.preflight.checks.outputs import was_ended
from fablint.preflight.fleet import Fleet
from fablint.text.sanitise import shortened

_FAILED = re.compile(r"\s*\S+: iberror: failed: (.*)")  # infiniband-diags say so on stdout
FABRIC = "fabric"  # target of results about no particular host or switch


class FabricCheck(Check):
    """Base of checks that judge the output of a tool which sees the whole fabric."""

    program: ClassVar[str]
    compares = False

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        if fleet.fabric is None:
            yield self.skip(FABRIC, "", f"runs at level full, where {self.program} is installed")
            return
        output = fleet.fabric.command(self.program)
        failed = _FAILED.match(output.text) if output.status else None
        if output.text.strip() and not failed:
            yield from self.look(fleet, output.text) or [self.ok(FABRIC)]
        else:
            yield self.without(fleet, shortened(failed[1] if failed else output.error) or "the tool printed nothing")

    def without(self, fleet: Fleet, why: str) -> Result:
        """Return the result if the tool printed nothing: it is not installed, or cannot access the fabric."""
        return self.error(FABRIC, "", why) if was_ended(why) else self.skip(FABRIC, "", why)

    @abstractmethod
    def look(self, fleet: Fleet, text: str) -> list[Result]:
        """Return a result for each component that an output of the tool shows as faulty; [] if nothing is wrong.

        `text` is the standard output of `program` on the host that examined the fabric, not empty; hosts have the names
        of `fleet`. Lines of an unknown form are ignored, and nothing is raised.
        """

    def blamed(self, fleet: Fleet, host: str, target: str, message: str) -> Result:
        """Return a failure of a host; a warning if the host is not one of those that preflight was requested for."""
        every = requested_hosts(fleet)
        say = self.failure if host in every or not every else self.warning
        return say(host, target, message)


def requested_hosts(fleet: Fleet) -> frozenset[str]:
    """Return the hosts that preflight was requested for, also those without a snapshot."""
    return frozenset((*(host.name for host in fleet.hosts), *fleet.silent))


def spelling(fleet: Fleet, names: Iterable[str]) -> Callable[[str], str]:
    """Return a function that maps a tool's host name to the requested name, else to the name in the topology."""
    known = fleet.topology.host_switch if fleet.topology else ()
    return one_spelling(dict.fromkeys((*sorted(requested_hosts(fleet)), *known)), names)
