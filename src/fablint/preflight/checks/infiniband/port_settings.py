"""Checks of the settings of RDMA ports: partitions, types of addresses, mode of IP over InfiniBand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fablint.model.preflight_results import Severity
from fablint.preflight.base import UniformCheck
from fablint.preflight.checks.infiniband.ports import is_active, said
from fablint.preflight.checks.tallies import tallied
from fablint.preflight.host import INFINIBAND, NET, Host

_ONLY_V1 = "nowhere, only RoCE v1"  # not routed, without ECN
_IPV4 = ":0000:ffff:"  # in a GID of an IPv4 address


class PartitionKeys(UniformCheck):
    id = "ib.pkey"
    what = "the partitions of every active InfiniBand port"
    source = f"{INFINIBAND}/DEVICE/ports/PORT/pkeys/*"
    rule = "the same as on most similar hosts"
    severity = Severity.WARN
    component = "config"
    remedy = "check partitions.conf of the subnet manager; hosts of different partitions do not reach each other"
    words = "P_Keys {}"
    absent = "no active InfiniBand port"

    def values(self, host: Host) -> Mapping[str, Any]:
        ports = [(device, port) for device, port in host.ports if _is_active_on(host, device, port, "InfiniBand")]
        keys = {port: tallied(host.read(f"{INFINIBAND}/{port[0]}/ports/{port[1]}/pkeys/*")) for port in ports}
        return {"/".join(port): " ".join(sorted(found)) or None for port, found in keys.items()}


class GidTypes(UniformCheck):
    id = "ib.gid"
    what = "the indices of RoCE v2 over IPv4 addresses of every active RoCE port"
    source = f"{INFINIBAND}/DEVICE/ports/PORT/gids/*, gid_attrs/types/*"
    rule = (
        "the same as on most similar hosts, since programs are configured with an index (NCCL_IB_GID_INDEX, "
        "UCX_IB_GID_INDEX); at least one if the port has an IPv4 address"
    )
    severity = Severity.WARN
    component = "config"
    remedy = "check the addresses, VLANs and the default RoCE mode of this NIC (cma_roce_mode)"
    words = "RoCE v2 over IPv4 {}"
    absent = "no active RoCE port"

    def values(self, host: Host) -> Mapping[str, Any]:
        found = {}
        for device, port in host.ports:
            if _is_active_on(host, device, port, "Ethernet"):
                found[f"{device}/{port}"] = _indices(host, f"{INFINIBAND}/{device}/ports/{port}")
        return found

    def is_poor(self, value: Any) -> bool:
        return bool(value == _ONLY_V1)


def _indices(host: Host, port: str) -> str | None:
    gids, types = host.snapshot.folder(f"{port}/gids"), host.snapshot.folder(f"{port}/gid_attrs/types")
    if not gids or not types:
        return None
    known = {
        int(index): types.get(index)
        for index, address in gids.items()
        if index.isdecimal() and isinstance(address, str) and _IPV4 in address
    }
    found = [index for index, kind in known.items() if kind == "RoCE v2"]
    if not found:
        return _ONLY_V1 if known else "nowhere"
    return f"at index {', '.join(map(str, sorted(found)))}"


def _is_active_on(host: Host, device: str, port: str, link_layer: str) -> bool:
    return is_active(host, device, port) and said(host, device, port, "link_layer") == link_layer


class IpoibMode(UniformCheck):
    id = "net.ipoib.mode"
    what = "the mode of IP over InfiniBand"
    source = f"{NET}/NIC/mode"
    rule = "the same as on most similar hosts, since it limits the MTU"
    severity = Severity.WARN
    component = "config"
    remedy = "set datagram or connected to the same value on all hosts; newer cards and drivers have datagram only"
    words = "{}"
    absent = "no network interface of InfiniBand"

    def values(self, host: Host) -> Mapping[str, Any]:
        nics = [nic.name for nic in host.interfaces if nic.kind == "infiniband"]
        modes = {nic: host.read(f"{NET}/{nic}/mode") for nic in nics}
        return {nic: mode if mode in ("datagram", "connected") else None for nic, mode in modes.items()}
