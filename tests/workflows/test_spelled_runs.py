"""Runs, verdicts and host facts of the same hosts under long and short names."""

from __future__ import annotations

from pathlib import Path

import pytest

import finding_cases
from fablint.errors import UsageError
from fablint.model import ComponentRef, Finding, Run, State
from fablint.model.facts.run_attributes import HostNic, PortCounters
from fablint.simulate import Fault, Noise, SimulatedFabric, SimulatedRow, fat_tree
from fablint.workflows import analysis
from fact_cases import with_facts

TREE = fat_tree(4, 2)


def measured(seed: int, domain: str = "") -> Run:
    slow = Fault(ComponentRef.of("host", "h03"), bandwidth_factor=0.7)
    run = SimulatedFabric(TREE, [slow], Noise(spike_share=0.0), seed=seed).measure(
        None, [SimulatedRow("bandwidth", (1 << 20,))]
    )
    return run.renamed({host: f"{host}{domain}" for host in run.hosts})


@pytest.mark.parametrize(("old", "new"), [("", ".hpc.example"), (".hpc.example.", ""), (".HPC", ".hpc.example")])
def test_runs_under_other_names_are_compared(old: str, new: str) -> None:
    changes = analysis.compare_runs(measured(1, old), measured(2, new), None, 0.03)
    assert (changes.hosts_compared, changes.only_old, changes.only_new) == (16, (), ())
    assert [(one.kind, one.finding.hosts) for one in changes.findings] == [("unchanged", (f"h03{new}",))]


def test_hosts_of_two_domains_are_not_compared() -> None:
    with pytest.raises(UsageError, match="no host in common"):
        analysis.compare_runs(measured(1, ".a.example"), measured(2, ".b.example"), None, 0.03)


@pytest.mark.parametrize("spelled", ["h03", "h03.hpc.example", "H03.hpc"])
def test_a_loopback_test_of_a_host_under_another_name_counts(spelled: str) -> None:
    run = measured(1, ".hpc.example")
    loopback = finding_cases.finding(State.OK, "nic", f"{spelled}/hsn0", evidence="loopback")

    def fault(others: list[Finding]) -> Finding:
        verdict = analysis.diagnose(run, TREE.topology, others).verdict
        return next(one for one in verdict.findings if one.state is State.FAULT)

    (named,) = analysis.named_as(run, [loopback])
    assert named.hosts == ("h03.hpc.example",)
    assert fault([loopback]) == fault([named])
    assert fault([]).hosts == ("h03.hpc.example",)


def test_what_a_run_has_by_host_is_renamed() -> None:
    run = measured(1)
    attributes = {
        "nics": {"h03": [{"name": "hsn0"}]},
        "counters": {"before": {"h03": {"hsn0": {"rx": 1}}}, "after": {}},
        "lost": [{"rank": 3, "host": "h03"}],
    }
    renamed = Run(Path("a.run"), with_facts(run, **attributes).facts, run.rows).renamed({"h03": "h03.site"})
    assert renamed.facts.nics == {"h03.site": [HostNic("hsn0")]}
    assert renamed.facts.counters == PortCounters({"h03.site": {"hsn0": {"rx": 1}}}, {})
    assert [(entry.rank, entry.host) for entry in renamed.facts.lost] == [(3, "h03.site")]
    assert renamed.hosts[3] == "h03.site"
