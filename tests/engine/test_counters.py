"""NICs, their counters around each row, ranks bound near them: the real engine on copies of other machines' sysfs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fake_sysfs import FakeSysfs
from real_mpi import Mpi, one_line

from fablint.analyse import diagnose
from fablint.model import Run
from fablint.model.facts.run_attributes import Binding, HostNic, PortCounters
from fablint.store import read_run
from finding_cases import note_texts
from pinned import pinned_by

PINNED = pinned_by("engine.toml", __file__)

FAST = ("--sizes", "8", "--samples", "3", "--warmup", "1", "--batch", "1")
SENT = "devices/pci0000:20/0000:21:00.0/telemetry/hni_tx_ok_opt"  # of cxi0


def measured(mpi: Mpi, path: Path, ranks: int, *arguments: str | Path) -> Run:
    ended = mpi.run(ranks, *arguments, "-o", path)
    assert ended.status == 0, ended.errors
    return read_run(path)


def only_host(by_host: dict[str, Any]) -> Any:
    (of_host,) = by_host.values()
    return of_host


def near(sysfs: FakeSysfs, nic: int, cpus: str) -> None:
    card = ("devices/pci0000:20/0000:21:00.0", "devices/pci0000:a0/0000:a1:00.0")[nic]
    sysfs.set(f"{card}/local_cpulist", cpus)


@pytest.fixture
def slingshot(tmp_path: Path) -> FakeSysfs:
    return FakeSysfs(tmp_path / "sys", "slingshot-2nics")


@pytest.fixture
def allowed(mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """CPUs that each of two ranks may use, when the launcher binds no rank."""
    for variable in ("OMPI_MCA_hwloc_base_binding_policy", "PRTE_MCA_hwloc_default_binding_policy"):
        monkeypatch.setenv(variable, "none")
    run = measured(mpi, tmp_path / "free.run", 2, "latency", *FAST)
    first, last = run.facts.rank_cores
    assert first == last, "the launcher bound the ranks: they have nothing to share"
    start, _, end = first.partition("-")
    cpus = list(range(int(start), int(end or start) + 1))
    if len(cpus) < 2:
        pytest.skip("one CPU: nothing to share")
    return cpus


# ------------------------------------------------------------------------------------------------ counters


def test_counters_are_read_before_and_after_each_row(mpi: Mpi, tmp_path: Path, slingshot: FakeSysfs) -> None:
    long = ("--budget", "0.3", "--sizes", "8")
    plan = tmp_path / "plan.txt"
    plan.write_text(f"latency {' '.join(long)}\nbandwidth {' '.join(long)}\n")
    with slingshot.counting(SENT, 1000):
        run = measured(mpi, tmp_path / "a.run", 2, "--plan", plan, "--counters", "--sysfs", slingshot.root)
    seen = [only_host(run.facts.counters.before)["cxi0"]["hni_tx_ok_opt"]]
    for row in run.rows:
        for table in (row.facts.result.counters.before, row.facts.result.counters.after):
            nics = only_host(table)
            assert set(nics) == {"cxi0", "cxi1", "eno1"}
            assert nics["cxi1"]["hni_pcs_corrected_cw"] == 5000
            seen.append(nics["cxi0"]["hni_tx_ok_opt"])
    seen.append(only_host(run.facts.counters.after)["cxi0"]["hni_tx_ok_opt"])
    assert seen == sorted(seen)
    assert seen[1] < seen[2], "nothing was counted during the first row"
    assert seen[3] < seen[4], "nothing was counted during the second row"


def test_without_the_option_rows_hold_no_counters(mpi: Mpi, tmp_path: Path, slingshot: FakeSysfs) -> None:
    run = measured(mpi, tmp_path / "a.run", 2, "latency", *FAST, "--sysfs", slingshot.root)
    assert run.rows[0].facts.result.counters == PortCounters()
    assert only_host(run.facts.counters.after)["cxi0"]["carrier_changes"] == 2


@pytest.mark.parametrize(
    ("fixture", "nic", "counters"),
    [
        ("slingshot-2nics", "cxi1", {"hni_rx_ok_opt": 115940582, "rx_errors": 0}),
        ("infiniband-2rails", "mlx5_0/1", {"port_xmit_data": 123456, "packet_seq_err": 0, "rx_bytes": 4096}),
        ("ethernet-vm", "eth0", {"carrier_changes": 2, "rx_errors": 0}),
        ("namespace-veth", "vb", {"carrier_changes": 2}),
    ],
)
def test_every_kind_of_port_has_counters(
    mpi: Mpi, tmp_path: Path, fixture: str, nic: str, counters: dict[str, int]
) -> None:
    sysfs = FakeSysfs(tmp_path / "sys", fixture)
    run = measured(mpi, tmp_path / "a.run", 2, "latency", *FAST, "--counters", "--sysfs", sysfs.root)
    row = run.rows[0].facts.result.counters
    assert row.before == row.after
    assert counters.items() <= only_host(row.after)[nic].items()


def test_nics_are_recorded_once_each(mpi: Mpi, tmp_path: Path, slingshot: FakeSysfs) -> None:
    run = measured(mpi, tmp_path / "a.run", 2, "latency", *FAST, "--sysfs", slingshot.root)
    nics = {nic.name: nic for nic in only_host(run.facts.nics)}
    assert set(nics) == {"cxi0", "cxi1", "eno1"}
    assert nics["cxi0"] == HostNic("cxi0", "cxi", "up", 200000, 9000, numa=0, physical=True, netdevs=["hsn0"])
    assert set(run.facts.rank_nic) <= {"cxi0", "cxi1"}
    assert run.facts.launch.binding == Binding()


# ------------------------------------------------------------------------------------------------ binding


def test_ranks_of_a_nic_share_the_cores_near_it(
    mpi: Mpi, tmp_path: Path, slingshot: FakeSysfs, allowed: list[int]
) -> None:
    slingshot.set("class/cxi/cxi1/device/port/link", "down")
    near(slingshot, 0, f"{allowed[0]},{allowed[1]},1000")
    run = measured(mpi, tmp_path / "a.run", 2, "latency", *FAST, "--ranks-per-nic", "2", "--sysfs", slingshot.root)
    assert run.facts.rank_nic == ["cxi0", "cxi0"]
    assert run.facts.rank_cores == [str(allowed[0]), str(allowed[1])]
    assert run.facts.launch.binding == Binding(2, [])


def test_each_rank_is_near_its_own_nic(mpi: Mpi, tmp_path: Path, slingshot: FakeSysfs, allowed: list[int]) -> None:
    near(slingshot, 0, str(allowed[1]))
    near(slingshot, 1, str(allowed[0]))
    run = measured(mpi, tmp_path / "a.run", 2, "latency", *FAST, "--ranks-per-nic", "1", "--sysfs", slingshot.root)
    assert run.facts.rank_nic == ["cxi0", "cxi1"]
    assert run.facts.rank_cores == [str(allowed[1]), str(allowed[0])]


def test_a_nic_whose_cores_are_not_here_leaves_its_ranks_where_they_are(
    mpi: Mpi, tmp_path: Path, slingshot: FakeSysfs, allowed: list[int]
) -> None:
    near(slingshot, 0, str(allowed[0]))
    near(slingshot, 1, "1000-1003")
    run = measured(mpi, tmp_path / "a.run", 2, "latency", *FAST, "--ranks-per-nic", "1", "--sysfs", slingshot.root)
    assert run.facts.rank_nic == ["cxi0", "cxi1"]
    bound, free = run.facts.rank_cores
    assert bound == str(allowed[0])
    assert free != bound
    (note,) = run.facts.launch.binding.notes
    assert PINNED["rank 1 not bound to CPUs"].begins(note)
    assert note in note_texts(diagnose(run).verdict)


def test_too_few_cores_for_the_ranks_are_not_oversubscribed(
    mpi: Mpi, tmp_path: Path, slingshot: FakeSysfs, allowed: list[int]
) -> None:
    for nic in (0, 1):
        near(slingshot, nic, str(allowed[0]))
    run = measured(mpi, tmp_path / "a.run", 2, "latency", *FAST, "--ranks-per-nic", "1", "--sysfs", slingshot.root)
    assert len(set(run.facts.rank_cores)) == 1
    notes = run.facts.launch.binding.notes
    assert PINNED["too few for the 2 ranks"].ends(notes[0])


@pytest.mark.parametrize(
    ("ranks", "per_nic", "message"),
    [
        (3, 2, "3 ranks for 2 NICs (cxi0 cxi1): start 4 ranks on it"),
        (2, 2, "2 ranks for 2 NICs (cxi0 cxi1): start 4 ranks on it, or give --ranks-per-nic 1"),
    ],
)
def test_ranks_that_do_not_fit_the_nics_are_refused(
    mpi: Mpi, tmp_path: Path, slingshot: FakeSysfs, ranks: int, per_nic: int, message: str
) -> None:
    path = tmp_path / "a.run"
    options = ("--ranks-per-nic", str(per_nic), "--sysfs", slingshot.root, "-o", path)
    ended = mpi.run(ranks, "latency", "--pattern", "all-pairs", *FAST, *options)
    assert ended.status == 2
    error = one_line(ended.error_lines)
    assert error.startswith(f"--ranks-per-nic {per_nic}: ")
    assert error.endswith(message)
    assert not path.exists()
