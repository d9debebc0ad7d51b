"""A run beside the thresholds of a site."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import finding_cases
from fablint.analyse import diagnose
from fablint.analyse.other_questions.missed_thresholds import compare, with_comparison
from fablint.model import Coverage, Diagnosis, Finding, Row, Run, Scope, State, Switch, Topology, Verdict
from fablint.model.limits.thresholds import Comparison, Threshold
from fablint.simulate import Fault, Noise, SimulatedFabric, SimulatedRow, fat_tree as simulated_fat_tree
from fablint.text.evidence_sentences import sentences
from fact_cases import row_facts, run_facts, with_facts
from finding_cases import ref, texts
from pinned import pinned_by

PINNED = pinned_by("analyse.toml", __file__)

FABRIC = simulated_fat_tree(4, 3)  # 4 pods of 4 switches of 4 hosts
SILENT = Noise(scale=0.0, spike_share=0.0, host_spread=0.0, link_spread=0.0, message_scale=0.0)
BYTES = 1 << 20


def threshold(scope: Scope | None, value: float, tolerance: float = 0.1, kernel: str = "bandwidth", size: int = BYTES):
    if kernel.endswith("bandwidth"):
        return Threshold(scope, kernel, size, "bandwidth", value, value * (1 - tolerance), None, f"site.toml: {scope}")
    return Threshold(scope, kernel, size, "latency", value, None, value * (1 + tolerance), f"site.toml: {scope}")


def measured(*faults: Fault, kernels: tuple[str, ...] = ("latency", "bandwidth"), noise: Noise = SILENT) -> Run:
    rows = tuple(SimulatedRow(kernel, (8,) if kernel == "latency" else (BYTES,)) for kernel in kernels)
    return SimulatedFabric(FABRIC, faults, noise, seed=1).measure(None, rows)


def blank(*findings: Finding, topology: Topology | None = FABRIC.topology) -> Diagnosis:
    """A diagnosis that says no more than that."""
    word, code = ("fault", 1) if any(finding.state is State.FAULT for finding in findings) else ("pass", 0)
    coverage = Coverage(pairs_planned=1, pairs_measured=1, hosts=64, hosts_judged=64)
    known = {"findings": findings, "coverage": coverage, "complete": word != "incomplete"}
    return Diagnosis(Verdict(verdict=word, exit_code=code, **known), (), topology)


def typical(run: Run, row: str = "bandwidth") -> float:
    """Bytes/s or seconds of a healthy pair."""
    times = run.row(row).observations(run.row(row).sizes[0]).sent
    middle = float(np.nanmedian(times))
    return BYTES / middle if row == "bandwidth" else middle


def test_what_is_promised_is_met():
    run = measured()
    found = compare(run, [threshold(None, typical(run), 0.2)], blank())
    assert [(one.scope, one.pairs, one.outside, one.verdict) for one in found.compared] == [
        (Scope.EDGE, 64 * 3, 0, "met"),
        (Scope.LOCAL, 64 * 12, 0, "met"),
        (Scope.GLOBAL, 64 * 48, 0, "met"),
    ]
    assert (found.findings, found.notes) == ((), ())
    assert all(one.least <= one.median <= one.most for one in found.compared)
    assert found.compared[0].facts()["threshold"]["scope"] == "any"
    assert with_comparison(blank(), found).verdict.verdict == "pass"


def test_a_threshold_of_the_scope_comes_before_that_of_any():
    run = measured()
    figure = typical(run)
    found = compare(run, [threshold(None, figure), threshold(Scope.EDGE, 0.5 * figure)], blank())
    assert {one.scope: one.threshold.scope for one in found.compared} == {
        Scope.EDGE: Scope.EDGE,
        Scope.LOCAL: None,
        Scope.GLOBAL: None,
    }


def test_what_was_not_measured_is_said():
    run = measured(kernels=("latency",))
    found = compare(run, [threshold(Scope.EDGE, 1e9), threshold(Scope.EDGE, 1.0, kernel="latency", size=16)], blank())
    assert found.compared == ()
    assert [note.partition(" (")[2] for note in texts(found.notes)] == [
        PINNED["edge bandwidth 1 MiB)"],
        PINNED["edge latency 16 B): no such"],
    ]


@pytest.mark.parametrize(("side", "direction"), [("tx", "tx"), ("rx", "rx"), ("both", "both")])
def test_a_host_that_misses_it_with_most_of_its_partners_is_at_fault(side, direction):
    run = measured(Fault(ref("host", "h05"), bandwidth_factor=0.5, direction=side))
    found = compare(run, [threshold(None, typical(run), 0.2)], blank())
    (finding,) = found.findings
    assert (finding.state, finding.component, finding.name) == (State.FAULT, "host", "h05")
    assert finding.direction == direction
    assert finding.effect == pytest.approx(-0.5, abs=0.1)
    assert "63 of 63 partners" in sentences(finding.evidence)
    assert "site.toml: None" in sentences(finding.evidence)
    judged = with_comparison(blank(), found)
    assert (judged.verdict.verdict, judged.verdict.exit_code) == ("fault", 1)


def test_two_hosts_do_not_make_the_others_faulty():
    faults = [Fault(ref("host", name), bandwidth_factor=0.5) for name in (FABRIC.hosts[2], FABRIC.hosts[3])]
    run = measured(*faults)
    found = compare(run, [threshold(None, typical(run), 0.2)], blank())
    assert sorted(finding.name for finding in found.findings) == sorted(FABRIC.hosts[2:4])


def test_what_the_diagnosis_names_is_not_named_again():
    run = measured(Fault(ref("host", FABRIC.hosts[5]), bandwidth_factor=0.5), noise=Noise(spike_share=0.0))
    known = diagnose(run, FABRIC.topology)
    assert [finding.name for finding in known.verdict.findings if finding.state is State.FAULT] == [FABRIC.hosts[5]]
    found = compare(run, [threshold(None, typical(run), 0.2)], known)
    assert sum(one.outside for one in found.compared) == 2 * 63
    assert found.findings == ()
    suspect = finding_cases.finding(State.SUSPECT, "host", FABRIC.hosts[5])
    again = with_comparison(blank(suspect), compare(run, [threshold(None, typical(run), 0.2)], blank(suspect)))
    assert [(finding.name, finding.state) for finding in again.verdict.findings] == [(FABRIC.hosts[5], State.FAULT)]


def test_a_single_pair_is_a_suspect_route():
    run = measured()
    (row,) = (row for row in run.rows if row.kernel == "bandwidth")
    times = np.array(row.arrays["time_median"])
    times[0, 2, 9, 0] *= 2
    slow = replace(run, rows=(replace(row, arrays={**row.arrays, "time_median": times}),))
    found = compare(slow, [threshold(None, typical(run), 0.2)], blank())
    (finding,) = found.findings
    assert (finding.state, finding.component) == (State.SUSPECT, "route")
    assert finding.name == f"{run.hosts[2]}>{run.hosts[9]}"
    judged = with_comparison(blank(), found)
    assert (judged.verdict.verdict, judged.verdict.exit_code) == ("incomplete", 3)
    reported = finding_cases.finding(State.SUSPECT, "route", f"{run.hosts[9]}>{run.hosts[2]}")
    assert compare(slow, [threshold(None, typical(run), 0.2)], blank(reported)).findings == ()


def test_a_fabric_that_misses_it_as_a_whole_reports_no_host():
    run = measured()
    found = compare(run, [threshold(Scope.GLOBAL, 2 * typical(run))], blank())
    (finding,) = found.findings
    assert (finding.state, finding.component, finding.name) == (State.FAULT, "config", "global bandwidth 1 MiB")
    assert "3072 of 3072 global pairs" in sentences(finding.evidence)
    every = compare(run, [threshold(None, 2 * typical(run))], blank())
    assert {finding.component for finding in every.findings} == {"config"}


def test_parts_between_switches_keep_their_pairs():
    cable = FABRIC.topology.cables[0]
    run = measured(Fault(ref("link", cable.a, cable.b), bandwidth_factor=0.5))
    reported = finding_cases.finding(State.FAULT, "link", f"{cable.a}>{cable.b}")
    found = compare(run, [threshold(None, typical(run), 0.2)], blank(reported))
    assert found.findings == ()
    assert "which may explain them" in texts(found.notes)[0]


def test_many_routes_are_counted():
    run = measured()
    (row,) = (row for row in run.rows if row.kernel == "bandwidth")
    times = np.array(row.arrays["time_median"])
    for rank in range(10):
        times[0, rank, 63 - rank, 0] *= 2
        times[0, 63 - rank, rank, 0] *= 3  # both directions of a pair are one route
    slow = replace(run, rows=(replace(row, arrays={**row.arrays, "time_median": times}),))
    found = compare(slow, [threshold(None, typical(run), 0.2)], blank())
    assert len(found.findings) == 8
    assert all(finding.name > "h1" and finding.effect == pytest.approx(-2 / 3, abs=0.01) for finding in found.findings)
    assert texts(found.notes) == [PINNED["bandwidth 1 MiB: 2 more pairs"]]


def list_run(cells: dict[tuple[int, int], float], hosts: list[str], name: str = "edge-latency") -> Run:
    """One round for each cell, of a row of latencies."""
    n = len(hosts)
    dst = np.full((n, len(cells)), -1, dtype=np.int32)
    times = np.full((n, len(cells), 1), np.nan, dtype=np.float32)
    for column, ((src, to), value) in enumerate(cells.items()):
        dst[src, column], times[src, column, 0] = to, value
    attributes = {
        "kernel": "latency",
        "layout": "list",
        "pattern": "rounds",
        "state": "complete",
        "quantity": "latency",
    }
    row = Row(name, row_facts(attributes), {"size": np.array([8]), "dst": dst, "time_median": times})
    root = {
        "state": "complete",
        "ranks": n,
        "hosts": sorted(set(hosts)),
        "rank_host": [sorted(set(hosts)).index(h) for h in hosts],
    }
    return Run(None, run_facts(root), (row,))


def test_few_partners_lead_to_no_detection():
    hosts = ["a", "b", "c"]
    topology = Topology({"s": Switch("s", "g")}, dict.fromkeys(hosts, "s"))
    cells = {(0, 1): 3e-6, (1, 0): 3e-6, (0, 2): 3e-6, (2, 0): 3e-6, (1, 2): 1e-6, (2, 1): 1e-6}
    limit = [threshold(Scope.EDGE, 1e-6, kernel="latency", size=8)]
    found = compare(list_run(cells, hosts), limit, blank(topology=topology))
    assert [(finding.state, finding.component) for finding in found.findings] == [(State.FAULT, "config")]
    cells = {**cells, (0, 2): 1e-6, (2, 0): 1e-6}
    found = compare(list_run(cells, hosts), limit, blank(topology=topology))
    assert [(finding.state, finding.name) for finding in found.findings] == [(State.SUSPECT, "a>b")]


@pytest.mark.parametrize("slow", [range(8), [5]])
def test_hosts_with_few_partners_are_not_faulty_for_a_slow_scope(slow: Sequence[int]) -> None:
    """Two groups of two switches with two hosts each, measured on the switch and within the group."""
    hosts = [f"h{at}" for at in range(8)]
    topology = Topology(
        {f"s{at}": Switch(f"s{at}", f"g{at // 2}") for at in range(4)}, {h: f"s{at // 2}" for at, h in enumerate(hosts)}
    )
    pairs = [(a, b) for a in range(8) for b in range(8) if a != b and a // 4 == b // 4]
    run = list_run({pair: 3e-6 if set(pair) & set(slow) else 1e-6 for pair in pairs}, hosts)
    found = compare(run, [threshold(None, 1e-6, kernel="latency", size=8)], blank(topology=topology)).findings
    scopes = [("config", "edge latency 8 B"), ("config", "local latency 8 B")]
    assert [(one.component, one.name) for one in found] == ([("host", "h5")] if len(slow) == 1 else scopes)


def test_neighbours_on_a_host_are_that_host():
    found = compare(
        list_run({(0, 1): 3e-6, (2, 3): 1e-6}, ["a", "a", "b", "b"], "intra-node-latency"),
        [threshold(Scope.INTRA_NODE, 1e-6, kernel="latency", size=8)],
        blank(topology=None),
    )
    assert [(finding.state, finding.component, finding.name) for finding in found.findings] == [
        (State.SUSPECT, "host", "a")
    ]


@pytest.mark.parametrize("purpose", ["rate_probe", "bisection"])
def test_rate_probes_and_rows_that_share_the_bottleneck_are_not_compared(purpose):
    run = list_run({(0, 1): 3e-6}, ["a", "b"])
    run = replace(run, rows=tuple(with_facts(row, purpose=purpose) for row in run.rows))
    found = compare(run, [threshold(None, 1e-6, kernel="latency", size=8)], blank(topology=None))
    assert found.compared == ()
    assert len(found.notes) == 1


def test_without_thresholds_nothing_is_compared():
    assert compare(measured(), [], blank()) == Comparison()
