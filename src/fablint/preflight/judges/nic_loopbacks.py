"""Judge of programs that measure a NIC by messages to itself, compared with its speed and with similar NICs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from fablint.model.preflight_results import Outcome, Result, Severity
from fablint.preflight.check import Check, Judge
from fablint.preflight.class_values import CLEAR_OTHERS
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.preflight.judges.outputs import LEAST_SIMILAR, instead_of
from fablint.text.sanitise import shortened
from fablint.text.units import share_text

_WORST = (Outcome.FAIL, Outcome.WARN, Outcome.ERROR, Outcome.PASS, Outcome.SKIP)
_Key = tuple[object, ...]


@dataclass(frozen=True)
class _Loop:
    """Figure of a NIC."""

    host: str
    device: str
    value: float
    speed: float | None
    key: _Key | None  # equal for similar NICs


@dataclass(frozen=True)
class _Limit:
    """A limit that a figure does not meet, and the severity of missing it."""

    severity: Severity
    value: float
    text: str


@dataclass(frozen=True)
class LoopbackTool:
    """A program that measures the loopback of one NIC at a time: a bandwidth, or a latency."""

    name: str  # run for each NIC
    value: Callable[[str], float | None]  # in its output
    devices: Callable[[Host], Sequence[str]]  # that are examined
    speed: Callable[[Host, str], float | None]  # nominal, in Gb/s; None if unknown
    kind: Callable[[Host, str], tuple[str, ...] | None]  # properties of similar NICs; None if a NIC is not compared
    of_median: float  # relative to the median: the least bandwidth, or the longest latency
    of_speed: float = 0.0  # least bandwidth, relative to the speed; 0: not limited
    below_speed: Severity = Severity.FAIL  # of a rate below `of_speed`
    above_peers: Severity = Severity.FAIL  # of a figure worse than those of many similar NICs
    unit: str = "Gb/s"
    label: str = ""  # before the figure in messages, where a check has several programs

    def results(self, check: Check, fleet: Fleet) -> Iterator[Result]:
        """Yield a result for every examined NIC of all hosts."""
        measured: list[_Loop] = []
        for host in fleet.hosts:
            for device in self.devices(host):
                output = host.command(f"{self.name}/{device}")
                value = self.value(output.text)
                if value is not None:
                    speed, kind = self.speed(host, device), self.kind(host, device)
                    key = None if kind is None else (*host.like(device), speed, *kind)
                    measured.append(_Loop(host.name, device, value, speed, key))
                else:
                    why = f": {shortened(output.error)}" if output.error else ""
                    what = "bandwidth" if self.unit == "Gb/s" else "latency"
                    nothing = check.error(host.name, device, f"{self.name} printed no {what}{why}")
                    yield instead_of(check, host.name, device, output) or nothing
        like: dict[_Key | None, list[float]] = defaultdict(list)
        for loop in measured:
            like[loop.key].append(loop.value)
        peers: dict[_Key | None, list[float]] = {
            key: values for key, values in like.items() if key is not None and len(values) >= LEAST_SIMILAR
        }
        yield from (self._judged(check, loop, peers.get(loop.key, ())) for loop in measured)

    def _judged(self, check: Check, loop: _Loop, peers: Sequence[float]) -> Result:
        """Return the result for a NIC; beyond the median of few NICs it is a warning."""
        figure = f"{self.label}{loop.value:g} {self.unit}"
        limits = list(self._limits(loop, peers))
        if not limits:
            return check.skip(loop.host, loop.device, f"{figure}, no speed or similar NIC to compare with")
        is_bandwidth = self.unit == "Gb/s"
        missed = [one for one in limits if (loop.value < one.value if is_bandwidth else loop.value > one.value)]
        if not missed:
            return check.ok(loop.host, loop.device, value=loop.value, unit=self.unit)
        worst = max(missed, key=lambda one: (one.severity is Severity.FAIL, one.value))
        message = f"{figure}, {'below' if is_bandwidth else 'above'} {worst.text} {self.unit}"
        if worst.severity is Severity.FAIL:
            return check.failure(loop.host, loop.device, message, loop.value, worst.value, self.unit)
        return check.warning(loop.host, loop.device, message, loop.value, worst.value)

    def _limits(self, loop: _Loop, peers: Sequence[float]) -> Iterator[_Limit]:
        if loop.speed and self.of_speed:
            yield _Limit(self.below_speed, self.of_speed * loop.speed, f"{share_text(self.of_speed)} of {loop.speed:g}")
        if peers:
            usual = median(peers)
            severity = self.above_peers if len(peers) > CLEAR_OTHERS else Severity.WARN
            yield _Limit(severity, self.of_median * usual, f"{share_text(self.of_median)} of the median {usual:g}")


def loopbacks(absent: str, *tools: LoopbackTool) -> Judge:
    """Judge NICs by one or more programs; the worst result of a NIC counts. `absent`: why a host has no result."""

    def results(check: Check, fleet: Fleet) -> Iterator[Result]:
        worst: dict[tuple[str, str], Result] = {}
        for tool in tools:
            for result in tool.results(check, fleet):
                earlier = worst.setdefault((result.host, result.target), result)
                if _WORST.index(result.outcome) < _WORST.index(earlier.outcome):
                    worst[result.host, result.target] = result
        judged = {host for host, _ in worst}
        yield from (check.skip(host.name, "", absent) for host in fleet.hosts if host.name not in judged)
        yield from worst.values()

    return Judge(results)
