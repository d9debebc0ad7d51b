"""A second population of hosts: one finding, with the recorded fact that separates it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from path_cases import Small

from fablint.analyse import diagnose
from fablint.model import Finding, Run, State
from fablint.text.evidence_sentences import sentences
from fablint.text.notes import note_text
from fact_cases import with_facts

OLDER = range(0, 24, 3)  # one on each switch
SMALL = Small(switches=8, hosts=0.003, slow_hosts=dict.fromkeys(OLDER, 1.25))


def population(host_facts: dict[str, dict[str, str]]) -> Finding:
    verdict = diagnose(SMALL.run(1), SMALL.topology, host_facts=host_facts).verdict
    assert State.FAULT not in {finding.state for finding in verdict.findings}
    (finding,) = [finding for finding in verdict.findings if finding.name.startswith("populations of ")]
    assert finding.state is State.CONFOUNDED
    return finding


def facts(name: str, older: str, newer: str) -> dict[str, dict[str, str]]:
    return {host: {name: older if number in OLDER else newer} for number, host in enumerate(SMALL.names)}


@pytest.mark.parametrize("name", ["NIC firmware", "CPU model", "image"])
def test_the_fact_that_separates_is_named(name: str) -> None:
    assert f"{name} separates them (old)" in sentences(population(facts(name, "old", "new")).evidence)


def test_a_fact_that_all_share_separates_nothing() -> None:
    assert "no recorded fact separates them" in sentences(population(facts("image", "same", "same")).evidence)


def test_a_fact_that_one_host_does_not_give_separates_nothing() -> None:
    known = facts("image", "old", "new")
    del known[SMALL.names[1]]
    assert "no recorded fact separates them" in sentences(population(known).evidence)


def test_kinds_that_differ_by_less_than_the_loss_in_scope_are_a_note() -> None:
    small = replace(SMALL, slow_hosts=dict.fromkeys(OLDER, 1.09))
    verdict = diagnose(small.run(1), small.topology, host_facts=facts("image", "old", "new")).verdict
    assert {finding.state for finding in verdict.findings if finding.component == "host"} == {State.OK}
    (text,) = [note_text(note) for note in verdict.notes if note.kind == "hosts_of_a_kind"]
    assert "image separates them" in text


def recorded(run: Run, speeds: dict[str, int]) -> Run:
    """The run with the speed of the NIC of each host."""
    nics = {host: [{"name": "hsn0", "speed_mbps": speed}] for host, speed in speeds.items()}
    return with_facts(run, nics=nics)


@pytest.mark.parametrize("loss", [1.2, 1.5])
def test_slow_hosts_that_no_recorded_fact_separates_are_slow_one_by_one(loss: float) -> None:
    """A third of the hosts, by the same loss, although all NICs declare the same speed."""
    small = replace(SMALL, slow_hosts=dict.fromkeys(OLDER, loss))
    run = recorded(small.run(1), dict.fromkeys(small.names, 400_000))
    findings = diagnose(run, small.topology).verdict.findings
    assert {host for finding in findings if finding.state is State.FAULT for host in finding.hosts} == {
        small.names[number] for number in OLDER
    }
    separated = diagnose(run, small.topology, host_facts=facts("image", "old", "new")).verdict.findings
    assert State.FAULT not in {finding.state for finding in separated}


def test_more_slow_hosts_than_fast_ones_are_a_population() -> None:
    small = replace(SMALL, slow_hosts=dict.fromkeys((number for number in range(24) if number % 3), 1.4))
    run = recorded(small.run(1), dict.fromkeys(small.names, 400_000))
    assert State.FAULT not in {finding.state for finding in diagnose(run, small.topology).verdict.findings}
