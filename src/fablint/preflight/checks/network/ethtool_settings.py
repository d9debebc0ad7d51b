"""Checks of NIC settings: offloads, rings, interrupt coalescing; and of the pause frames that NICs send."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from statistics import median

from fablint.model.preflight_results import Result
from fablint.preflight.check import TIMED_OUT, Check, Judge
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.preflight.judges import uniform_settings
from fablint.preflight.judges.outputs import NO_INTERFACE, without_answer
from fablint.preflight.judges.uniform import Settings, SettingsComparison, no_causes, no_settings
from fablint.snapshot import Output
from fablint.snapshot.parsers.driver_counters import PauseGrowth, pause_growth
from fablint.snapshot.parsers.ethtool import coalescing, offloads, reasons_off, ring_sizes
from fablint.text.sanitise import shortened

_NEEDED = ("rx-checksumming", "tx-checksumming", "tcp-segmentation-offload", "generic-receive-offload")
_PARTS = (  # as ethtool prints them below the feature that sets all of them
    ("tx-checksum-", "tx-checksumming"),
    ("tx-scatter-gather", "scatter-gather"),
    ("tx-tcp", "tcp-segmentation-offload"),
)
_SLOW_US = 100  # delay of an interrupt; defaults of drivers are 3 to 60


def nic_settings(
    command: str,
    settings: Callable[[str], Settings],
    *,
    causes: Callable[[Host, str, str], Iterable[str]] = no_causes,
    poor: Callable[[Host, str], Iterable[str]] = no_settings,
) -> Judge:
    """Judge the settings of every NIC of the fabric, as ethtool prints them.

    Parameters
    ----------
    command
        The collector's name for it.
    settings
        Returns the settings in an output; none if it cannot be parsed.
    causes, poor
        See `SettingsComparison`.
    """

    def facts(host: Host) -> Mapping[str, Settings]:
        said = {nic.name: host.command(f"{command}/{nic.name}") for nic in host.interfaces}
        result = {nic: settings(one.text) for nic, one in said.items() if one.status == 0}
        return {nic: of_nic for nic, of_nic in result.items() if of_nic}

    def why_not(host: Host) -> str:
        said = [host.command(f"{command}/{nic.name}") for nic in host.interfaces]
        return f"ethtool: {without_answer(said[0])}" if said else NO_INTERFACE

    return uniform_settings(SettingsComparison(facts, why_not, causes=causes, poor=poor))


def _causes_of_offload(host: Host, nic: str, name: str) -> Iterable[str]:
    """Return the parent feature; for a feature that is off although requested, the features that cause it."""
    text = host.command(f"ethtool-k/{nic}").text
    if reasons_off(text).get(name) == "[requested on]":
        return offloads(text).keys() - reasons_off(text).keys()
    return [above for part, above in _PARTS if name.startswith(part)]


def _missing_offloads(host: Host, nic: str) -> Iterable[str]:
    """Return the needed offloads that were switched off, and are not off for a reason of the driver."""
    text = host.command(f"ethtool-k/{nic}").text
    return [name for name in _NEEDED if offloads(text).get(name) == "off" and name not in reasons_off(text)]


OFFLOADS = Check(
    id="net.offload",
    what="offloads of every NIC of the fabric",
    source="ethtool -k NIC",
    rule=f"the same as on most similar hosts; {', '.join(_NEEDED)} on, where the driver has them",
    remedy="use the same setting on all hosts (ethtool -K); without offloads TCP is slower by several times",
    judge=nic_settings("ethtool-k", offloads, causes=_causes_of_offload, poor=_missing_offloads),
)

RINGS = Check(
    id="net.ring",
    what="the ring sizes of every NIC of the fabric",
    source="ethtool -g NIC, current hardware settings",
    remedy="use the same setting on all hosts (ethtool -G); short rings lose packets of bursts",
    judge=nic_settings("ethtool-g", ring_sizes),
)


def _adaptive_mode(_: Host, __: str, name: str) -> Iterable[str]:
    """Return the adaptive mode of the direction, since times and numbers follow from it."""
    return [f"adaptive-{name[:2]}"] if name.startswith(("rx-", "tx-")) else []


def _long_waits(host: Host, nic: str) -> Iterable[str]:
    settings = coalescing(host.command(f"ethtool-c/{nic}").text)
    times = {name: settings.get(name, "") for name in ("rx-usecs", "tx-usecs")}
    return [name for name, value in times.items() if value.isdecimal() and int(value) >= _SLOW_US]


COALESCING = Check(
    id="net.coalesce",
    what="the interrupt coalescing of every NIC of the fabric",
    source="ethtool -c NIC",
    rule=(
        f"the same as on most similar hosts, and below {_SLOW_US} us; times and numbers of adaptive coalescing are not "
        "compared"
    ),
    remedy="use the same setting on all hosts (ethtool -C); long waits are added to every latency of TCP",
    judge=nic_settings("ethtool-c", coalescing, causes=_adaptive_mode, poor=_long_waits),
)


_MANY, _TIMES_OTHERS, _ALL = 400, 10, 4000


def _pause_frames(check: Check, fleet: Fleet) -> Iterator[Result]:
    like: dict[tuple[str, str], list[tuple[Host, PauseGrowth]]] = defaultdict(list)
    for host in fleet.hosts:
        if not host.interfaces:
            yield check.skip(host.name, "", NO_INTERFACE)
        for nic in host.interfaces:
            first, last = (host.command(f"{name}/{nic.name}") for name in ("ethtool-S", "ethtool-S-later"))
            grown = pause_growth(first.text, last.text) if first.status == last.status == 0 else None
            if grown is not None:
                like[host.kind, nic.name].append((host, grown))
            else:
                yield _without(check, host.name, nic.name, last if first.status == 0 else first)
    for (_, target), result in like.items():
        usual = PauseGrowth(*(round(median(counts)) for counts in zip(*(one for _, one in result), strict=True)))
        for host, grown in result:
            yield _judged(check, host.name, target, grown, usual, len(result))


def _without(check: Check, host: str, nic: str, said: Output) -> Result:
    if said.error == TIMED_OUT:
        return check.error(host, nic, f"ethtool: {TIMED_OUT}")
    return check.skip(host, nic, f"ethtool: {shortened(said.error) or 'its driver does not count pauses'}")


def _judged(check: Check, host: str, nic: str, grown: PauseGrowth, usual: PauseGrowth, count: int) -> Result:
    if grown.storms:
        return check.failure(host, nic, f"{grown.storms} pause storms in some seconds", grown.storms, 0)
    if _is_more(grown.sent, usual.sent, count):
        message = f"sent {grown.sent:,} pause frames in some seconds, median of {count} hosts {usual.sent:,}"
        return check.failure(host, nic, message, grown.sent, usual.sent)
    if grown.sent >= _ALL:
        message = f"sent more than {_ALL:,} pause frames in some seconds"
        return check.failure(host, nic, message + (", as NICs of similar hosts did" if count > 1 else ""), grown.sent)
    if _is_more(grown.received, usual.received, count):
        message = (
            f"paused by its switch {grown.received:,} times in some seconds, median of {count} hosts "
            f"{usual.received:,}: a receiver is too slow, or a path is congested"
        )
        return check.failure(host, nic, message, grown.received, usual.received)
    message = f"paused {grown.received:,} times in some seconds" if grown.received else ""
    return check.ok(host, nic, message, grown.sent)


def _is_more(value: int, usual: int, count: int) -> bool:
    return value >= _MANY and count > 2 and value > _TIMES_OTHERS * usual


PAUSE_FRAMES = Check(
    id="net.pause.frames",
    what="pause frames that every NIC of the fabric sends: flow control (802.3x) and priority flow control (PFC)",
    source="ethtool -S NIC, twice",
    rule=(
        "no pause storm; within 4 s no 400 pause frames sent or received if that is ten times as many as on similar "
        "hosts; never 4,000 sent"
    ),
    component="nic",
    remedy="the host receives packets too slowly: check pcie.width, pcie.requests, host.irq and its load",
    judge=Judge(_pause_frames),
)
