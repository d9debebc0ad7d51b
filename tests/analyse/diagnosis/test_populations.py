"""A second population of hosts: one finding, with the recorded fact that separates it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from path_cases import Small

from fablint.analyse import diagnose
from fablint.model import Finding, State
from fablint.text.evidence_sentences import sentences
from fablint.text.notes import note_text

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
