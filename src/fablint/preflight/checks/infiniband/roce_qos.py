"""Check of the QoS settings of RoCE NICs: flow control (PFC), trust, traffic classes, congestion notification (ECN)."""

from __future__ import annotations

from collections.abc import Mapping

from fablint.preflight.check import Check
from fablint.preflight.host import INFINIBAND, NET, Host
from fablint.preflight.judges import uniform_settings
from fablint.preflight.judges.outputs import without_answer
from fablint.preflight.judges.uniform import Settings, SettingsComparison
from fablint.snapshot import NicFact
from fablint.snapshot.parsers.traffic_classes import forced_class, priority_words, qos_settings

CONFIGFS = "/sys/kernel/config/rdma_cm"
_DCB = ("dcb-pfc", "dcb-ets", "dcb-app", "dcb-apptrust")  # the collector's names
_MLNX_QOS = "mlnx_qos"
_NO_ANSWER = "neither dcb nor mlnx_qos nor the driver reports it"


def _roce_qos(host: Host) -> Mapping[str, Settings]:
    result = {nic.name: settings_of(host, nic) for nic in _over_rdma(host)}
    return {nic: settings for nic, settings in result.items() if settings}


def _why_not(host: Host) -> str:
    """Return why a host has no settings, or lacks a setting."""
    nics = _over_rdma(host)
    if not nics:
        return "no RoCE NIC"
    output = host.command(f"{_DCB[0]}/{nics[0].name}")
    return _NO_ANSWER if output.status == 0 else f"dcb: {without_answer(output)}"


ROCE_QOS = Check(
    id="ib.roce.qos",
    what="the QoS settings of every RoCE NIC of the fabric: flow control (PFC), trust, traffic classes, ECN",
    source=(
        "dcb pfc, ets, app and apptrust show dev NIC; mlnx_qos -i NIC (level full); "
        f"{INFINIBAND}/DEVICE/tc/*/traffic_class, {NET}/NIC/ecn, {CONFIGFS}"
    ),
    remedy=(
        "use the same settings on all hosts and switches (dcb, mlnx_qos); packets of a priority without PFC are dropped"
    ),
    judge=uniform_settings(SettingsComparison(_roce_qos, _why_not, missing_differs=False)),
)


def _over_rdma(host: Host) -> list[NicFact]:
    return [nic for nic in host.interfaces if nic.device and nic.kind == "ethernet"]


def settings_of(host: Host, nic: NicFact) -> Settings:
    """Return the settings of a NIC by name; the kernel's report (dcb) has precedence."""
    said = [host.command(f"{name}/{nic.name}") for name in (_MLNX_QOS, *_DCB)]
    texts = tuple(one.text if one.status == 0 else "" for one in said)
    return {**_of_driver(host, nic), **qos_settings(*texts)}


def _of_driver(host: Host, nic: NicFact) -> Settings:
    """Return the settings in files of the driver and of the connection manager."""
    device = nic.device.rpartition("-")[0] or nic.device
    result = {}
    for number in host.snapshot.names(f"{INFINIBAND}/{device}/tc"):
        text = host.read(f"{INFINIBAND}/{device}/tc/{number}/traffic_class")
        if text is not None:
            result[f"traffic class of port {number}"] = forced_class(text) or "as programs request"
    for port in host.snapshot.names(f"{CONFIGFS}/{device}/ports"):
        for file, name in (("default_roce_tos", "ToS of rdma_cm"), ("default_roce_mode", "RoCE mode of rdma_cm")):
            text = host.read(f"{CONFIGFS}/{device}/ports/{port}/{file}")
            if text is not None:
                result[name] = text.strip()
    for part, name in (("roce_np", "ECN as receiver"), ("roce_rp", "ECN as sender")):
        folder = f"{NET}/{nic.name}/ecn/{part}/enable"
        states = {number: host.read(f"{folder}/{number}") for number in host.snapshot.names(folder)}
        if states:
            result[name] = priority_words([number for number, state in sorted(states.items()) if state == "1"])
    return result
