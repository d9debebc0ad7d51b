"""The program that takes a snapshot, as hosts run it."""

from __future__ import annotations

import ast
import os
import random
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fablint.model import Answer
from fablint.snapshot import Snapshot, command_to_collect, nics_of, read_answers
from fablint.snapshot.agent import collector as the_program, loopback_tests
from fablint.snapshot.agent.machine import Late, Machine
from snapshot_trees import unfold

PROGRAM = command_to_collect("quick")[1]


# A driver that takes its time to answer when its file is opened.
SLOW = """
import os, time
opened = os.open
os.open = lambda path, *more: (path.endswith({path!r}) and time.sleep({seconds}), opened(path, *more))[1]
"""


def printed(
    sysroot: Path | None = None,
    limit_s: float | str = 20.0,
    environ: Mapping[str, str] | None = None,
    before: str = "",
) -> str:
    """What it prints. Only what is installed with Python itself can be imported. `before`: code that runs before it."""
    (_, *words), text = command_to_collect("quick", sysroot)
    words[4] = str(limit_s)
    done = subprocess.run(
        [sys.executable, "-I", "-S", *words],
        input=before + text,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={**os.environ, **(environ or {})},
    )
    assert not done.stderr
    return done.stdout


def taken(*words: Any, **named: Any) -> Snapshot:
    said = read_answers([Answer("n1", printed(*words, **named))])
    assert not said.silent
    return said.snapshots["n1"]


def test_it_is_for_old_interpreters_and_needs_nothing_else() -> None:
    assert PROGRAM.isascii()
    parsed = ast.parse(PROGRAM, feature_version=(3, 6))
    imported = {name.name for node in ast.walk(parsed) if isinstance(node, ast.Import) for name in node.names}
    imported |= {str(node.module) for node in ast.walk(parsed) if isinstance(node, ast.ImportFrom)}
    assert imported <= sys.stdlib_module_names


def test_this_machine_in_short_lines() -> None:
    output = printed()
    assert max(map(len, output.splitlines())) < 500
    snapshot = read_answers([Answer("here", output)]).snapshots["here"]
    assert snapshot.incomplete == ""
    assert (snapshot.host, snapshot.level) == ("here", "quick")
    assert snapshot.kernel == os.uname().release == snapshot.read("/proc/sys/kernel/osrelease")
    assert snapshot.window_s >= 0.5
    assert snapshot.read_later("/proc/net/snmp")
    assert snapshot.shared_memory["size"] > 0
    assert "TcpExt" in (snapshot.read("/proc/net/netstat") or "")


def test_slingshot_nics_of_a_tree(tmp_path: Path) -> None:
    snapshot = taken(unfold(tmp_path, "discover/sysroot/cxi-2rail-good"))
    nics = {fact.name: fact for fact in nics_of(snapshot)}
    assert (nics["hsn0"].mtu, nics["hsn0"].state) == (9000, "up")
    assert snapshot.number("/sys/class/cxi/cxi1/device/properties/nid") is not None
    assert snapshot.read_later("/run/cxi/cxi0/nacks") == "0"
    assert snapshot.command("lldpcli").error == "no such output in the tree"


def test_infiniband_ports_of_a_tree(tmp_path: Path) -> None:
    snapshot = taken(unfold(tmp_path, "discover/sysroot/mlx5-2rail-good"))
    ports = [fact for fact in nics_of(snapshot) if fact.kind == "infiniband"]
    assert [(port.name, port.speed, port.state) for port in ports] == [
        ("mlx5_0", 400000, "up"),
        ("mlx5_1", 400000, "up"),
    ]


# ------------------------------------------------------------------------------------------------ RDMA loopback


def rdma(root: Path) -> Machine:
    """A tree with devices of many kinds, as a machine."""
    ports = {
        "mlx5_0/ports/1": ("4: ACTIVE", {"0": "fe80:0000:0000:0000:0202:c9ff:fe00:0001", "1": ""}),
        "mlx5_1/ports/1": ("1: DOWN", {}),
        "mlx5_1/ports/2": (
            "4: ACTIVE",
            {
                "0": "fe80:0000:0000:0000:0202:c9ff:fe00:0002 RoCE v2",
                "2": "0000:0000:0000:0000:0000:ffff:0a00:0001 IB/RoCE v1",
                "10": "0000:0000:0000:0000:0000:ffff:0a00:0001 RoCE v2",
                "11": "0000:0000:0000:0000:0000:ffff:0a00:0002 RoCE v2",
            },
        ),
        "mlx5_2/ports/1": ("2: INIT", {}),
        "irdma0/ports/1": ("4: ACTIVE", {}),
    }
    for port, (state, gids) in ports.items():
        at = root / "sys/class/infiniband" / port
        (at / "gid_attrs/types").mkdir(parents=True)
        (at / "gids").mkdir()
        (at / "state").write_text(state + "\n")
        (at.parents[1] / "node_type").write_text("4: RNIC\n" if "irdma" in port else "1: CA\n")
        for index, text in gids.items():
            (at / "gids" / index).write_text(text.partition(" ")[0])
            (at / "gid_attrs/types" / index).write_text(text.partition(" ")[2])
    return Machine(str(root), 60.0)


def test_active_rdma_devices_are_asked_of_their_active_port(tmp_path: Path) -> None:
    options = {name: argv for name, _, argv in loopback_tests.loopbacks(rdma(tmp_path))}
    rates = ["--report_gbits", "-D", "2"]
    first, second = ["-d", "mlx5_0", "-i", "1", "-F"], ["-d", "mlx5_1", "-i", "2", "-F", "-x", "10"]
    assert options == {
        "ib_write_bw/mlx5_0": ["ib_write_bw", *first, *rates],
        "ib_write_bw/mlx5_1": ["ib_write_bw", *second, *rates],
        "ib_read_bw/mlx5_0": ["ib_read_bw", *first, *rates],
        "ib_read_bw/mlx5_1": ["ib_read_bw", *second, *rates],
        "ib_write_lat/mlx5_0": ["ib_write_lat", *first],
        "ib_write_lat/mlx5_1": ["ib_write_lat", *second],
        "ib_read_lat/mlx5_0": ["ib_read_lat", *first],
        "ib_read_lat/mlx5_1": ["ib_read_lat", *second],
    }


def test_rdma_devices_are_measured_at_the_full_level_only(tmp_path: Path) -> None:
    rdma(tmp_path)
    (tmp_path / "commands/ib_write_bw").mkdir(parents=True)
    (tmp_path / "commands/ib_write_bw/mlx5_1").write_text("hello")
    for level, devices in (("quick", set()), ("full", {"mlx5_0", "mlx5_1"})):
        snapshot = the_program.snapshot(level, 0.0, 20.0, str(tmp_path))
        said = {name.partition("/")[2]: one for name, one in snapshot["commands"].items() if "ib_write_bw" in name}
        assert set(said) == devices
    assert said["mlx5_1"] == {"output": "hello", "status": 0}
    assert said["mlx5_0"] == {"error": "no such output in the tree"}


def test_without_time_devices_have_not_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: dict[str, Any] = {}

    def late(*_: Any) -> None:
        assert [*said.values()] == [{"error": "no answer in time"}] * 8
        raise Late

    monkeypatch.setattr(loopback_tests, "loopback", late)
    with pytest.raises(Late):
        loopback_tests.load_rdma(rdma(tmp_path), said)


def test_later_tests_of_devices_are_left_out_where_time_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, said = rdma(tmp_path), dict[str, Any]()
    machine.root = ""
    monkeypatch.setattr(
        loopback_tests, "loopbacks", lambda _: [(f"{name}/x", "x", [name]) for name in ("ib_write_bw", "b")]
    )
    monkeypatch.setattr(loopback_tests, "loopback", lambda *_: {"output": "rate", "status": 0})
    machine.end = 0.0
    loopback_tests.load_rdma(machine, said)
    assert said == {
        "ib_write_bw/x": {"output": "rate", "status": 0},
        "b/x": {"error": "there was no time left for it"},
    }


def gpu_tree(root: Path, nics: dict[str, str], gpus: dict[str, tuple[str, str]]) -> Machine:
    """A tree with Slingshot NICs and GPUs: path of the device, of a GPU also its class."""
    for name, path in nics.items():
        device = root / "sys/devices" / path
        device.mkdir(parents=True, exist_ok=True)
        (device / "numa_node").write_text("0\n")
        (root / "sys/class/cxi" / name).mkdir(parents=True)
        (root / "sys/class/cxi" / name / "device").symlink_to(device)
    for path, (driver, kind) in gpus.items():
        device = root / "sys/devices" / path
        device.mkdir(parents=True, exist_ok=True)
        (device / "class").write_text(kind + "\n")
        (device / "numa_node").write_text("0\n" if path.startswith("pci0000") else "1\n")
        for folder in (f"sys/bus/pci/drivers/{driver}", "sys/bus/pci/devices"):
            (root / folder).mkdir(parents=True, exist_ok=True)
            (root / folder / device.name).symlink_to(device)
    return Machine(str(root), 60.0)


def test_a_slingshot_nic_is_measured_with_the_nearest_gpu(tmp_path: Path) -> None:
    nics = {"cxi0": "pci0000:c0/0000:c0:01.0/0000:c3:00.0", "cxi1": "pci0000:c0/0000:c0:02.0/0000:d5:00.0"}
    gpus = {
        "pci0000:c0/0000:c0:01.0/0000:c1:00.0": ("amdgpu", "0x038000"),
        "pci0000:c0/0000:c0:02.0/0000:d1:00.0": ("amdgpu", "0x038000"),
        "pci0000:00/0000:00:01.0/0000:01:00.0": ("amdgpu", "0x030000"),  # drives a monitor
    }
    machine = gpu_tree(tmp_path, nics, gpus)
    assert loopback_tests.gpus_of(machine) == ["0000:c1:00.0", "0000:d1:00.0"]
    near = {nic: loopback_tests.nearest(machine, nic, loopback_tests.gpus_of(machine)) for nic in nics}
    assert near == {"cxi0": "0000:c1:00.0", "cxi1": "0000:d1:00.0"}
    said: dict[str, Any] = {}
    (tmp_path / "commands/cxi_gpu_loopback_bw-rx").mkdir(parents=True)
    (tmp_path / "commands/cxi_gpu_loopback_bw-rx/cxi1").write_text("a row")
    loopback_tests.load_gpus(machine, said)
    assert sorted(said) == sorted(f"cxi_gpu_loopback_bw-{side}/{nic}" for side in ("tx", "rx") for nic in nics)
    assert said["cxi_gpu_loopback_bw-rx/cxi1"] == {"output": "a row", "status": 0}


def test_a_gpu_in_another_pci_domain_is_near_by_its_numa_node(tmp_path: Path) -> None:
    nics = {"cxi0": "pci0002:00/0002:00:00.0/0002:01:00.0"}
    gpus = {
        "pci0019:00/0019:00:00.0/0019:01:00.0": ("nvidia", "0x030200"),
        "pci0000:09/0000:09:00.0/0009:01:00.0": ("nvidia", "0x030200"),
    }
    machine = gpu_tree(tmp_path, nics, gpus)
    assert loopback_tests.nearest(machine, "cxi0", loopback_tests.gpus_of(machine)) == "0009:01:00.0"
    said: dict[str, Any] = {}
    loopback_tests.load_gpus(gpu_tree(tmp_path / "without", {}, {}), said)
    assert said == {}


@pytest.mark.parametrize(("text", "found"), [("0-3,8", {0, 1, 2, 3, 8}), ("5", {5}), ("", set()), ("['no']", set())])
def test_a_list_of_processors(text: str, found: set[int]) -> None:
    assert loopback_tests.numbers(text) == found


# ------------------------------------------------------------------------------------------------ stalls


def test_a_stalled_program_costs_only_its_own_output(tmp_path: Path) -> None:
    for name, script in (("lldpcli", "sleep 1000"), ("chronyc", "exec yes"), ("ip", "echo '[]'")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    snapshot = taken(environ={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert snapshot.command("lldpcli").error == "no answer in time"
    assert snapshot.command("chronyc").error.startswith("it printed more than")
    assert snapshot.command("ip-neigh").text == "[]\n"
    assert snapshot.incomplete == ""
    assert snapshot.read_later("/proc/net/snmp")


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("/sys/class/net/hsn1/speed", True),  # a driver that does not answer
        ("/sys/class/net/hsn0/carrier_changes", False),  # already where counters are read first
    ],
)
def test_a_stalled_file_is_named_and_the_rest_is_read(path: str, kept: bool, tmp_path: Path) -> None:
    root = unfold(tmp_path, "discover/sysroot/cxi-2rail-good")
    (root / "commands").mkdir()
    (root / "commands/lldpcli").write_text("{}")
    snapshot = taken(root, 1.0, before=SLOW.format(path=path, seconds=1000))
    assert snapshot.incomplete == f"reading {path}"
    assert (snapshot.number("/sys/class/net/hsn0/mtu") == 9000) is kept
    assert snapshot.command("lldpcli").text == "{}"


def test_a_file_that_takes_longer_than_the_aim_is_read_all_the_same(tmp_path: Path) -> None:
    """A loaded host, or a driver that asks its card: what comes behind it in the list is read as well."""
    root = unfold(tmp_path, "discover/sysroot/cxi-2rail-good")
    (root / "sys/class/net/hsn1/speed").write_text("200000\n")
    snapshot = taken(root, "1:60", before=SLOW.format(path="/hsn1/speed", seconds=1.5))  # the aim is over by then
    assert snapshot.incomplete == ""
    assert snapshot.number("/sys/class/net/hsn1/speed") == 200000
    assert snapshot.read("/sys/class/cxi/cxi1/device/port/link") == "up"
    assert snapshot.read_later("/run/cxi/cxi0/nacks") == "0"


def test_no_time_at_all_is_no_whole_snapshot(tmp_path: Path) -> None:
    snapshot = taken(unfold(tmp_path, "discover/sysroot/cxi-2rail-good"), 0.0)
    assert snapshot.incomplete
    assert not snapshot.kernel_log.ran


# ------------------------------------------------------------------------------------------------ a large host


def test_what_a_large_host_prints_stays_small(tmp_path: Path) -> None:
    """512 hardware threads, four rails, 300 containers, a full kernel log."""
    root = unfold(tmp_path, "discover/sysroot/cxi-2rail-good")
    chance = random.Random(1)
    files = _threads(512) | _devices(400, chance) | _containers(300) | _rails(root)
    for path, text in files.items():
        at = root / path.lstrip("/")
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_text(text)
    (root / "var/log").mkdir(parents=True)
    (root / "var/log/dmesg").write_text(_log(6000, chance))
    output = printed(root)
    snapshot = read_answers([Answer("n1", output)]).snapshots["n1"]
    assert snapshot.incomplete == ""
    assert len(snapshot.names("/sys/devices/system/cpu")) == 512
    assert {f"hsn{rail}" for rail in range(4)} == set(snapshot.names("/sys/class/net"))
    assert len(snapshot.kernel_log.text) > 190_000
    assert len(output) < 100_000


def _threads(count: int) -> dict[str, str]:
    return {f"/sys/devices/system/cpu/cpu{n}/cpufreq/scaling_governor": "performance\n" for n in range(count)}


def _devices(count: int, chance: random.Random) -> dict[str, str]:
    found: dict[str, str] = {}
    for number in range(count):
        at = f"/sys/bus/pci/devices/0000:{number // 8:02x}:{number % 8:02x}.0"
        width, lane = chance.choice(["1", "8", "16"]), chance.choice(["2.5", "16.0", "32.0"])
        found |= {f"{at}/{end}_link_width": f"{width}\n" for end in ("current", "max")}
        found |= {f"{at}/{end}_link_speed": f"{lane} GT/s PCIe\n" for end in ("current", "max")}
        found |= {f"{at}/class": f"0x{chance.randrange(20):02x}0000\n", f"{at}/numa_node": f"{number % 8}\n"}
        found |= {f"/sys/kernel/iommu_groups/{number}/type": "DMA-FQ\n"}
    return found


def _containers(count: int) -> dict[str, str]:
    found: dict[str, str] = {}
    for number in range(count):
        name = f"veth{number:08x}"
        found |= {f"/sys/class/net/{name}/{key}": "1\n" for key in ("mtu", "address", "operstate")}
        found[f"/proc/sys/net/ipv4/conf/{name}/rp_filter"] = "2\n"
    return found


def _rails(root: Path) -> dict[str, str]:
    """Two rails more, like those that are there."""
    found: dict[str, str] = {}
    for here, there in (("0", "2"), ("1", "3")):
        for start in ("sys/class/net/hsn", "sys/class/cxi/cxi", "run/cxi/cxi"):
            for path in (root / (start + here)).rglob("*"):
                if path.is_file():
                    found[f"/{start}{there}/{path.relative_to(root / (start + here))}"] = path.read_text()
    return found


def _log(lines: int, chance: random.Random) -> str:
    """As when a host is booted: similar lines with other numbers."""
    words = ["pci", "cxi_core", "nvme", "numa", "mapped", "resource", "assigned", "BAR", "bridge", "window", "enabled"]
    text_of_log = ""
    for number in range(lines):
        place = f"0000:{chance.randrange(256):02x}:{chance.randrange(32):02x}.0"
        text = " ".join(chance.choices(words, k=5))
        text_of_log += f"<6>[{number / 300:12.6f}] pci {place}: {text} [mem 0x{chance.getrandbits(40):010x}]\n"
    return text_of_log
