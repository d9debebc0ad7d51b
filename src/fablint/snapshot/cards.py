"""Cards that decide the class of a host: network and fabric NICs, GPUs and accelerators."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from fablint.snapshot.host_snapshot import Snapshot, Tree
from fablint.snapshot.memo import once_per_folder
from fablint.snapshot.parsers.proc_files import cpu_info

NIC, GPU = "NIC", "GPU"
_PCI = "/sys/bus/pci/devices"
_NETWORK = ("0x0200", "0x0207", "0x0280", "0x0c06")  # Ethernet, InfiniBand, other network, InfiniBand of old cards
COMPUTE = ("0x0302", "0x0380", "0x1200")  # 3D and display controllers, processing accelerators
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_CLASSES = ("net", "infiniband", "cxi")


class Card(NamedTuple):
    """A NIC (PCI function with a network port) or a GPU."""

    kind: str  # NIC or GPU
    vendor: str  # `0x15b3`
    device: str  # `0x1021`
    board: str = ""  # PSID or other board id, if the driver reports one

    @property
    def number(self) -> str:
        """Part number: `15b3:1021 MT_0000000838`."""
        return f"{self.vendor[2:]}:{self.device[2:]} {self.board}".strip() if self.vendor else self.board


Build = tuple[str, str]  # machine and CPU model
Boards = Mapping[tuple[str, str, str], str]  # board ids by kind, vendor and device of the card


class Built(NamedTuple):
    """Machine, CPU model and cards of a host."""

    build: Build
    cards: tuple[Card, ...]  # sorted


def cards_of(snapshot: Snapshot) -> Mapping[str, Card]:
    """Return all cards by PCI address; a device that is not on the bus has the path of its folder as address."""
    cards = dict(_on_bus(snapshot.folder(_PCI)))
    for name, folder in _devices(snapshot):
        address = snapshot.link(folder) or folder
        vendor, device = snapshot.read(f"{folder}/vendor"), snapshot.read(f"{folder}/device")
        if address not in cards or not cards[address].vendor:
            if vendor is None or device is None:
                continue
            cards[address] = Card(NIC, vendor, device)
        board = snapshot.read(f"/sys/class/infiniband/{name}/board_id")
        if board:
            cards[address] = cards[address]._replace(board=" ".join(board.split())[:40])
    return cards


@once_per_folder
def _on_bus(devices: Tree) -> Mapping[str, Card]:
    """Return the cards on the PCI bus by address."""
    result = {}
    for address, device in devices.items():
        kind = _kind(device.get("class")) if isinstance(device, dict) else ""
        if kind:
            result[address] = Card(kind, str(device.get("vendor") or ""), str(device.get("device") or ""))
    return result


@once_per_folder
def accelerators_on(devices: Tree) -> Mapping[str, str]:
    """Return the class of each GPU and accelerator on the PCI bus, by address."""
    result = {address: one.get("class") for address, one in devices.items() if isinstance(one, dict)}
    return {key: kind for key, kind in result.items() if isinstance(kind, str) and kind.startswith(COMPUTE)}


def addresses_of(snapshot: Snapshot) -> Mapping[str, str]:
    """Return the PCI address of each network interface and fabric device, by name; see `cards_of`."""
    return {name: snapshot.link(folder) or folder for name, folder in _devices(snapshot)}


def bridges_above(snapshot: Snapshot, address: str) -> Sequence[str]:
    """Return the addresses of the bridges above a PCI device, from the root port down; () if they are not known."""
    return _paths(snapshot).get(address, ())


def _paths(snapshot: Snapshot) -> Mapping[str, Sequence[str]]:
    """Return the bridges above each device that has a link with its path: `../devices/pci0000:3a/0000:3a:00.0/...`."""
    return _bridges_in(tuple(target for target in snapshot.links.values() if "/pci" in target))


@lru_cache(maxsize=64)
def _bridges_in(targets: tuple[str, ...]) -> Mapping[str, Sequence[str]]:
    paths = ([part for part in target.split("/") if _ADDRESS.fullmatch(part)] for target in targets)
    return {path[-1]: path[:-1] for path in paths if path}


def cpu_model(snapshot: Snapshot) -> str:
    """Return the CPU model, such as `Intel(R) Xeon(R) Platinum 8480+`; '' if /proc/cpuinfo lacks it."""
    return cpu_info(snapshot.read("/proc/cpuinfo")).model


def completed(card: Card, boards: Boards) -> Card:
    """Give a card without a board id the most frequent board id of its PCI id."""
    return card if card.board else card._replace(board=boards.get(card[:3], ""))


def _devices(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """Yield name and folder of the PCI device of each network interface and fabric device."""
    for group in _CLASSES:
        for name in snapshot.names(f"/sys/class/{group}"):
            if name and "/" not in name:
                yield name, f"/sys/class/{group}/{name}/device"


def _kind(code: object) -> str:
    """Return NIC or GPU for a PCI class; '' for other classes."""
    text = code if isinstance(code, str) else ""
    return NIC if text.startswith(_NETWORK) else GPU if text.startswith(COMPUTE) else ""
