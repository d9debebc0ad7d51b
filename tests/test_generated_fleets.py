"""Fleets of benchmarks/generated_fleets, judged by the program: quiet when healthy, the host with the fault named."""

from __future__ import annotations

import ast
import json
import sys
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GENERATOR = sorted((ROOT / "benchmarks" / "generated_fleets").glob("*.py"))
sys.path.append(str(ROOT / "benchmarks"))

from generated_fleets.documents import Fleet  # noqa: E402
from generated_fleets.faults import FAULTS  # noqa: E402
from generated_fleets.machines import MACHINES, SLINGSHOT  # noqa: E402
from preflight_faults import run_of  # noqa: E402

from fablint.preflight import Fleet as Judged, Host, judge  # noqa: E402
from fablint.snapshot import load_snapshots, save_snapshots, snapshot_of  # noqa: E402
from fablint.system import System  # noqa: E402


@pytest.mark.parametrize("machine", MACHINES)
def test_a_healthy_fleet_is_quiet(machine: str, tmp_path: Path) -> None:
    run = run_of(tmp_path, Fleet(MACHINES[machine], 5, lines=20), None, 0)
    assert (run.status, run.wrong, run.head["unfit"]) == (0, (), {})
    assert run.peak_bytes > 1 << 20


@pytest.mark.parametrize("fault", ["mtu", "nic", "memory", "lldp", "driver", "clock"])
def test_the_host_with_the_fault_is_named_and_no_other(fault: str, tmp_path: Path) -> None:
    fleet = Fleet(SLINGSHOT, 6, lines=20)
    run = run_of(tmp_path, fleet, FAULTS[fault], 3)
    assert {host for host, *_ in run.wrong} == {fleet.name(3)}


def test_several_processes_come_to_the_same_results(tmp_path: Path) -> None:
    path, fleet = tmp_path / "fleet.json", Fleet(SLINGSHOT, 6, lines=20)
    path.write_text("\n".join(fleet.documents({2: partial(FAULTS["mtu"].apply, fleet, 2)})))
    snapshots = [snapshot_of(one) for one in load_snapshots(path)]
    alone = judge(Judged([Host(one) for one in snapshots]))
    assert judge(Judged([Host(one) for one in snapshots]), each=System().forked_map) == alone
    assert alone.unfit.keys() == {fleet.name(2)}


def test_what_is_read_is_saved_again_as_it_was(tmp_path: Path) -> None:
    lines = list(Fleet(SLINGSHOT, 3, lines=20).documents())
    (tmp_path / "a.json").write_text("\n".join(lines))
    save_snapshots(load_snapshots(tmp_path / "a.json"), tmp_path / "b.json.gz")
    assert load_snapshots(tmp_path / "b.json.gz") == [json.loads(line) for line in lines]


def test_no_check_compares_each_host_with_each_other(tmp_path: Path) -> None:
    """Counts calls and not seconds: five times as many hosts may cost five times as many."""

    def calls(hosts: int) -> int:
        path = tmp_path / f"{hosts}.json"
        path.write_text("\n".join(Fleet(SLINGSHOT, hosts, lines=20).documents()))
        judged = Judged([Host(snapshot_of(one)) for one in load_snapshots(path)])
        count = 0

        def counted(*_: object) -> None:
            nonlocal count
            count += 1

        sys.setprofile(counted)
        try:
            judge(judged)
        finally:
            sys.setprofile(None)
        return count

    calls(10)  # caches are filled
    assert calls(100) < 1.2 * 5 * calls(20)


@pytest.mark.parametrize("module", GENERATOR, ids=lambda path: path.stem)
def test_the_generator_does_not_use_what_it_tests(module: Path) -> None:
    names = {node.module or "" for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.ImportFrom)}
    assert not [name for name in names if name.startswith(("fablint", "preflight_help", "snapshot_trees"))]
