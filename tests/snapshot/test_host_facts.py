"""Facts of hosts: from what /sys, /proc and ethtool print, and from this machine's own snapshot."""

from __future__ import annotations

from pathlib import Path

import pytest

from fablint.errors import BrokenRunError
from fablint.model import Run
from fablint.snapshot import Output, Snapshot, host_facts
from fablint.workflows.run_files import load_host_facts, save_host_facts
from fact_cases import run_facts
from snapshot_trees import nested

CPU = (
    "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz\nstepping\t: 4\n"
)
OS = 'NAME="Rocky Linux"\nPRETTY_NAME="Rocky Linux 9.4 (Blue Onyx)"\n'
# Of `ethtool -i` on a host with ConnectX-6 Dx.
ETHTOOL = (
    "driver: mlx5_core\nversion: 24.10-1.1.4\nfirmware-version: 22.39.1002 (MT_0000000359)\nexpansion-rom-version: \n"
)


def snapshot(**more: object) -> Snapshot:
    files = {
        "/proc/cpuinfo": CPU,
        "/etc/os-release": OS,
        "/sys/devices/virtual/dmi/id/bios_version": "2.19.1",
        "/sys/class/infiniband/mlx5_0/fw_ver": "20.39.1002",
        "/sys/class/infiniband/mlx5_1/fw_ver": "20.35.4030",
        "/sys/module/mlx5_core/version": "24.10-1.1.4",
    }
    return Snapshot(**{"host": "n1", "kernel": "5.14.0-427", "files": nested(files), **more})  # type: ignore[arg-type]


def test_facts_of_a_host_with_infiniband() -> None:
    assert host_facts(snapshot()) == {
        "NIC firmware": "20.35.4030, 20.39.1002",
        "NIC driver": "mlx5_core 24.10-1.1.4",
        "CPU model": "Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz",
        "BIOS": "2.19.1",
        "image": "Rocky Linux 9.4 (Blue Onyx)",
        "kernel": "5.14.0-427",
    }


def test_ethernet_nics_are_asked_through_ethtool() -> None:
    commands = {"ethtool-i/eth0": Output(ETHTOOL, status=0), "ethtool-i/eth1": Output(error="not installed")}
    facts = host_facts(snapshot(files={}, commands=commands))
    assert facts == {
        "NIC firmware": "22.39.1002 (MT_0000000359)",
        "NIC driver": "mlx5_core 24.10-1.1.4",
        "kernel": "5.14.0-427",
    }


def test_a_host_that_gave_nothing_has_no_facts() -> None:
    files = {"proc": {"cpuinfo": ["Permission denied"]}, "etc": "no folder"}
    assert host_facts(snapshot(files=files, kernel="")) == {}


def test_a_run_keeps_the_facts_of_its_hosts(tmp_path: Path) -> None:
    run = Run(tmp_path, run_facts({}), ())
    assert load_host_facts(run) == {}
    save_host_facts({}, tmp_path)
    assert not list(tmp_path.iterdir())
    facts = {"n1": host_facts(snapshot()), "n2": {}}
    save_host_facts(facts, tmp_path)
    assert load_host_facts(run) == facts


@pytest.mark.parametrize("text", ["", "[]", '{"hosts": [1]}', '{"hosts": {"n1": "x"}}', "\xff"])
def test_a_damaged_file_of_facts_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "hosts.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(BrokenRunError, match=r"hosts\.json: is not a table of hosts"):
        load_host_facts(Run(tmp_path, run_facts({}), ()))
