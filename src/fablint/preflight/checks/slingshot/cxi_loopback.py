"""Checks of Slingshot NICs by loopback through their switch, from the memory of the host and of GPUs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fablint.model.preflight_results import Severity
from fablint.preflight.check import Check
from fablint.preflight.host import Host
from fablint.preflight.judges.nic_loopbacks import LoopbackTool, loopbacks
from fablint.preflight.judges.outputs import NO_SLINGSHOT_NIC
from fablint.snapshot.parsers.loopback_rates import cxi_loopback_gbit
from fablint.snapshot.parsers.slingshot_tools import nominal_gbit
from fablint.text.units import share_text


def _speed(host: Host, device: str) -> float | None:
    return nominal_gbit(host.cxi_port(device, "speed"))


_CXI = LoopbackTool(
    "cxi_gpu_loopback_bw",
    cxi_loopback_gbit,
    lambda host: host.cxi,
    _speed,
    lambda _, __: (),
    of_speed=0.9,
    of_median=0.95,
)

CXI_LOOPBACK_RATE = Check(
    id="tool.cxi.loopback",
    what="loopback bandwidth of every Slingshot NIC through its switch",
    source="cxi_gpu_loopback_bw -d CXI",
    rule=(
        f"at least {share_text(_CXI.of_speed)} of the NIC's speed, and {share_text(_CXI.of_median)} of the median of "
        "NICs with this speed"
    ),
    severity=Severity.FAIL,
    component="nic",
    remedy="check pcie.width, pcie.speed, cxi.replay and the IOMMU of this host",
    judge=loopbacks(NO_SLINGSHOT_NIC, _CXI),
)


def _measured(name: str) -> Callable[[Host], Sequence[str]]:
    return lambda host: [*host.snapshot.commands_like(name)]


def _gpu_tool(name: str, label: str) -> LoopbackTool:
    """Return a program with one buffer in GPU memory; how fast that is depends on the path between GPU and NIC."""
    return LoopbackTool(
        name,
        cxi_loopback_gbit,
        _measured(name),
        _speed,
        lambda _, device: (device,),
        of_median=0.9,
        of_speed=0.5,
        below_speed=Severity.WARN,
        label=label,
    )


_GPU = (
    _gpu_tool("cxi_gpu_loopback_bw-tx", "from GPU memory: "),
    _gpu_tool("cxi_gpu_loopback_bw-rx", "into GPU memory: "),
)

CXI_GPU_LOOPBACK_RATE = Check(
    id="tool.cxi.gpu",
    what="loopback bandwidth of every Slingshot NIC from and into the memory of the nearest GPU",
    source="cxi_gpu_loopback_bw -d CXI -D 2 with --tx-gpu GPU, then with --rx-gpu GPU",
    rule=(
        f"at least {share_text(_GPU[0].of_median)} of the median of this NIC on similar hosts; "
        f"{share_text(_GPU[0].of_speed)} of its speed warns"
    ),
    severity=Severity.FAIL,
    component="nic",
    remedy="check pcie.width and pcie.speed of GPU and NIC, host.acs, gpu.peermem, and tool.cxi.loopback of this NIC",
    judge=loopbacks("no Slingshot NIC on a host with GPUs, or not at level full", *_GPU),
)
