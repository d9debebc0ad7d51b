"""Check of the QoS settings of RoCE NICs: flow control (PFC), trust, traffic classes, congestion notification (ECN)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.checks.items import Items, ItemsCheck
from fablint.preflight.checks.outputs import with_reasons, without_answer
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import INFINIBAND, NET, Host
from fablint.snapshot import NicFact
from fablint.snapshot.parsers.documents import dicts, documents

CONFIGFS = "/sys/kernel/config/rdma_cm"
_DCB = ("dcb-pfc", "dcb-ets", "dcb-app", "dcb-apptrust")  # the collector's names
_MLNX_QOS = "mlnx_qos"
_TRUST = re.compile(r"^Priority trust (?:state|mode): *(\w{1,20})", re.MULTILINE)
_ENABLED = re.compile(r"^PFC configuration:\s+priority[ \t\d]+\n\s+enabled((?:[ \t]+[01]){8})", re.MULTILINE)
_CLASS = re.compile(
    r"^tc: (\d{1,2}) ratelimit: ([^,\n]{1,40}), tsa: ([^\n]{1,60})\n\s+priority:([ \t\d]*)$", re.MULTILINE
)
_TCLASS = re.compile(r"tclass *= *(\d{1,3})")
_NO_ANSWER = "neither dcb nor mlnx_qos nor the driver reports it"


class RoceQos(ItemsCheck):
    id = "ib.roce.qos"
    what = "the QoS settings of every RoCE NIC of the fabric: flow control (PFC), trust, traffic classes, ECN"
    source = (
        "dcb pfc, ets, app and apptrust show dev NIC; mlnx_qos -i NIC (level full); "
        f"{INFINIBAND}/DEVICE/tc/*/traffic_class, {NET}/NIC/ecn, {CONFIGFS}"
    )
    rule = "the same as on most similar hosts"
    severity = Severity.WARN
    component = "config"
    remedy = (
        "use the same settings on all hosts and switches (dcb, mlnx_qos); packets of a priority without PFC are dropped"
    )
    absent = "no RoCE NIC"

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        reasons = {host.name: self._why_not(host) for host in fleet.hosts}
        return with_reasons(super().judge(fleet), self.absent, reasons)

    def items(self, host: Host) -> Mapping[str, Items]:
        found = {nic.name: settings_of(host, nic) for nic in _over_rdma(host)}
        return {nic: settings for nic, settings in found.items() if settings}

    def values(self, host: Host) -> Mapping[str, Any]:
        """Return the settings; an unreported setting is not compared, since the tools of a host may be older."""
        items = self._items[id(host)]
        every = super().values(host)
        known = {f"{group} {name}" for group, settings in items.items() for name in settings}
        return {target: value if target in known else None for target, value in every.items()}

    def _why_not(self, host: Host) -> str:
        """Return why a host has no settings, or lacks a setting."""
        nics = _over_rdma(host)
        if not nics:
            return self.absent
        output = host.command(f"{_DCB[0]}/{nics[0].name}")
        return _NO_ANSWER if output.status == 0 else f"dcb: {without_answer(output)}"


def _over_rdma(host: Host) -> list[NicFact]:
    return [nic for nic in host.interfaces if nic.device and nic.kind == "ethernet"]


def settings_of(host: Host, nic: NicFact) -> Items:
    """Return the settings of a NIC by name; the kernel's report (dcb) has precedence."""
    said = [host.command(f"{name}/{nic.name}") for name in (_MLNX_QOS, *_DCB)]
    texts = tuple(one.text if one.status == 0 else "" for one in said)
    return {**_of_driver(host, nic), **_of_texts(*texts)}


@lru_cache(maxsize=4096)  # similar hosts say the same
def _of_texts(mlnx_qos: str, *dcb: str) -> Items:
    found = dict(_of_mlnx_qos(mlnx_qos))
    for text in dcb:
        for document in [one for value in documents(text) for one in dicts(value)][:1]:
            found |= dict(_of_dcb(document))
    return found


def _of_dcb(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the settings in an output of `dcb -j`, without counters and capabilities."""
    enabled = document.get("prio_pfc")
    if isinstance(enabled, list) and len(enabled) == 8:
        yield "PFC", _priorities([str(number) for number, state in enumerate(enabled) if state in (True, 1, "on")])
    for key, name in (("prio_tc", "traffic classes"), ("tc_tsa", "scheduling"), ("tc_bw", "bandwidth shares")):
        if _is_flat(document.get(key)):
            yield name, " ".join(map(str, document[key]))
    order = document.get("order")
    if _is_flat(order):
        yield "trust", " ".join(map(str, document["order"])) or "nothing"
    for key, name in (("default_prio", "default priority"), ("dscp_prio", "priorities of DSCP")):
        if isinstance(document.get(key), list):
            pairs = [one if isinstance(one, list) else [one] for one in document[key]]
            yield name, " ".join(sorted(":".join(map(str, pair)) for pair in pairs)) or "none"


def _is_flat(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str | int) for one in value)


def _of_mlnx_qos(text: str) -> Iterator[tuple[str, str]]:
    if match := _TRUST.search(text):
        yield "trust", match[1]
    if match := _ENABLED.search(text):
        yield "PFC", _priorities([str(number) for number, state in enumerate(match[1].split()) if state == "1"])
    for number, limit, scheduling, priorities in _CLASS.findall(text):
        words = f"{scheduling.strip()}, rate {limit.strip()}, priority {' '.join(priorities.split()) or 'none'}"
        yield f"traffic class {number}", words


def _of_driver(host: Host, nic: NicFact) -> Items:
    """Return the settings in files of the driver and of the connection manager."""
    device = nic.device.rpartition("-")[0] or nic.device
    found = {}
    for number in host.snapshot.names(f"{INFINIBAND}/{device}/tc"):
        text = host.read(f"{INFINIBAND}/{device}/tc/{number}/traffic_class")
        if text is not None:
            forced = _TCLASS.search(text)
            found[f"traffic class of port {number}"] = forced[1] if forced else "as programs request"
    for port in host.snapshot.names(f"{CONFIGFS}/{device}/ports"):
        for file, name in (("default_roce_tos", "ToS of rdma_cm"), ("default_roce_mode", "RoCE mode of rdma_cm")):
            text = host.read(f"{CONFIGFS}/{device}/ports/{port}/{file}")
            if text is not None:
                found[name] = text.strip()
    for part, name in (("roce_np", "ECN as receiver"), ("roce_rp", "ECN as sender")):
        folder = f"{NET}/{nic.name}/ecn/{part}/enable"
        states = {number: host.read(f"{folder}/{number}") for number in host.snapshot.names(folder)}
        if states:
            found[name] = _priorities([number for number, state in sorted(states.items()) if state == "1"])
    return found


def _priorities(numbers: list[str]) -> str:
    """Format priorities: `priority 3`, `priorities 3 4`, `off`."""
    if not numbers:
        return "off"
    return f"{'priority' if len(numbers) == 1 else 'priorities'} {' '.join(numbers)}"
