"""The probe of memory and cores, as hosts run it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fablint.snapshot.agent import speed_probe
from fablint.snapshot.agent.machine import Machine

MEMINFO = "MemTotal:  4194304 kB\nMemAvailable:  2097152 kB\n"


def tree(root: Path, files: dict[str, str]) -> Machine:
    for path, text in files.items():
        at = root / path.lstrip("/")
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_text(text)
    return Machine(str(root), 20.0)


def test_this_machine_copies_and_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed_probe, "DURATION_S", 0.1)
    said: dict[str, Any] = {}
    speed_probe.add_probe(Machine("/", 60.0), said)
    found = json.loads(said["probe"]["output"])
    assert found["cores"] == len(speed_probe.cores(Machine("/", 60.0)))
    for half in ("copy", "hash"):
        assert found[half]["rate"] > 0
        assert 0 < found[half]["share"] <= 1
        assert found[half]["spread"] >= 0
    assert found["others"] >= 0


def test_without_ctypes_one_core_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed_probe, "DURATION_S", 0.1)
    monkeypatch.setattr(speed_probe, "libc_copy", lambda: None)
    found = speed_probe.probe(Machine("/", 60.0))
    assert found["with"].startswith("memoryview, ")
    assert found["copy"]["rate"] > 0


def test_rates_of_cores_add_up_and_the_slowest_is_named() -> None:
    """Three cores, of which one does half as much, for a second each; the work of one piece is 100 bytes."""
    fast = [(n / 10, (n + 1) / 10) for n in range(10)]
    slow = [(n / 5, (n + 1) / 5) for n in range(5)]
    found = speed_probe.rates({0: fast, 1: fast, 7: slow}, 100)
    assert found["rate"] == 2500
    assert found["spread"] == pytest.approx(0, abs=1e-4)
    assert (found["slowest"], found["share"]) == (7, 0.5)


def test_a_slice_in_which_less_was_done_is_spread() -> None:
    stalled = [(n / 10, (n + 1) / 10) for n in range(5)] + [(0.5, 0.9), (0.9, 1.0)]
    assert speed_probe.rates({0: stalled}, 100)["spread"] > 0.5


def test_cores_that_never_ran_together_have_no_rate() -> None:
    with pytest.raises(RuntimeError, match="same time"):
        speed_probe.rates({0: [(0.0, 1.0)], 1: [(2.0, 3.0)]}, 100)


def test_a_job_may_use_less_memory_than_the_host_has(tmp_path: Path) -> None:
    assert speed_probe.free_memory(tree(tmp_path, {"/proc/meminfo": MEMINFO})) == 2 << 30
    second = {"/proc/self/cgroup": "0::/slurm/job_7\n", "/sys/fs/cgroup/slurm/job_7/memory.max": "max\n"}
    assert speed_probe.free_memory(tree(tmp_path, second)) == 2 << 30
    assert speed_probe.free_memory(tree(tmp_path, {"/sys/fs/cgroup/slurm/memory.max": "1048576\n"})) == 1 << 20
    first = {"/proc/self/cgroup": "4:memory:/a\n", "/sys/fs/cgroup/memory/a/memory.limit_in_bytes": "4096\n"}
    assert speed_probe.free_memory(tree(tmp_path, first)) == 4096


def test_where_memory_is_short_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed_probe, "free_memory", lambda _: 100 << 20)
    said: dict[str, Any] = {}
    speed_probe.add_probe(Machine("/", 60.0), said)
    assert said == {"probe": {"error": "too little free memory for a measurement"}}


def test_without_time_nothing_is_measured() -> None:
    said: dict[str, Any] = {}
    speed_probe.add_probe(Machine("/", 1.0), said)
    assert said == {"probe": {"error": "no time was left for it"}}


def test_one_cpu_of_each_core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
    files = {at.format(cpu): f"{cpu % 2},{cpu % 2 + 2}" for cpu in range(4)}
    monkeypatch.setattr(speed_probe.os, "sched_getaffinity", lambda _: {1, 2, 3, 9})
    assert speed_probe.cores(tree(tmp_path, files)) == [1, 2, 9]


def test_busy_seconds_count_what_the_hypervisor_took(tmp_path: Path) -> None:
    ticks = speed_probe.os.sysconf("SC_CLK_TCK")
    line = f"cpu  {ticks} 0 {ticks} {90 * ticks} {5 * ticks} 0 0 {3 * ticks} 0 0\n"
    assert speed_probe.busy_seconds(tree(tmp_path, {"/proc/stat": line})) == 5.0
    with pytest.raises(ValueError, match="stat"):
        speed_probe.busy_seconds(tree(tmp_path, {"/proc/stat": "intr 0"}))
