"""Checks of the results of vendors' diagnostic tools on each host."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.check import Check, Judge
from fablint.preflight.class_values import CLEAR_OTHERS
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import INFINIBAND, Host
from fablint.preflight.judges import limit
from fablint.preflight.judges.outputs import LEAST_SIMILAR, NO_SLINGSHOT_NIC, instead_of
from fablint.snapshot.parsers.dcgmi import diagnostic_results
from fablint.snapshot.parsers.loopback_rates import cxi_loopback_gbit, ib_loopback_gbit
from fablint.snapshot.parsers.slingshot_tools import HealthSummary, health_summaries, nominal_gbit
from fablint.snapshot.rdma_ports import RdmaPort
from fablint.text.sanitise import shortened

# ------------------------------------------------------------------------------------------------ cxi_healthcheck

HEALTH_CHECKS = (
    *("pci", "mac", "link", "link_properties", "link_flap", "dmesg", "service", "run_idle", "trs_leak"),
    *("ping", "codeword_rate", "pci_error", "fw_version"),
)


def _cxi_health(check: Check, host: Host) -> Iterable[Result]:
    if not host.cxi:
        return
    output = host.command("cxi_healthcheck")
    if instead := instead_of(check, host.name, "", output):
        yield instead
        return
    found = health_summaries(output.text)
    for device in {**dict.fromkeys(host.cxi), **found} if "" not in found else found:
        yield _judged_cxi_health(check, host.name, device, found.get(device, HealthSummary()))


def _judged_cxi_health(check: Check, host: str, device: str, said: HealthSummary) -> Result:
    failed = [name for name, result in said.results.items() if result == "Fail"]
    missing = [name for name in HEALTH_CHECKS if f"{name}_check" not in said.results]
    quoted = "".join(f"; {warning}" for warning in said.warnings[:2])
    if failed:
        return check.failure(host, device, f"{', '.join(failed)} failed{quoted}", len(failed), 0)
    if missing:
        none = "no summary" if len(missing) == len(HEALTH_CHECKS) else f"no result of {', '.join(missing)}"
        return check.error(host, device, f"{none}: the output of cxi_healthcheck is incomplete")
    if quoted:
        return check.warning(host, device, quoted.removeprefix("; "))
    return check.ok(host, device)


CXI_HEALTH = Check(
    id="tool.cxi.health",
    what="the results of cxi_healthcheck",
    source="cxi_healthcheck",
    rule="none of its checks fails, and each has a result",
    severity=Severity.FAIL,
    component="nic",
    root=True,
    remedy="run cxi_healthcheck -v on the host, and follow its recommendations",
    judge=limit(_cxi_health, NO_SLINGSHOT_NIC),
)


# ------------------------------------------------------------------------------------------------ slingshot-diag


def _slingshot_diag(check: Check, host: Host) -> Iterable[Result]:
    for nic, said in sorted(host.snapshot.commands_like("slingshot-diag").items()):
        yield instead_of(check, host.name, nic, said) or _judged_slingshot_diag(
            check, host, nic, said.text, said.status or 0
        )


def _judged_slingshot_diag(check: Check, host: Host, nic: str, text: str, status: int) -> Result:
    lines = [line.partition(":") for line in text.splitlines()]
    lines_of = {word: [shortened(rest) for head, _, rest in lines if head == word] for word in ("WARN", "ERROR")}
    words = "; ".join([*lines_of["ERROR"], *lines_of["WARN"]][:3])
    if "root" in words and not host.snapshot.root:
        return check.skip(host.name, nic, words)
    if lines_of["ERROR"] or status > 1:
        return check.failure(host.name, nic, words or f"exit status {status}")
    if lines_of["WARN"] or status:
        return check.warning(host.name, nic, words or f"exit status {status}")
    if not any(head.strip() == "Device" for head, _, _ in lines):
        return check.error(host.name, nic, "slingshot-diag describes no device")
    return check.ok(host.name, nic)


SLINGSHOT_DIAG = Check(
    id="tool.ss.diag",
    what="the results of slingshot-diag",
    source="slingshot-diag -i NIC",
    rule="neither WARN nor ERROR, and exit status 0",
    severity=Severity.FAIL,
    component="nic",
    root=True,
    remedy="run slingshot-diag -v on the host, and follow its recommendations",
    judge=limit(_slingshot_diag, "no Slingshot NIC was examined"),
)


# ------------------------------------------------------------------------------------------------ loopback

_Key = tuple[object, ...]


@dataclass(frozen=True)
class _Loop:
    """Loopback rate of a NIC."""

    host: str
    device: str
    gbit: float
    speed: float | None
    key: _Key | None  # equal for similar NICs


@dataclass(frozen=True)
class _LoopbackTool:
    """A program that measures loopback rates, compared with the speed of the NIC and with similar NICs."""

    name: str  # run for each NIC
    gbit: Callable[[str], float | None]  # in its output
    devices: Callable[[Host], Sequence[str]]  # that are examined
    speed: Callable[[Host, str], float | None]  # nominal, in Gb/s; None if unknown
    kind: Callable[[Host, str], tuple[str, ...] | None]  # properties of similar NICs; None if a NIC is not compared
    of_speed: float  # minimum, relative to the speed
    of_median: float  # minimum, relative to the median
    absent: str
    below_speed: Severity = Severity.FAIL  # of a rate below `of_speed`

    def results(self, check: Check, fleet: Fleet) -> Iterator[Result]:
        """Yield the results of the NICs of all hosts."""
        measured: list[_Loop] = []
        for host in fleet.hosts:
            devices = self.devices(host)
            if not devices:
                yield check.skip(host.name, "", self.absent)
            for device in devices:
                output = host.command(f"{self.name}/{device}")
                gbit = self.gbit(output.text)
                if gbit is not None:
                    speed, kind = self.speed(host, device), self.kind(host, device)
                    key = None if kind is None else (*host.like(device), speed, *kind)
                    measured.append(_Loop(host.name, device, gbit, speed, key))
                else:
                    why = f": {shortened(output.error)}" if output.error else ""
                    nothing = check.error(host.name, device, f"{self.name} printed no bandwidth{why}")
                    yield instead_of(check, host.name, device, output) or nothing
        like: dict[_Key | None, list[float]] = defaultdict(list)
        for one in measured:
            like[one.key].append(one.gbit)
        peers: dict[_Key | None, list[float]] = {
            key: rates for key, rates in like.items() if key is not None and len(rates) >= LEAST_SIMILAR
        }
        yield from (self._judged(check, one, peers.get(one.key, ())) for one in measured)

    def _judged(self, check: Check, one: _Loop, peers: Sequence[float]) -> Result:
        """Return the result for a NIC; below the median of few NICs it is a warning."""
        floors: list[tuple[Severity, float, str]] = []
        if one.speed:
            floors.append((self.below_speed, self.of_speed * one.speed, f"{self.of_speed:.0%} of {one.speed:g}"))
        if peers:
            usual = median(peers)
            grade = Severity.FAIL if len(peers) > CLEAR_OTHERS else Severity.WARN
            floors.append((grade, self.of_median * usual, f"{self.of_median:.0%} of the median {usual:g}"))
        if not floors:
            return check.skip(one.host, one.device, f"{one.gbit:g} Gb/s, no speed or similar NIC to compare with")
        missed = [floor for floor in floors if one.gbit < floor[1]]
        if not missed:
            return check.ok(one.host, one.device, value=one.gbit, unit="Gb/s")
        severity, floor, words = max(missed, key=lambda floor: (floor[0] is Severity.FAIL, floor[1]))
        message = f"{one.gbit:g} Gb/s, below {words} Gb/s"
        if severity is Severity.FAIL:
            return check.failure(one.host, one.device, message, one.gbit, floor, "Gb/s")
        return check.warning(one.host, one.device, message, one.gbit, floor)


_CXI = _LoopbackTool(
    "cxi_gpu_loopback_bw",
    cxi_loopback_gbit,
    lambda host: host.cxi,
    lambda host, device: nominal_gbit(host.cxi_port(device, "speed")),
    lambda _, __: (),
    of_speed=0.9,
    of_median=0.95,
    absent=NO_SLINGSHOT_NIC,
)

CXI_LOOPBACK_RATE = Check(
    id="tool.cxi.loopback",
    what="loopback bandwidth of every Slingshot NIC through its switch",
    source="cxi_gpu_loopback_bw -d CXI",
    rule=(
        f"at least {_CXI.of_speed:.0%} of the NIC's speed, and {_CXI.of_median:.0%} of the median of NICs with this "
        "speed"
    ),
    severity=Severity.FAIL,
    component="nic",
    remedy="check pcie.width, pcie.speed, cxi.replay and the IOMMU of this host",
    judge=Judge(_CXI.results),
)


def _active_ports(host: Host) -> Mapping[str, RdmaPort]:
    """Return the first active port of each RDMA device that is an adapter."""
    active = {port.device: port for port in reversed(host.ports) if port.is_active}
    devices = dict.fromkeys(port.device for port in host.ports if port.is_active)
    adapters = [one for one in devices if (host.read(f"{INFINIBAND}/{one}/node_type") or "1: CA") == "1: CA"]
    return {device: active[device] for device in adapters}


def _ib_gbit(host: Host, device: str) -> float | None:
    port = _active_ports(host)[device]
    return None if port.is_software or port.rate is None else port.rate.gbit


def _ib_kind(host: Host, device: str) -> tuple[str, ...] | None:
    return None if _ib_gbit(host, device) is None else (device, _active_ports(host)[device].model)


# Loopback within the NIC, whose rate depends on PCI Express as well; the speed of the port only warns.
_IB = _LoopbackTool(
    "ib_write_bw",
    ib_loopback_gbit,
    lambda host: [*_active_ports(host)],
    _ib_gbit,
    _ib_kind,
    of_speed=0.5,
    of_median=0.8,
    absent="no active InfiniBand or RoCE device",
    below_speed=Severity.WARN,
)

IB_LOOPBACK_RATE = Check(
    id="tool.ib.loopback",
    what="loopback bandwidth of every InfiniBand and RoCE device",
    source="ib_write_bw -d DEVICE --report_gbits -D 2, both ends on the host",
    rule=(
        f"at least {_IB.of_median:.0%} of the median of this device on similar hosts; {_IB.of_speed:.0%} of its rate "
        "warns"
    ),
    severity=Severity.FAIL,
    component="nic",
    remedy="check pcie.width, pcie.speed, host.iommu, host.acs, and other load of this host",
    judge=Judge(_IB.results),
)


# ------------------------------------------------------------------------------------------------ dcgmi


def _gpu_diag(check: Check, host: Host) -> Iterable[Result]:
    output = host.command("dcgmi")
    tests = list(diagnostic_results(output.text))
    if instead := instead_of(check, host.name, "", output):
        yield instead
    elif output.status and not tests:
        yield check.skip(host.name, "", shortened(output.error))
    elif not tests:
        yield check.error(host.name, "", "dcgmi printed no results")
    else:
        bad = [words for words, status in tests if status in ("fail", "warn")]
        message = "; ".join(list(dict.fromkeys(bad))[:3])
        yield check.failure(host.name, "", message, len(bad), 0) if bad else check.ok(host.name)


GPU_DIAG = Check(
    id="tool.dcgmi",
    what="the results of NVIDIA's short GPU diagnostic",
    source="dcgmi diag -r 1 -j",
    rule="no test fails",
    component="host",
    remedy="run dcgmi diag -r 3 on the host; reset or replace the GPU",
    judge=limit(_gpu_diag),
)
