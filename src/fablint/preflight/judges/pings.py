"""Judge of the pings between the hosts of a fleet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache

from fablint.model.preflight_results import Result
from fablint.preflight.check import Check, Judge
from fablint.preflight.fleet import Fleet
from fablint.preflight.pings.mesh import End, Reach, reach_of
from fablint.text.sanitise import shortened


@lru_cache(maxsize=1)  # for several checks
def _reach_in(fleet: Fleet) -> Reach | None:
    """Return the results of the pings between the hosts of a fleet; None if there were none."""
    return reach_of(fleet.hosts)


def pings(look: Callable[[Check, Reach, Fleet], Iterable[Result]]) -> Judge:
    """Judge the pings between hosts, which are not in the snapshots.

    `look` returns results for hosts and for their NICs; a host without a result is skipped afterwards.
    """

    def results(check: Check, fleet: Fleet) -> Iterator[Result]:
        reach = _reach_in(fleet)
        if reach is None:
            why = "the hosts did not ping each other" if len(fleet.hosts) > 1 else "there is no other host"
            yield from (check.skip(host.name, "", why) for host in fleet.hosts)
            return
        judged = list(look(check, reach, fleet))
        yield from judged
        seen = {result.host for result in judged}
        for host in fleet.hosts:
            if host.name not in seen:
                yield check.skip(host.name, "", shortened(reach.silent.get(host.name, "none of its NICs takes part")))

    return Judge(results, compares=False)


def with_passes(check: Check, ends: Iterable[End], results: Sequence[Result]) -> list[Result]:
    """Return the results, and a pass for each end without another result."""
    judged = {(result.host, result.target) for result in results}
    return [*results, *(check.ok(*end) for end in sorted(ends) if end not in judged)]
