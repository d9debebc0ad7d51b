"""Fleets of benchmarks/generated_fleets, judged by the program: quiet when healthy, the host with the fault named."""

from __future__ import annotations

import ast
import itertools
import json
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
GENERATOR = sorted((ROOT / "benchmarks" / "generated_fleets").glob("*.py"))
sys.path.append(str(ROOT / "benchmarks"))

from generated_fleets.documents import Fleet  # noqa: E402
from generated_fleets.faults import FAULTS, Fault  # noqa: E402
from generated_fleets.machines import MACHINES, SLINGSHOT  # noqa: E402
from generated_fleets.mixes import MIXES, fleet_of  # noqa: E402
from generated_fleets.program import preflight  # noqa: E402
from preflight_faults import fleet_for, judged, wrong  # noqa: E402

from fablint.preflight import Fleet as Judged, Host, judge  # noqa: E402
from fablint.snapshot import load_snapshots, save_snapshots, snapshot_of  # noqa: E402
from fablint.system import System  # noqa: E402

pytestmark = pytest.mark.long  # many generated fleets

# What fleets of two settings are warned of; a class of its own would hide hosts that differ by mistake.
WARNINGS = {
    "MTU 9000 and 1500, 11:9": {"net.link.mtu"},
    "BIOS, 11:9": {"host.bios"},
    "an update in progress, 60:40": {"cxi.fw", "host.driver", "host.kernel", "host.module", "host.nic.fw"},
}
# Of three hosts: one with other cards is not a class of its own yet.
FEW_WARNINGS = {"NDR and HDR cards in one chassis": {"ib.psid"}}
# Faults that were missed once, with the fewest hosts that show them.
FOUND_LATE = [
    ("ethernet", "speed", 8),
    ("ethernet", "no-address", 8),
    ("slingshot", "planes", 3),
    ("roce", "planes", 3),
]


@pytest.mark.parametrize("hosts", [3, 20])
@pytest.mark.parametrize("mix", MIXES)
def test_no_host_of_a_healthy_fleet_is_unfit(mix: str, hosts: int, tmp_path: Path) -> None:
    fitness = judged(tmp_path, fleet_of(mix, hosts, level="full"))
    assert fitness.unfit == {}
    assert {one.check for one in wrong(fitness)} == WARNINGS.get(
        mix, FEW_WARNINGS.get(mix, set()) if hosts == 3 else set()
    )


def needing(fault: Fault) -> str:
    """A machine that can have the fault."""
    return next(name for name, machine in MACHINES.items() if fault.needs(machine))


@pytest.mark.parametrize(
    ("machine", "name", "hosts"), [*((needing(one), one.name, 8) for one in FAULTS.values()), *FOUND_LATE]
)
def test_the_host_with_the_fault_is_named_and_no_other(machine: str, name: str, hosts: int, tmp_path: Path) -> None:
    fault = FAULTS[name]
    fleet = fleet_for(machine, hosts, fault)
    named = {one.host for one in wrong(judged(tmp_path, fleet, fault, hosts - 1))}
    assert named - ({fleet.name(0)} if fault.shared else set()) == {fleet.name(hosts - 1)}


def test_the_program_judges_a_file_of_snapshots(tmp_path: Path) -> None:
    path, fleet = tmp_path / "fleet.json", Fleet(SLINGSHOT, 6, lines=20)
    path.write_text("\n".join(fleet.documents({3: partial(FAULTS["mtu"].apply, fleet, 3)})))
    run = preflight(tmp_path, path)
    assert run.status == 1
    assert {host for host, *_ in run.wrong} == {fleet.name(3)} == run.head["unfit"].keys()
    assert run.peak_bytes > 1 << 20


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
    """Counts calls and not seconds: five times as many hosts may cost a check five times as many."""

    def calls(hosts: int) -> Counter[str]:
        path = tmp_path / f"{hosts}.json"
        path.write_text("\n".join(Fleet(SLINGSHOT, hosts, lines=20, level="full").documents()))
        fleet = Judged([Host(snapshot_of(one)) for one in load_snapshots(path)])
        counts: Counter[str] = Counter()

        def counted(function: Any, groups: Any) -> Iterator[Any]:
            for group in groups:
                made = []
                for check in group:
                    count = itertools.count()
                    sys.setprofile(lambda *_, count=count: next(count) and None)
                    try:
                        made += function([check])
                    finally:
                        sys.setprofile(None)
                    counts[check.id] = next(count)
                yield made

        judge(fleet, each=counted)
        return counts

    calls(10)  # caches are filled
    few, many = calls(20), calls(100)
    assert {check: (few[check], many[check]) for check in many if many[check] > 1.5 * 5 * few[check] + 100} == {}


@pytest.mark.parametrize("module", GENERATOR, ids=lambda path: path.stem)
def test_the_generator_does_not_use_what_it_tests(module: Path) -> None:
    names = {node.module or "" for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.ImportFrom)}
    assert not [name for name in names if name.startswith(("fablint", "preflight_help", "snapshot_trees"))]
