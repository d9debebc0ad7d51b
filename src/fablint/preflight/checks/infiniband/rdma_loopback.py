"""Checks of InfiniBand and RoCE devices by loopback: bandwidth and latency of RDMA writes and reads."""

from __future__ import annotations

from collections.abc import Mapping

from fablint.model.preflight_results import Severity
from fablint.preflight.check import Check
from fablint.preflight.host import INFINIBAND, Host
from fablint.preflight.judges.nic_loopbacks import LoopbackTool, loopbacks
from fablint.snapshot.parsers.loopback_rates import ib_loopback_gbit, ib_loopback_us
from fablint.snapshot.rdma_ports import RdmaPort
from fablint.text.units import share_text

_ABSENT = "no active InfiniBand or RoCE device"


def _active_ports(host: Host) -> Mapping[str, RdmaPort]:
    """Return the first active port of each RDMA device that is an adapter."""
    active = {port.device: port for port in reversed(host.ports) if port.is_active}
    devices = dict.fromkeys(port.device for port in host.ports if port.is_active)
    adapters = [name for name in devices if (host.read(f"{INFINIBAND}/{name}/node_type") or "1: CA") == "1: CA"]
    return {device: active[device] for device in adapters}


def _gbit(host: Host, device: str) -> float | None:
    port = _active_ports(host)[device]
    return None if port.is_software or port.rate is None else port.rate.gbit


def _kind(host: Host, device: str) -> tuple[str, ...] | None:
    return None if _gbit(host, device) is None else (device, _active_ports(host)[device].model)


def _bandwidth(name: str, label: str = "") -> LoopbackTool:
    """Return a program within the NIC, whose rate depends on PCI Express as well; the speed of the port only warns."""
    return LoopbackTool(
        name,
        ib_loopback_gbit,
        lambda host: [*_active_ports(host)],
        _gbit,
        _kind,
        of_median=0.8,
        of_speed=0.5,
        below_speed=Severity.WARN,
        label=label,
    )


def _latency(name: str, label: str) -> LoopbackTool:
    return LoopbackTool(
        name,
        ib_loopback_us,
        lambda host: [*_active_ports(host)],
        _gbit,
        _kind,
        of_median=1.5,
        above_peers=Severity.WARN,
        unit="us",
        label=label,
    )


_WRITE, _READ = _bandwidth("ib_write_bw"), _bandwidth("ib_read_bw", "RDMA read: ")
_LATENCIES = _latency("ib_write_lat", "RDMA write: "), _latency("ib_read_lat", "RDMA read: ")

IB_LOOPBACK_RATE = Check(
    id="tool.ib.loopback",
    what="loopback bandwidth of every InfiniBand and RoCE device, written and read",
    source="ib_write_bw and ib_read_bw -d DEVICE --report_gbits -D 2, both ends on the host",
    rule=(
        f"at least {share_text(_WRITE.of_median)} of the median of this device on similar hosts; "
        f"{share_text(_WRITE.of_speed)} of its rate warns"
    ),
    severity=Severity.FAIL,
    component="nic",
    remedy="check pcie.width, pcie.speed, host.iommu, host.acs, and other load of this host",
    judge=loopbacks(_ABSENT, _WRITE, _READ),
)

IB_LOOPBACK_LATENCY = Check(
    id="tool.ib.latency",
    what="loopback latency of every InfiniBand and RoCE device, written and read",
    source="ib_write_lat and ib_read_lat -d DEVICE, both ends on the host; the median of 1,000 messages",
    rule=f"at most {share_text(_LATENCIES[0].of_median)} of the median of this device on similar hosts",
    component="nic",
    remedy="check host.cstates, host.governor, host.iommu, pcie.speed, and other load of this host",
    judge=loopbacks(_ABSENT, *_LATENCIES),
)
