"""Faults of a rail: its link, cable, address, settings, counters, firmware, and the slot of its card."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from generated_fleets.documents import NOW, PORTS, Fleet
from generated_fleets.edits import (
    Change,
    Document,
    all_of,
    counted,
    device_counted,
    device_file,
    file,
    listed,
    logged,
    put,
    rail_of,
    said,
)
from generated_fleets.machines import Machine, Rail

NET, IB, CXI = "/sys/class/net/{nic}", "/sys/class/infiniband/{dev}", "/sys/class/cxi/{dev}/device"
PORT = f"{IB}/ports/1"
CONF = "/proc/sys/net/ipv4/conf/{nic}"
THRESHOLD = "/proc/sys/net/ipv4/neigh/default/gc_thresh3"
NEEDS_TOPOLOGY = frozenset({"lldp"})
SHARED = frozenset({"duplicate", "same-id"})  # with the first host of the fleet, which may be named too
NEEDS_ROOT = frozenset({"requests", "acs"})


def _mtu(fleet: Fleet, index: int, document: Document) -> None:
    nic = rail_of(fleet, index).interface
    put(document, f"/sys/class/net/{nic}/mtu", "1500")
    _mtu_of_ip(fleet, index, document)


def _lower_mtu(row: Document, rail: Rail) -> Document:
    return {**row, "mtu": 1500} if row["ifname"] == rail.interface else row


_mtu_of_ip = listed("ip-addr", _lower_mtu)


def _speed(fleet: Fleet, index: int, document: Document) -> None:
    """Half of the lanes, or the next lower speed."""
    rail, machine = rail_of(fleet, index), fleet.machine_of(index)
    if machine.link != "infiniband":
        lower = {200_000: 100_000, 400_000: 200_000, 25_000: 10_000}[machine.speed_mbit]
        put(document, f"/sys/class/net/{rail.interface}/speed", str(lower))
    if machine.link == "slingshot":
        put(document, f"/sys/class/cxi/{rail.device}/device/port/speed", "BJ_100G")
    elif rail.device:
        put(document, f"/sys/class/infiniband/{rail.device}/ports/1/rate", "200 Gb/sec (2X NDR)")


def _down(fleet: Fleet, index: int, document: Document) -> None:
    """The link is lost; addresses stay."""
    rail = rail_of(fleet, index)
    for name, text in (("operstate", "down"), ("carrier", "0"), ("speed", "-1")):
        put(document, f"/sys/class/net/{rail.interface}/{name}", text)
    if fleet.machine_of(index).is_rdma:
        put(document, f"/sys/class/infiniband/{rail.device}/ports/1/state", "1: DOWN")
        put(document, f"/sys/class/infiniband/{rail.device}/ports/1/phys_state", "2: Polling")
    elif rail.device:
        put(document, f"/sys/class/cxi/{rail.device}/device/port/link", "down")
    _hear(document, lambda one: None if one["name"] == rail.interface else one)


def _missing(fleet: Fleet, index: int, document: Document) -> None:
    """A NIC that fell off the bus: nothing of it is left, on the bus or above."""
    rail = rail_of(fleet, index)
    for key in ("files", "counters", "later"):
        tree = document[key]
        for kind in ("net", "infiniband", "cxi"):
            for name in (rail.interface, rail.device):
                tree["sys"]["class"].get(kind, {}).pop(name, None)
        tree.get("run", {}).get("cxi", {}).pop(rail.device, None)
    document["files"]["sys"]["bus"]["pci"]["devices"].pop(rail.pci)
    document["files"]["proc"]["sys"]["net"]["ipv4"]["conf"].pop(rail.interface)
    for key in ("links", "folders"):
        gone = (f"/{rail.interface}/", f"/{rail.device}/") if rail.device else (f"/{rail.interface}/",)
        document[key] = {path: one for path, one in document[key].items() if not any(part in path for part in gone)}
    for name in [name for name in document["commands"] if name.rpartition("/")[2] in (rail.interface, rail.device)]:
        document["commands"].pop(name)
    for name, field in (("ip-addr", "ifname"), ("ip-route", "dev")):
        rows = json.loads(document["commands"][name]["output"])
        document["commands"][name]["output"] = json.dumps([row for row in rows if row[field] != rail.interface])
    _hear(document, lambda one: None if one["name"] == rail.interface else one)


def _lldp(fleet: Fleet, index: int, document: Document) -> None:
    """The cable is in a free port of another switch: of its plane if there is one, else of the next."""
    rail, place = rail_of(fleet, index), fleet.place(index, 1)
    other = fleet.place((index + PORTS) % fleet.hosts, 1).switch

    def move(document: Document) -> Document:
        if document["name"] == rail.interface:
            switch = other if other != place.switch else place.switch.replace("leaf1", "leaf0")
            document["chassis"][0]["name"][0]["value"] = switch
            for key in ("id", "descr"):
                document["port"][0][key][0]["value"] = f"Ethernet{PORTS + 1}"
        return document

    _hear(document, move)


def _planes(fleet: Fleet, index: int, document: Document) -> None:
    """Cables of two rails are swapped: each is on the other's plane. No topology says what is right."""
    first, second = (rail.interface for rail in fleet.machine_of(index).rails[:2])
    names = {first: second, second: first}
    _hear(document, lambda one: {**one, "name": names.get(one["name"], one["name"])})


def _unheard(fleet: Fleet, index: int, document: Document) -> None:
    nic = rail_of(fleet, index).interface
    _hear(document, lambda one: None if one["name"] == nic else one)


def _hear(document: Document, change: Callable[[Document], Document | None]) -> None:
    heard = json.loads(document["commands"]["lldpcli"]["output"])
    changed = [change(one) for one in heard["lldp"][0]["interface"]]
    heard["lldp"][0]["interface"] = [one for one in changed if one]
    document["commands"]["lldpcli"]["output"] = json.dumps(heard)


def _driver(fleet: Fleet, index: int, document: Document) -> None:
    """An older driver on the whole host, as after an image that was not updated."""
    machine = fleet.machine_of(index)
    put(document, f"/sys/module/{machine.driver}/version", "1.9.0-old")
    for name, item in document["commands"].items():
        if name.startswith("ethtool-i/"):
            item["output"] = item["output"].replace(machine.driver_version, "1.9.0-old")


def _firmware(fleet: Fleet, index: int, document: Document) -> None:
    rail, machine = rail_of(fleet, index), fleet.machine_of(index)
    item = document["commands"][f"ethtool-i/{rail.interface}"]
    item["output"] = item["output"].replace(machine.firmware, "20.1.1")
    if machine.is_rdma:
        put(document, f"/sys/class/infiniband/{rail.device}/fw_ver", "20.1.1")
    elif rail.device:
        put(document, f"/sys/class/cxi/{rail.device}/device/uc/version", "1.4.1")


def _without_address(row: Document, rail: Rail) -> Document:
    return {**row, "addr_info": []} if row["ifname"] == rail.interface else row


def _other_prefix(row: Document, rail: Rail) -> Document:
    own_other_prefix = row["ifname"] == rail.interface
    return {**row, "addr_info": [{**one, "prefixlen": 24} for one in row["addr_info"]]} if own_other_prefix else row


def _without_route(row: Document, rail: Rail) -> Document | None:
    return None if row.get("dev") == rail.interface and row.get("protocol") == "kernel" else row


def _astray(row: Document, rail: Rail) -> Document:
    is_of_rail = row.get("dev") == rail.interface and row.get("protocol") == "kernel"
    return {"dst": row["dst"], "dev": "eno1", "gateway": "10.255.255.254", "flags": []} if is_of_rail else row


def _duplicate(fleet: Fleet, index: int, document: Document) -> None:
    """The address of the same rail of another host."""
    number = fleet.machine_of(index).rails.index(rail_of(fleet, index))
    address, other = (f"172.{16 + number}.{(at + 1) >> 8}.{(at + 1) & 255}" for at in (index, 0))
    for name in ("ip-addr", "ip-route"):
        item = document["commands"][name]
        item["output"] = item["output"].replace(f'"{address}"', f'"{other}"')


def _nameless(_: Fleet, __: int, document: Document) -> None:
    document["names"]["of"] = dict.fromkeys(document["names"]["of"])


def _flapped(fleet: Fleet, index: int, document: Document) -> None:
    """The link went down several times within the last hour."""
    rail = rail_of(fleet, index)
    for name, count in (("carrier_changes", "26"), ("carrier_up_count", "13"), ("carrier_down_count", "13")):
        for tree in ("counters", "later"):
            put(document, f"/sys/class/net/{rail.interface}/{name}", count, tree)
    if fleet.machine_of(index).link == "slingshot":
        for slot in range(7):
            path = f"/sys/class/cxi/{rail.device}/device/link_restarts/time_{slot}"
            put(document, path, str(round(NOW) - 400 * (slot + 1)))


def _slot(name: str, text: str) -> Change:
    return device_file(f"current_link_{name}", text)


def _other_node(fleet: Fleet, index: int, document: Document) -> None:
    nodes = fleet.machine_of(index).nodes
    at = document["files"]["sys"]["class"]["net"][rail_of(fleet, index).interface]["device"]["numa_node"]
    device_file("numa_node", str((int(at) + 1) % nodes))(fleet, index, document)


def _acs(fleet: Fleet, index: int, document: Document) -> None:
    said("lspci", "ReqRedir-", "ReqRedir+")(fleet, index, document)


def _slow_loopback(fleet: Fleet, index: int, document: Document) -> None:
    rail, machine = rail_of(fleet, index), fleet.machine_of(index)
    tool = "cxi_gpu_loopback_bw" if machine.link == "slingshot" else "ib_write_bw"
    item = document["commands"][f"{tool}/{rail.device}"]
    item["output"] = re.sub(r"\d{3}\.\d\d", f"{machine.speed_mbit / 3000:.2f}", item["output"], count=1)


def _infiniband(machine: Machine) -> bool:
    return machine.link == "infiniband"


def _slingshot(machine: Machine) -> bool:
    return machine.link == "slingshot"


def _roce(machine: Machine) -> bool:
    return machine.link == "roce"


def _rdma(machine: Machine) -> bool:
    return machine.is_rdma


def _not_plain(machine: Machine) -> bool:
    return machine.link != "ethernet"


def _heard(machine: Machine) -> bool:
    return machine.has_lldp


def _gpus(machine: Machine) -> bool:
    return machine.gpus > 0


TOTAL = "RxErr 0\nTOTAL_ERR_{} {}"
STATISTICS, TELEMETRY = f"{NET}/statistics", f"{CXI}/telemetry"
NETWORK_FAULTS = (
    ("mtu", "MTU 1500 on one rail", _mtu),
    ("speed", "one rail at half its speed or the next lower one", _speed),
    ("down", "one link is down", _down),
    ("nic", "one NIC is gone from the bus", _missing),
    ("lldp", "one cable on another switch than the topology says", _lldp, _heard),
    ("planes", "the cables of two rails are swapped, no topology", _planes, _heard),
    ("unheard", "one rail hears no switch", _unheard, _heard),
    ("driver", "an older driver of the NICs", _driver),
    ("firmware", "older firmware of one NIC", _firmware),
    ("flaps", "the link went down 7 times in an hour, or 13 times since the boot", _flapped, _heard),
    ("crc", "damaged frames during the snapshot", counted(f"{STATISTICS}/rx_crc_errors", 10**7), _heard),
    ("full", "packets dropped for want of room", counted(f"{STATISTICS}/rx_missed_errors", 10**7), _heard),
    ("width", "half of the PCI Express lanes", _slot("width", "4")),
    ("lanes", "PCI Express at 2.5 GT/s", _slot("speed", "2.5 GT/s PCIe")),
    (
        "aer",
        "corrected PCI Express errors during the snapshot",
        device_counted("aer_dev_correctable", TOTAL.format("COR", 90)),
    ),
    (
        "aer-fatal",
        "a fatal PCI Express error during the snapshot",
        device_counted("aer_dev_fatal", TOTAL.format("FATAL", 1)),
    ),
    ("numa", "a NIC on another NUMA node", _other_node),
    ("no-address", "a rail without an address", listed("ip-addr", _without_address)),
    ("prefix", "another length of the network's prefix", listed("ip-addr", _other_prefix)),
    ("duplicate", "the address of another host", _duplicate),
    ("no-route", "no route to the rail's network", listed("ip-route", _without_route)),
    ("astray", "the rail's network is reached by the management NIC", listed("ip-route", _astray)),
    ("nameless", "no name of its address", _nameless),
    ("arp-table", "too little room in the neighbour table", file(THRESHOLD, "4")),
    ("requests", "read requests of 512 bytes", said("lspci", "MaxReadReq 4096", "MaxReadReq 512")),
    ("acs", "Access Control Services between GPUs and NICs", _acs, _gpus),
    (
        "offload",
        "segmentation offload is off",
        said("ethtool-k/{nic}", "tcp-segmentation-offload: on", "tcp-segmentation-offload: off"),
    ),
    ("ring", "short rings", said("ethtool-g/{nic}", "settings:\nRX:\t\t1024", "settings:\nRX:\t\t128")),
    ("coalesce", "interrupts wait for 100 us", said("ethtool-c/{nic}", "rx-usecs:\t8", "rx-usecs:\t100")),
    ("pause", "flow control is on", said("ethtool-a/{nic}", "RX:\t\toff\nTX:\t\toff", "RX:\t\ton\nTX:\t\ton")),
    ("storm", "a pause storm", said("ethtool-S-later/{nic}", "warning_events: 0", "warning_events: 3")),
    ("fec", "no error correction", said("ethtool-fec/{nic}", "Active FEC encoding: RS", "Active FEC encoding: Off")),
    (
        "fec-lost",
        "blocks that error correction could not correct",
        said("ethtool-fec-later/{nic}", "uncorrectable_blocks: 0", "uncorrectable_blocks: 44"),
        _heard,
    ),
    (
        "optics",
        "a receiver gets too little light",
        said("ethtool-m/{nic}", "power low alarm   (Channel 1)    : Off", "power low alarm   (Channel 1)    : On"),
    ),
    (
        "timeout",
        "the driver's queue timed out",
        logged("NETDEV WATCHDOG: {nic} (drv): transmit queue 3 timed out"),
        _heard,
    ),
    ("symbol", "symbol errors during the snapshot", counted(f"{PORT}/counters/symbol_error", 70), _rdma),
    ("link-downed", "a link that is lost again and again", counted(f"{PORT}/counters/link_downed", 12), _rdma),
    ("retries", "packets are lost on the path", counted(f"{PORT}/hw_counters/packet_seq_err", 25), _rdma),
    (
        "init",
        "no subnet manager has seen the port",
        all_of([file(f"{PORT}/state", "2: INIT"), file(f"{PORT}/lid", "0x0")]),
        _infiniband,
    ),
    ("board", "a card of another make", file(f"{IB}/board_id", "MT_0000000999"), _rdma),
    ("pkey", "another partition", file(f"{PORT}/pkeys/*", "1 0x8001\n1 0xffff"), _infiniband),
    ("connected", "IP over InfiniBand in connected mode", file(f"{NET}/mode", "connected"), _infiniband),
    ("gid", "no RoCE v2 address over IPv4 at its index", file(f"{PORT}/gid_attrs/types/3", "IB/RoCE v1"), _roce),
    ("loopback-rate", "a third of the rate of a NIC to itself", _slow_loopback, _not_plain),
    ("llr", "link layer retry is off", file(f"{CXI}/port/link_layer_retry", "off"), _slingshot),
    ("loopback", "a NIC in loopback", file(f"{CXI}/port/loopback", "internal"), _slingshot),
    ("pfc", "no priority flow control", file(f"{CXI}/port/pause", "none"), _slingshot),
    (
        "uncorrected",
        "codewords that cannot be corrected",
        counted(f"{TELEMETRY}/hni_pcs_uncorrected_cw", 5),
        _slingshot,
    ),
    ("corrected", "a bit error rate of 1e-5", counted(f"{TELEMETRY}/hni_pcs_corrected_cw", 10**7), _slingshot),
    (
        "replay",
        "link layer retry sends again and again",
        counted(f"{TELEMETRY}/hni_llr_tx_replay_event", 900),
        _slingshot,
    ),
    ("poisoned", "poisoned packets", counted(f"{TELEMETRY}/hni_tx_poisoned_opt", 2), _slingshot),
    ("discard", "discarded packets", counted(f"{TELEMETRY}/hni_discard_cntr_3", 40), _slingshot),
    ("retry-handler", "the retry handler has failed", said("cxi_rh/{dev}", "active", "failed"), _slingshot),
    ("cancelled", "connections that were given up", counted("/run/cxi/{dev}/connections_cancelled", 3), _slingshot),
    ("service", "no service of a NIC is enabled", said("cxi_service", "Enabled : Yes", "Enabled : No"), _slingshot),
    ("nid", "another NID than the MAC says", file(f"{CXI}/properties/nid", "0xabcde"), _slingshot),
    ("mac", "no algorithmic MAC", file(f"{NET}/address", "b8:ce:f6:12:34:56"), _slingshot),
)
