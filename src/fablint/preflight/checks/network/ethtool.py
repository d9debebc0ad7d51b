"""Checks of ethtool's output for the fabric's network interfaces: error correction, flow control, optics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.check import Check, Judge
from fablint.preflight.class_values import LEAST_OTHERS, Agreement
from fablint.preflight.host import Host
from fablint.preflight.judges import among_peers
from fablint.preflight.judges.outputs import LEAST_SIMILAR, NO_INTERFACE, TOO_FEW
from fablint.snapshot import NicFact
from fablint.snapshot.parsers.ethtool import (
    active_fec,
    corrected_histogram,
    flow_control,
    module_flags,
    received_power,
    uncorrectable_blocks,
)

_MAX_FLAGS = 3  # in a message


class NicOutput(NamedTuple):
    """Output of ethtool for a NIC, and the value in it that is compared."""

    host: Host
    nic: str
    text: str
    value: str


def compared_output(
    command: str,
    value: Callable[[str], str | None],
    compared: Callable[[Check, str, Sequence[NicOutput]], Iterator[Result]],
) -> Judge:
    """Judge the output of ethtool for each NIC with a link.

    Parameters
    ----------
    command
        The collector's name for it.
    value
        Returns the value in an output that is compared between hosts; None if the output cannot be parsed.
    compared
        Returns the results for the NICs of a name on similar hosts.
    """

    def facts(check: Check, host: Host) -> Mapping[str, Result | NicOutput]:
        return {nic.name: of_nic(check, host, nic) for nic in host.interfaces}

    def of_nic(check: Check, host: Host, nic: NicFact) -> Result | NicOutput:
        output = host.command(f"{command}/{nic.name}")
        result = value(output.text)
        if nic.state != "up":
            return check.skip(host.name, nic.name, "the link is down")
        if output.status != 0:
            return check.skip(host.name, nic.name, f"ethtool: {output.error or 'failed'}")
        if result is None:
            return check.error(host.name, nic.name, "the output of ethtool cannot be parsed")
        return NicOutput(host, nic.name, output.text, result)

    return among_peers(
        facts, lambda check, nic, like: compared(check, nic, [output for _, output in like]), NO_INTERFACE
    )


def _compare_link_fec(check: Check, nic: str, like: Sequence[NicOutput]) -> Iterator[Result]:
    agreed = Agreement.of([one.value for one in like])
    usual, count = agreed.usual, agreed.count
    values = ((one.host.name, one.value) for one in like)
    kinds = agreed.kinds("FEC {}", values) if agreed.is_divided else ""
    for item in like:
        lost = _lost(item)
        if lost:
            message = f"{lost} uncorrectable blocks in some seconds"
            yield check.failure(item.host.name, nic, message, lost, 0)
        elif (near := _nearly_lost(item)) >= _MANY_BLOCKS:
            message = (
                f"{near:,} blocks with {_MANY_ERRORS} or more errors in some seconds, of which 15 can be corrected"
            )
            yield check.warning(item.host.name, nic, message, near, 0)
        elif agreed.is_divided:
            yield check.warning(item.host.name, nic, kinds, item.value)
        elif usual is not None and item.value != usual:
            message = f"FEC {item.value}, {count} others {usual}"
            yield check.warning(item.host.name, nic, message, item.value, usual)
        else:
            yield check.ok(item.host.name, nic, value=item.value)


LINK_FEC = Check(
    id="net.link.fec",
    what="forward error correction of every NIC of the fabric",
    source="ethtool -I --show-fec NIC",
    rule=(
        "the same as on most similar hosts; at level full: no uncorrectable block, and fewer than 10 with 8 or more "
        "errors in the histogram of the driver"
    ),
    severity=Severity.FAIL,
    component="cable",
    remedy="clean or replace cable and transceivers; set the same encoding at both ends",
    judge=compared_output("ethtool-fec", active_fec, _compare_link_fec),
)


_MANY_ERRORS = 8  # symbols of a block; half of what RS(544,514) corrects: rarer than 1 in 10^14 below a BER of 10^-5
_MANY_BLOCKS = 10


def _nearly_lost(seen: NicOutput) -> int:
    """Return the number of blocks with many errors between two readings; 0 where the driver has no histogram."""
    first = corrected_histogram(seen.text)
    last = corrected_histogram(seen.host.command(f"ethtool-fec-later/{seen.nic}").text)
    grown = (count - first[errors] for errors, count in last.items() if errors >= _MANY_ERRORS and errors in first)
    return sum(max(count, 0) for count in grown)


def _lost(seen: NicOutput) -> int:
    """Return the number of uncorrectable blocks between two readings."""
    first = uncorrectable_blocks(seen.text)
    last = uncorrectable_blocks(seen.host.command(f"ethtool-fec-later/{seen.nic}").text)
    return 0 if first is None or last is None else max(last - first, 0)


def _compare_link_pause(check: Check, nic: str, like: Sequence[NicOutput]) -> Iterator[Result]:
    agreed = Agreement.of([one.value for one in like])
    usual, count = agreed.usual, agreed.count
    values = ((one.host.name, one.value) for one in like)
    kinds = agreed.kinds("pause {}", values) if agreed.is_divided else ""
    for item in like:
        if agreed.is_divided:
            yield check.warning(item.host.name, nic, kinds, item.value)
        elif usual is None:
            yield check.skip(item.host.name, nic, f"pause {item.value}; no majority to compare with")
        elif item.value != usual:
            yield check.failure(item.host.name, nic, f"pause {item.value}; {count} others {usual}", item.value, usual)
        else:
            yield check.ok(item.host.name, nic, value=item.value)


LINK_PAUSE = Check(
    id="net.link.pause",
    what="flow control of every NIC of the fabric",
    source="ethtool -a NIC",
    remedy="use the same setting on all hosts (ethtool -A)",
    judge=compared_output("ethtool-a", flow_control, _compare_link_pause),
)


def _flags_on(text: str) -> str | None:
    """Return the flags that are on, one per line. Copper cables have no flags."""
    if not text.strip():
        return None
    return "\n".join(name for name, state in module_flags(text) if state == "On")


def _compare_link_optics(check: Check, nic: str, like: Sequence[NicOutput]) -> Iterator[Result]:
    having = Counter(flag for one in like for flag in one.value.splitlines())
    usual = {flag for flag, count in having.items() if count >= LEAST_OTHERS and 2 * count > len(like)}
    for item in like:
        lines = [flag for flag in item.value.splitlines() if flag not in usual]
        if lines:
            more = f" and {len(lines) - _MAX_FLAGS} more" if len(lines) > _MAX_FLAGS else ""
            yield check.failure(item.host.name, nic, "; ".join(lines[:_MAX_FLAGS]) + more, len(lines), 0)
        elif not any(module_flags(item.text)):
            yield check.skip(item.host.name, nic, "the module does not report alarms")
        else:
            yield check.ok(item.host.name, nic)


LINK_OPTICS = Check(
    id="net.link.optics",
    what="alarms and warnings of transceivers",
    source="ethtool -m NIC",
    rule="none, except those that most similar hosts have as well",
    component="cable",
    root=True,
    remedy="clean the connectors, replace the transceiver",
    judge=compared_output("ethtool-m", _flags_on, _compare_link_optics),
)


_WEAK_DB = 3.0  # half of the light


def _power(text: str) -> str | None:
    """Return the received optical power as a text; '' for a module that does not report it."""
    power = received_power(text)
    return f"{power:.2f}" if power is not None else "" if text.strip() else None


def _compare_link_power(check: Check, nic: str, like: Sequence[NicOutput]) -> Iterator[Result]:
    powers = [float(one.value) for one in like if one.value]
    usual = median(powers) if len(powers) > LEAST_SIMILAR else None
    for item in like:
        if not item.value:
            yield check.skip(item.host.name, nic, "the module does not report it, or it is a copper cable")
        elif usual is None:
            yield check.skip(item.host.name, nic, f"{item.value} dBm; {TOO_FEW}")
        elif float(item.value) <= usual - _WEAK_DB:
            message = f"received optical power {item.value} dBm, median of {len(powers)} hosts {usual:.2f} dBm"
            yield check.failure(item.host.name, nic, message, float(item.value), usual)
        else:
            yield check.ok(item.host.name, nic, value=float(item.value), unit="dBm")


LINK_POWER = Check(
    id="net.link.power",
    what="the received optical power of every NIC of the fabric, of its weakest lane",
    source="ethtool -m NIC",
    rule=f"less than {_WEAK_DB:g} dB below the median of similar hosts",
    component="cable",
    root=True,
    remedy="clean the connectors, look for a bent fibre; replace the transceiver at the other end",
    judge=compared_output("ethtool-m", _power, _compare_link_power),
)
