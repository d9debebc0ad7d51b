"""Ports of RDMA devices: state, rate, link layer, model of the card."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from fablint.snapshot.host_snapshot import INFINIBAND, Snapshot
from fablint.text.sanitise import shortened

ACTIVE = "ACTIVE"
_COLONS = 7  # of a GID
_RATE = re.compile(r"(\d{1,6}(?:\.\d{1,3})?) Gb/sec \((\d{1,2})X")


class PortRate(NamedTuple):
    """Rate of a port."""

    gbit: float  # Gbit/s
    lanes: int


@dataclass(frozen=True)
class RdmaPort:
    """A port of an RDMA device; its texts are '' if the driver does not report them."""

    device: str
    number: str
    snapshot: Snapshot = field(repr=False, compare=False)

    @property
    def target(self) -> str:
        """`mlx5_0/1`."""
        return f"{self.device}/{self.number}"

    @property
    def folder(self) -> str:
        """Folder of its files."""
        return f"{INFINIBAND}/{self.device}/ports/{self.number}"

    @property
    def state(self) -> str:
        """`ACTIVE` of `4: ACTIVE`."""
        return self._text("state")

    @property
    def physical_state(self) -> str:
        """`LinkUp` of `5: LinkUp`."""
        return self._text("phys_state")

    @property
    def link_layer(self) -> str:
        """`InfiniBand` or `Ethernet`."""
        return self._text("link_layer")

    @property
    def is_active(self) -> bool:
        """True if messages can be sent."""
        return self.state == ACTIVE

    @property
    def rate(self) -> PortRate | None:
        """Its rate; None if the driver does not report it."""
        rate = _RATE.search(self._text("rate"))
        return PortRate(float(rate[1]), int(rate[2])) if rate else None

    @property
    def plane(self) -> str:
        """Its subnet: `subnet manager LID 1, prefix fe80:0000:0000:0000`; '' if the driver does not report it."""
        manager, gid = self.snapshot.number(f"{self.folder}/sm_lid"), self._text("gids/0")
        prefix = f", prefix {':'.join(gid.split(':')[:4])}" if gid.count(":") == _COLONS else ""
        return f"subnet manager LID {manager}{prefix}" if manager else ""

    @property
    def is_software(self) -> bool:
        """True if the CPU moves the data: Soft-RoCE has no PCI device, and Omni-Path's verbs copy local data."""
        vendor = self.snapshot.read(f"{INFINIBAND}/{self.device}/device/vendor")
        return vendor is None or (vendor == "0x8086" and self.link_layer == "InfiniBand")

    @property
    def card(self) -> str:
        """PCI slot of its device, since each port of a card can be a device."""
        return self.snapshot.link(f"{INFINIBAND}/{self.device}/device").rpartition(".")[0] or self.device

    @property
    def model(self) -> str:
        """Model of its card: board id, type, or the name of the device."""
        texts = (self.snapshot.read(f"{INFINIBAND}/{self.device}/{name}") for name in ("board_id", "hca_type"))
        return next(filter(None, texts), self.device)

    def _text(self, name: str) -> str:
        text = self.snapshot.read(f"{self.folder}/{name}") or ""
        return shortened(text.rpartition(": ")[2] if name in ("state", "phys_state") else text)


def rdma_ports(snapshot: Snapshot) -> list[RdmaPort]:
    """Return the ports of all RDMA devices."""
    devices = snapshot.names(INFINIBAND)
    return [
        RdmaPort(device, port, snapshot)
        for device in devices
        for port in snapshot.names(f"{INFINIBAND}/{device}/ports")
    ]
