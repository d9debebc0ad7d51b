"""Judge of the outputs of fabric tools, which run on one machine. Results name the host or the switch at fault."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from fablint.model.host_name import one_spelling
from fablint.model.preflight_results import Result
from fablint.preflight.check import Check, Judge, was_ended
from fablint.preflight.fleet import Fleet
from fablint.snapshot.parsers.infiniband_tools import tool_failure
from fablint.text.sanitise import shortened

FABRIC = "fabric"  # target of results about no particular host or switch


def without_output(check: Check, _: Fleet, why: str) -> Result:
    """Return the result if the tool printed nothing: it is not installed, or cannot access the fabric."""
    return check.error(FABRIC, "", why) if was_ended(why) else check.skip(FABRIC, "", why)


def fabric_tool(
    program: str,
    look: Callable[[Check, Fleet, str], Sequence[Result]],
    without: Callable[[Check, Fleet, str], Result] = without_output,
) -> Judge:
    """Judge the output of a tool which sees the whole fabric, or its outputs for each of several devices.

    Parameters
    ----------
    program
        The tool.
    look
        Returns a result for each component that an output of the tool shows as faulty; none if nothing is wrong. The
        output is not empty; hosts have the names of the fleet. Lines of an unknown form are ignored, and nothing is
        raised.
    without
        Returns the result if the tool printed nothing, with the reason.
    """

    def results(check: Check, fleet: Fleet) -> Iterator[Result]:
        if fleet.fabric is None:
            yield check.skip(FABRIC, "", f"runs at level full, where {program} is installed")
            return
        for device, output in (fleet.fabric.commands_like(program) or {"": fleet.fabric.command(program)}).items():
            failed = tool_failure(output.text) if output.status else None
            if output.text.strip() and failed is None:
                judged = look(check, fleet, output.text) or [check.ok(FABRIC)]
            else:
                why = shortened(output.error if failed is None else failed) or "the tool printed nothing"
                judged = [without(check, fleet, why)]
            yield from (result._replace(target=result.target or device) for result in judged)

    return Judge(results, compares=False)


def blamed(check: Check, fleet: Fleet, host: str, target: str, message: str) -> Result:
    """Return a failure of a host; a warning if the host is not one of those that preflight was requested for."""
    requested = requested_hosts(fleet)
    say = check.failure if host in requested or not requested else check.warning
    return say(host, target, message)


def requested_hosts(fleet: Fleet) -> frozenset[str]:
    """Return the hosts that preflight was requested for, also those without a snapshot."""
    return frozenset((*(host.name for host in fleet.hosts), *fleet.silent))


def spelling(fleet: Fleet, names: Iterable[str]) -> Callable[[str], str]:
    """Return a function that maps a tool's host name to the requested name, else to the name in the topology."""
    declared = fleet.topology.host_switch if fleet.topology else ()
    return one_spelling(dict.fromkeys((*sorted(requested_hosts(fleet)), *declared)), names)
