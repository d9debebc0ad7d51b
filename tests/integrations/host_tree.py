"""A folder that stands for a host whose only NIC is down."""

from __future__ import annotations

from pathlib import Path

_NIC = {
    "address": "02:11:22:33:44:55",
    "mtu": "9000",
    "type": "1",
    "flags": "0x1003",
    "operstate": "down",
    "carrier": "0",
}


def host_with_link_down(folder: Path) -> Path:
    """Write the files of /sys and /etc below `folder` and return it."""
    nic = folder / "sys/class/net/hsn0"
    nic.mkdir(parents=True)
    for name, text in _NIC.items():
        (nic / name).write_text(text + "\n")
    (folder / "etc").mkdir()
    (folder / "etc/hostname").write_text("nid001\n")
    return folder
