"""What the fabric's own tools say, asked on one machine. Results name the host or the switch at fault."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar

from fablint.model.preflight_results import Result
from fablint.preflight.base import Check
from fablint.preflight.checks.outputs import was_ended
from fablint.preflight.fleet import Fleet
from fablint.text.names import one_spelling
from fablint.text.sanitise import shortened

_FAILED = re.compile(r"\s*\S+: iberror: failed: (.*)")  # infiniband-diags say so on stdout
FABRIC = "fabric"  # what is said of nobody in particular


class FabricCheck(Check):
    """One that judges the output of a tool which sees the whole fabric."""

    program: ClassVar[str]
    compares = False

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        if fleet.fabric is None:
            yield self.skipped(FABRIC, "", f"asked at level full, where {self.program} is installed")
            return
        said = fleet.fabric.command(self.program)
        failed = _FAILED.match(said.text) if said.status else None
        if said.text.strip() and not failed:
            yield from self.look(fleet, said.text) or [self.passed(FABRIC)]
        else:
            yield self.without(fleet, shortened(failed[1] if failed else said.error) or "it printed nothing")

    def without(self, fleet: Fleet, why: str) -> Result:
        """The tool printed nothing: it is not installed, or this machine has no way to the fabric."""
        return self.unclear(FABRIC, "", why) if was_ended(why) else self.skipped(FABRIC, "", why)

    @abstractmethod
    def look(self, fleet: Fleet, text: str) -> list[Result]:
        """What the output says; nothing where all is well and nobody is to be named."""

    def blamed(self, fleet: Fleet, host: str, target: str, message: str) -> Result:
        """It is wrong with a host; of one that nobody asked about it is a warning."""
        every = asked(fleet)
        say = self.wrong if host in every or not every else self.warned
        return say(host, target, message)


def asked(fleet: Fleet) -> frozenset[str]:
    """The hosts that were asked."""
    return frozenset((*(host.name for host in fleet.hosts), *fleet.silent))


def spelling(fleet: Fleet, heard: Iterable[str]) -> Callable[[str], str]:
    """Makes a host's name the one by which it was asked, else that of the topology."""
    known = fleet.topology.host_switch if fleet.topology else ()
    return one_spelling(dict.fromkeys((*sorted(asked(fleet)), *known)), heard)
