"""CPUs that a job gets: time that the hypervisor took, CPUs that it may use."""

from __future__ import annotations

import pytest
from preflight_help import host, of, outcomes, wrong

from fablint.model.preflight_results import Outcome
from fablint.preflight.checks.host.cpu_time import CPU_SET, CPU_STEAL
from fablint.preflight.host import Host
from fablint.snapshot.agent.tuning import cpus_allowed, first_line


def timed(first: int, last: int, ticks: int = 10_000, idle: int = 1_000_000) -> Host:
    """A host that had `first` stolen ticks, and `last` some seconds and `ticks` later."""
    line = "cpu  5000 10 3000 {} 100 0 20 {} 0 0"
    text = line.format(idle, first) + "\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 1"
    later = first_line(line.format(idle + ticks - (last - first), last) + "\ncpu0 1")
    return host("n1", {"/proc/stat": str(first_line(text))}, later={"/proc/stat": later})


@pytest.mark.parametrize(
    ("first", "last", "message"),
    [
        (0, 0, ""),
        (0, 90, ""),
        (0, 2000, "the hypervisor takes 20 % of the time of the CPUs"),
        (300_000, 300_000, "the hypervisor took 23 % of the time of the CPUs since boot"),
    ],
)
def test_stolen_time(first: int, last: int, message: str) -> None:
    assert [said for *_, said in wrong(of(CPU_STEAL, timed(first, last)))] == [message] * bool(message)


@pytest.mark.parametrize("text", ["", "cpu  1 2 3", "intr 5 6", "cpu  1 2 3 4 5 6 7 x"])
def test_old_kernels_and_other_texts_are_skipped(text: str) -> None:
    assert outcomes(of(CPU_STEAL, host("n1", {"/proc/stat": text}))) == [Outcome.SKIP]


def usable(name: str, cpus: str) -> Host:
    status = cpus_allowed(f"Name:\tpython3\nCpus_allowed:\tffff\nCpus_allowed_list:\t{cpus}\nMems_allowed:\t1\n")
    return host(name, {"/proc/self/status": status, "/sys/devices/system/cpu/online": "0-127"})


def test_a_host_whose_cpuset_is_smaller() -> None:
    hosts = [usable(f"n{number}", "0-127") for number in range(4)]
    assert wrong(of(CPU_SET, *hosts)) == []
    assert wrong(of(CPU_SET, *hosts, usable("odd", "0-15,64-79"))) == [
        ("odd", "", Outcome.WARN, "32 CPUs usable, 4 others 128")
    ]
    assert wrong(of(CPU_SET, *(usable(f"n{number}", "0-15") for number in range(4)))) == [], "a job of 16 CPUs each"
