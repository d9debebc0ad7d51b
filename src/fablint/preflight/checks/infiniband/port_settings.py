"""Checks of the settings of RDMA ports: partitions, types of addresses, mode of IP over InfiniBand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fablint.preflight.check import Check
from fablint.preflight.host import INFINIBAND, NET, Host
from fablint.preflight.judges import uniform
from fablint.snapshot.parsers.tallies import tallied
from fablint.snapshot.rdma_ports import RdmaPort

_ONLY_V1 = "nowhere, only RoCE v1"  # not routed, without ECN
_IPV4 = ":0000:ffff:"  # in a GID of an IPv4 address


def _partition_keys(host: Host) -> Mapping[str, Any]:
    keys = {port.target: tallied(host.read(f"{port.folder}/pkeys/*")) for port in _active(host, "InfiniBand")}
    return {target: " ".join(sorted(texts)) or None for target, texts in keys.items()}


PARTITION_KEYS = Check(
    id="ib.pkey",
    what="the partitions of every active InfiniBand port",
    source=f"{INFINIBAND}/DEVICE/ports/PORT/pkeys/*",
    remedy="check partitions.conf of the subnet manager; hosts of different partitions do not reach each other",
    judge=uniform(_partition_keys, "P_Keys {}", absent="no active InfiniBand port"),
)


GID_TYPES = Check(
    id="ib.gid",
    what="the indices of RoCE v2 over IPv4 addresses of every active RoCE port",
    source=f"{INFINIBAND}/DEVICE/ports/PORT/gids/*, gid_attrs/types/*",
    rule=(
        "the same as on most similar hosts, since programs are configured with an index (NCCL_IB_GID_INDEX, "
        "UCX_IB_GID_INDEX); at least one if the port has an IPv4 address"
    ),
    remedy="check the addresses, VLANs and the default RoCE mode of this NIC (cma_roce_mode)",
    judge=uniform(
        lambda host: {port.target: _indices(host, port.folder) for port in _active(host, "Ethernet")},
        "RoCE v2 over IPv4 {}",
        absent="no active RoCE port",
        is_poor=lambda value: value == _ONLY_V1,
    ),
)


def _indices(host: Host, port: str) -> str | None:
    gids, types = host.snapshot.folder(f"{port}/gids"), host.snapshot.folder(f"{port}/gid_attrs/types")
    if not gids or not types:
        return None
    type_of_index = {
        int(index): types.get(index)
        for index, address in gids.items()
        if index.isdecimal() and isinstance(address, str) and _IPV4 in address
    }
    result = [index for index, kind in type_of_index.items() if kind == "RoCE v2"]
    if not result:
        return _ONLY_V1 if type_of_index else "nowhere"
    return f"at index {', '.join(map(str, sorted(result)))}"


def _active(host: Host, link_layer: str) -> list[RdmaPort]:
    return [port for port in host.ports if port.is_active and port.link_layer == link_layer]


def _ipoib_mode(host: Host) -> Mapping[str, Any]:
    nics = [nic.name for nic in host.interfaces if nic.kind == "infiniband"]
    modes = {nic: host.read(f"{NET}/{nic}/mode") for nic in nics}
    return {nic: mode if mode in ("datagram", "connected") else None for nic, mode in modes.items()}


IPOIB_MODE = Check(
    id="net.ipoib.mode",
    what="the mode of IP over InfiniBand",
    source=f"{NET}/NIC/mode",
    rule="the same as on most similar hosts, since it limits the MTU",
    remedy="set datagram or connected to the same value on all hosts; newer cards and drivers have datagram only",
    judge=uniform(_ipoib_mode, "{}", absent="no network interface of InfiniBand"),
)
