"""Links of PCI Express above NICs and GPUs: bridges, relaxed ordering, bandwidth that drivers report."""

from __future__ import annotations

import pytest
from preflight_help import host, of, wrong

from fablint.model.preflight_results import Outcome
from fablint.preflight.check import Check
from fablint.preflight.checks.host.pcie import PCIE_ANSWER, PCIE_SPEED, PCIE_WIDTH
from fablint.preflight.checks.host.pcie_requests import PCIE_ORDERING
from fablint.preflight.checks.host.slot_bandwidth import PCIE_BANDWIDTH
from fablint.preflight.host import Host
from fablint.snapshot.host_snapshot import Output
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

ROOT, UP, DOWN, NIC, GPU_PORT, GPU = (
    *("0000:3a:00.0", "0000:3b:00.0", "0000:3c:00.0", "0000:3d:00.0"),
    *("0000:3c:01.0", "0000:3e:00.0"),
)
CLASSES = {ROOT: "0x060400", UP: "0x060400", DOWN: "0x060400", GPU_PORT: "0x060400", NIC: "0x020700", GPU: "0x030200"}
LIMITED = (
    "mlx5_core 0000:3d:00.0: 63.008 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x8 link at 0000:3a:00.0 "
    "(capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)"
)
WHOLE = "mlx5_core 0000:3d:00.0: 252.048 Gb/s available PCIe bandwidth (16.0 GT/s PCIe x16 link)"


def machine(name: str, log: str = "", lspci: str = "", **changed: str) -> Host:
    """A host whose NIC and GPU are behind one switch; `UP_current_link_width` changes a file of a bridge."""
    link = {"current_link_width": "16", "max_link_width": "16", "current_link_speed": "16.0 GT/s PCIe"}
    link |= {"max_link_speed": "16.0 GT/s PCIe", "vendor": "0x1000", "device": "0xc030"}
    at = "/sys/bus/pci/devices"
    files = {f"{at}/{address}/{key}": text for address in CLASSES for key, text in link.items()}
    files |= {f"{at}/{address}/class": text for address, text in CLASSES.items()}
    files[f"{at}/{GPU}/current_link_speed"] = "2.5 GT/s PCIe"  # idle
    ib = "/sys/class/infiniband/mlx5_0"
    files |= {f"{ib}/device/{key}": text for key, text in link.items()} | {f"{ib}/node_type": "1: CA"}
    for key, text in changed.items():
        bridge, _, file = key.partition("_")
        files[f"{at}/{dict(ROOT=ROOT, UP=UP, DOWN=DOWN)[bridge]}/{file}"] = text
    path = f"../../devices/pci0000:3a/{ROOT}/{UP}"
    links = {
        f"{ib}/device": f"../../../{NIC}",
        ib: f"{path}/{DOWN}/{NIC}/infiniband/mlx5_0",
        f"/sys/bus/pci/drivers/nvidia/{GPU}": f"../../../{path}/{GPU_PORT}/{GPU}",
    }
    return host(name, files, links=links, kernel_log=Output(log, status=0), commands={"lspci": lspci})


@pytest.mark.parametrize(
    ("check", "file", "text", "message"),
    [
        (PCIE_WIDTH, "UP_current_link_width", "8", "x8, 4 others x16"),
        (PCIE_SPEED, "UP_current_link_speed", "8.0 GT/s PCIe", "8 GT/s, 4 others 16 GT/s"),
    ],
)
def test_the_link_of_a_bridge_above_a_nic(check: Check, file: str, text: str, message: str) -> None:
    hosts = [machine(f"n{number}") for number in range(4)]
    assert wrong(of(check, *hosts)) == []
    assert wrong(of(check, *hosts, machine("odd", **{file: text}))) == [("odd", f"bridge {UP}", Outcome.FAIL, message)]


def test_a_bridge_that_is_wired_so_on_all_hosts_or_on_one_alone_is_no_fault() -> None:
    narrow = [machine(f"n{number}", UP_current_link_width="8") for number in range(4)]
    assert wrong(of(PCIE_WIDTH, *narrow)) == []
    assert wrong(of(PCIE_WIDTH, narrow[0])) == []
    assert {one.target for one in of(PCIE_WIDTH, narrow[0])} == {"mlx5_0", f"GPU {GPU}", f"bridge {UP}"}


def test_the_port_below_a_bridge_is_that_of_its_device() -> None:
    hosts = [*(machine(f"n{number}") for number in range(4)), machine("odd", DOWN_current_link_width="8")]
    assert wrong(of(PCIE_WIDTH, *hosts)) == []


def test_the_bandwidth_that_a_driver_reported() -> None:
    hosts = [machine(f"n{number}", WHOLE) for number in range(4)]
    assert wrong(of(PCIE_BANDWIDTH, *hosts)) == []
    ((name, target, outcome, message),) = wrong(of(PCIE_BANDWIDTH, *hosts, machine("odd", f"{WHOLE}\n{LIMITED}")))
    assert (name, target, outcome) == ("odd", "mlx5_0", Outcome.FAIL)
    assert message == PINNED["63.008 Gb/s of PCI Express"]
    ((_, _, outcome, message),) = wrong(of(PCIE_BANDWIDTH, machine("alone", LIMITED)))
    assert (outcome, message) == (Outcome.WARN, PINNED["63.008 Gb/s of PCI Express, supported"])
    assert wrong(of(PCIE_BANDWIDTH, *(machine(f"n{number}", LIMITED) for number in range(3)))) == [], "built so"
    assert [one.outcome for one in of(PCIE_BANDWIDTH, machine("n1"))] == [Outcome.SKIP]


def test_relaxed_ordering_that_differs() -> None:
    text = "0000:3d:00.0 Infiniband controller: X\n\t\tDevCtl:\tCorrErr+ NonFatalErr+\n\t\t\tRlxdOrd{} ExtTag+\n"
    hosts = [machine(f"n{number}", lspci=text.format("+")) for number in range(4)]
    assert wrong(of(PCIE_ORDERING, *hosts)) == []
    assert wrong(of(PCIE_ORDERING, *hosts, machine("odd", lspci=text.format("-")))) == [
        ("odd", "mlx5_0", Outcome.WARN, "relaxed ordering off, 4 others on")
    ]


ONES = {
    "current_link_width": "63",
    "max_link_width": "63",
    "current_link_speed": "Unknown",
    "max_link_speed": "Unknown",
}
AT = "/sys/bus/pci/devices"


def with_device(name: str, **files: str) -> Host:
    """A host with a NIC and two GPUs; `files` are those of the first GPU."""
    link = {"current_link_width": "16", "max_link_width": "16", "current_link_speed": "32.0 GT/s PCIe"}
    link |= {"max_link_speed": "32.0 GT/s PCIe", "vendor": "0x10de", "device": "0x2330", "class": "0x030200"}
    gpus = {f"{AT}/{address}/{key}": text for address in ("0000:19:00.0", GPU) for key, text in link.items()}
    gpus |= {f"{AT}/{GPU}/{key}": text for key, text in files.items()}
    ib = "/sys/class/infiniband/mlx5_0"
    return host(name, {**gpus, **{f"{ib}/device/{key}": text for key, text in link.items()}}, links={})


@pytest.mark.parametrize("count", [1, 2, 6])
def test_a_gpu_whose_registers_read_as_ones_fails_once(count: int) -> None:
    hosts = [with_device("odd", **ONES), *(with_device(f"n{number}") for number in range(1, count))]
    found = [one for check in (PCIE_ANSWER, PCIE_WIDTH, PCIE_SPEED) for one in wrong(of(check, *hosts))]
    assert [(name, target, outcome) for name, target, outcome, _ in found] == [("odd", f"GPU {GPU}", Outcome.FAIL)]


@pytest.mark.parametrize(
    "files",
    [
        {
            "current_link_width": "0",
            "max_link_width": "0",
            "current_link_speed": "Unknown",
            "max_link_speed": "Unknown",
        },
        {"current_link_width": "1", "current_link_speed": "2.5 GT/s PCIe"},  # idle
        {"current_link_width": "255", "max_link_width": "255", "max_link_speed": "Unknown"},
    ],
)
def test_links_that_cannot_be_seen_or_sleep_are_answers(files: dict[str, str]) -> None:
    assert wrong(of(PCIE_ANSWER, with_device("n1", **files), with_device("n2"))) == []


def test_a_nic_whose_registers_read_as_ones() -> None:
    ib = "/sys/class/infiniband/mlx5_0/device"
    silent = host("odd", {f"{ib}/{key}": text for key, text in {**ONES, "vendor": "0x15b3"}.items()})
    assert [one[:3] for one in wrong(of(PCIE_ANSWER, silent))] == [("odd", "mlx5_0", Outcome.FAIL)]


@pytest.mark.parametrize(
    ("check", "file", "text", "kinds"),
    [
        (PCIE_SPEED, "current_link_speed", "16.0 GT/s PCIe", "two kinds: 6 x 32 GT/s, 3 x 16"),
        (PCIE_WIDTH, "current_link_width", "8", "two kinds: 6 x x16, 3 x 8"),
    ],
)
def test_two_kinds_of_links_are_figures_without_decimals(check: Check, file: str, text: str, kinds: str) -> None:
    link = {"current_link_width": "16", "max_link_width": "16", "vendor": "0x15b3", "device": "0x1021"}
    link |= {"current_link_speed": "32.0 GT/s PCIe", "max_link_speed": "32.0 GT/s PCIe"}
    ib = "/sys/class/infiniband/mlx5_0/device"
    files = [
        {f"{ib}/{key}": value for key, value in {**link, **({file: text} if n < 3 else {})}.items()} for n in range(9)
    ]
    found = wrong(of(check, *(host(f"n{number}", one) for number, one in enumerate(files))))
    assert {(name, message) for name, _, _, message in found} == {(f"n{number}", kinds) for number in range(3)}
