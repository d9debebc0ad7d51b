"""Judge of properties that have a limit of their own: each host is judged without the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from fablint.model.preflight_results import Result
from fablint.preflight.check import Check, Judge, SiteValues
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host


def limit(
    look: Callable[[Check, Host], Iterable[Result]],
    absent: str = "there is none",
    *,
    reads: str = "",
    site: SiteValues | None = None,
) -> Judge:
    """Judge each host on its own.

    Parameters
    ----------
    look
        Returns one result for each component of a host, with the name of the check, the host and the component. Data
        that cannot be parsed are a result with the outcome ERROR; nothing is raised.
    absent
        Reason for a skip without any result: the host has no such component.
    reads
        A long text that other checks read as well.
    site
        Values that a site file can expect.
    """

    def results(check: Check, fleet: Fleet) -> Iterator[Result]:
        for host in fleet.hosts:
            result = list(look(check, host))
            yield from result or [check.skip(host.name, "", absent)]

    return Judge(results, compares=False, reads=reads, site=site)
