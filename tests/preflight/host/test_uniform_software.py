"""Properties that similar hosts share."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from preflight_help import host, nic, of, outcomes, sample, wrong

from fablint.model.preflight_results import Outcome
from fablint.preflight.check import Check
from fablint.preflight.checks.host.memory import MEMORY
from fablint.preflight.checks.host.software import (
    BIOS,
    CPU_COUNT,
    DRIVER,
    KERNEL_MODULES,
    KERNEL_RELEASE,
    LOAD,
    MPI,
    NIC_FIRMWARE,
    NUMA_NODES,
    OPERATING_SYSTEM,
    SMT,
    count_listed,
)
from fablint.preflight.host import Host
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

ALL = (
    MEMORY,
    LOAD,
    CPU_COUNT,
    SMT,
    NUMA_NODES,
    KERNEL_RELEASE,
    OPERATING_SYSTEM,
    BIOS,
    DRIVER,
    NIC_FIRMWARE,
    KERNEL_MODULES,
    MPI,
)
PRODUCT = "/sys/devices/virtual/dmi/id/product_name"
HYDRA = "HYDRA build details:\n    Version:                                 {}\n    CC: gcc\n"
ETHTOOL = "driver: mlx5_core\nversion: {}\nfirmware-version: {} (MT_0000000838)\nbus-info: 0000:c1:00.0\n"


def fleet(path: str, values: Sequence[str]) -> list[Host]:
    """Hosts n0, n1, ... with such a file each."""
    return [host(f"n{index}", {path: value}) for index, value in enumerate(values)]


@pytest.mark.parametrize(
    ("check", "path", "usual", "odd", "message"),
    [
        (CPU_COUNT, "/sys/devices/system/cpu/online", "0-127", "0-62,64-127", "127 CPUs online, 3 others 128"),
        (SMT, "/sys/devices/system/cpu/smt/active", "0", "1", "SMT on, 3 others off"),
        (NUMA_NODES, "/sys/devices/system/node/online", "0-7", "0-1", "2 NUMA nodes, 3 others 8"),
        (NUMA_NODES, "/sys/devices/system/node/online", "0-1", "0", "1 NUMA node, 3 others 2"),
        (KERNEL_RELEASE, "/proc/sys/kernel/osrelease", "5.14.21-150500", "5.14.21-150400", None),
        (OPERATING_SYSTEM, "/etc/os-release", 'NAME=x\nPRETTY_NAME="SLES 15 SP5"', 'PRETTY_NAME="SLES 15 SP4"', None),
        (BIOS, "/sys/devices/virtual/dmi/id/bios_version", "1.9.1", "1.7.3", "BIOS 1.7.3, 3 others 1.9.1"),
        (
            KERNEL_MODULES,
            "/sys/module/mlx5_core/version",
            "24.04-0.6.6",
            "23.10-1.1.9",
            "23.10-1.1.9, 3 others 24.04-0.6.6",
        ),
    ],
)
def test_a_deviating_host_is_named_with_the_majority(
    check: Check, path: str, usual: str, odd: str, message: str | None
) -> None:
    ((name, _, outcome, reported),) = wrong(of(check, *fleet(path, [usual, odd, usual, usual])))
    assert (name, outcome) == ("n1", Outcome.WARN)
    assert ", 3 others " in reported if message is None else reported == message


def test_other_machines_may_differ() -> None:
    files = [{PRODUCT: "A", "/sys/devices/system/cpu/online": "0-127"}] * 3
    files += [{PRODUCT: "B", "/sys/devices/system/cpu/online": "0-63"}] * 3
    results = of(CPU_COUNT, *(host(f"n{index}", one) for index, one in enumerate(files)))
    assert outcomes(results) == [Outcome.PASS] * 6


def test_a_lost_dimm_is_seen_and_kernels_that_keep_a_little_more_are_not() -> None:
    def hosts(odd: int) -> list[Host]:
        return fleet("/proc/meminfo", [f"MemTotal:  {kilobytes} kB" for kilobytes in (527_000_000, odd, 527_900_000)])

    assert wrong(of(MEMORY, *hosts(522_000_000))) == []
    ((name, _, outcome, message),) = wrong(of(MEMORY, *hosts(494_000_000)))
    assert (name, outcome, message) == ("n1", Outcome.WARN, "471.1 GiB, median of 3 hosts 502.6")


def loaded(*loads: str, threads: str = "0") -> list[Host]:
    """Hosts of four CPUs; `threads`: 1 where two of these are one core."""
    same = {"/sys/devices/system/cpu/online": "0-3", "/sys/devices/system/cpu/smt/active": threads}
    own = [{"/proc/loadavg": f"{load} 1.00 1.00 1/300 77"} for load in loads]
    return [host(f"n{index}", {**same, **one}) for index, one in enumerate(own)]


def test_a_busy_host_is_named_where_the_others_are_idle() -> None:
    assert [name for name, *_ in wrong(of(LOAD, *loaded("0.10", "9.00", "0.20")))] == ["n1"]
    assert wrong(of(LOAD, *loaded("0.10", "3.90", "0.20"))) == []
    assert outcomes(of(LOAD, *loaded("0.90", "0.10"))) == [Outcome.SKIP] * 2


def test_a_load_that_all_like_hosts_have_is_one_warning() -> None:
    busy = wrong(of(LOAD, *loaded("9.00", "9.20", "8.80", "0.20")))
    message = "all cores are busy, the same as on similar hosts: median 2.23 processes per CPU"
    assert busy == [(f"n{number}", "", Outcome.WARN, message) for number in range(3)]
    assert wrong(of(LOAD, *loaded("3.90", "3.90", "3.90"))) == []
    ((name, _, outcome, message),) = wrong(of(LOAD, *loaded("4.00", "0.10")))
    assert (name, outcome, message) == ("n0", Outcome.WARN, PINNED["1.00 processes per CPU: all"])


@pytest.mark.parametrize(("threads", "count"), [("0", 0), ("1", 3)])
def test_a_process_on_every_core_is_work_for_all_where_cores_have_two_threads(threads: str, count: int) -> None:
    assert len(wrong(of(LOAD, *loaded("2.00", "2.00", "2.00", threads=threads)))) == count


def test_containers_of_one_machine_have_no_load_of_their_own() -> None:
    boots = [{"/proc/sys/kernel/random/boot_id": boot} for boot in ("aa", "aa", "bb", "cc")]
    cpus = {"/sys/devices/system/cpu/online": "0-3", "/proc/loadavg": "9.00 9.00 9.00 9/300 77"}
    hosts = [host(f"n{index}", {**cpus, **boot}) for index, boot in enumerate(boots)]
    assert outcomes(of(LOAD, *hosts)) == [Outcome.SKIP, Outcome.SKIP, Outcome.WARN, Outcome.WARN]


def test_driver_and_firmware_of_a_nic() -> None:
    def reported(version: str, firmware: str) -> dict[str, str]:
        return {"ethtool-i/hsn0": ETHTOOL.format(version, firmware)}

    hosts = [host(f"n{index}", nic("hsn0"), commands=reported("24.04", "28.41.1000")) for index in range(3)]
    odd = host("n3", nic("hsn0"), commands=reported("23.10", "28.39.1002"))
    assert [one[:3] for one in wrong(of(DRIVER, *hosts, odd))] == [("n3", "hsn0", Outcome.WARN)]
    assert wrong(of(NIC_FIRMWARE, *hosts, odd))[0][3] == PINNED["firmware 28.39.1002 (MT_0000000838)"]


def test_a_nic_without_firmware_has_none_to_compare() -> None:
    virtual = host("n1", nic("hsn0"), commands={"ethtool-i/hsn0": sample("host/ethtool-i-veth.txt")})
    assert outcomes(of(NIC_FIRMWARE, virtual)) == [Outcome.SKIP]


def test_a_module_that_is_loaded_elsewhere_is_missed() -> None:
    hosts = fleet("/sys/module/nvidia/version", ["550.54.15"] * 3)
    odd = host("n3", {"/sys/devices/system/cpu/online": "0-3"})
    assert wrong(of(KERNEL_MODULES, *hosts, odd)) == [("n3", "nvidia", Outcome.WARN, "not loaded, 3 others 550.54.15")]


@pytest.mark.parametrize(
    ("usual", "odd", "message"),
    [
        (
            "mpiexec (OpenRTE) 4.1.4\n\nReport bugs\n",
            "mpiexec (OpenRTE) 4.1.2\n",
            "mpiexec (OpenRTE) 4.1.2, 3 others mpiexec",
        ),
        (HYDRA.format("4.2.1"), HYDRA.format("4.1"), "HYDRA build details: Version: 4.1, 3 others"),
        (HYDRA.format("4.2.1"), "mpirun (Open MPI) 5.0.3\n", "mpirun (Open MPI) 5.0.3, 3 others"),
    ],
)
def test_another_mpi_library(usual: str, odd: str, message: str) -> None:
    hosts = [host(f"n{index}", commands={"mpiexec": odd if index == 2 else usual}) for index in range(4)]
    ((name, _, outcome, reported),) = wrong(of(MPI, *hosts))
    assert (name, outcome) == ("n2", Outcome.WARN)
    assert " ".join(reported.split()).startswith(message)


@pytest.mark.parametrize(
    ("text", "count"), [("0", 1), ("0-3", 4), ("0-1,4,6-7", 5), ("", None), ("x", None), ("3-1", 0), (None, None)]
)
def test_how_many_numbers_a_list_stands_for(text: str | None, count: int | None) -> None:
    assert count_listed(text) == count


@pytest.mark.parametrize("check", ALL)
def test_what_cannot_be_seen_is_skipped(check: Check) -> None:
    results = of(check, host("n1"), host("n2"), host("n3"))
    assert outcomes(results) == [Outcome.SKIP] * 3
    assert all(result.message for result in results)
