"""Populations of hosts as findings: one for a whole population, with the fact that separates it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from fablint.analyse.explain.view import ViewResult
from fablint.analyse.findings.detection_text import relative, seen_in
from fablint.analyse.null_model.host_populations import Populations
from fablint.analyse.null_model.recorded_facts import Facts, separating
from fablint.analyse.settings import Settings
from fablint.model import ComponentRef, Finding, Note, Placement, State
from fablint.model.names import fold
from fablint.text import actions as advise, evidence as seen, notes as noted

Cases = Sequence[tuple[ViewResult, Populations]]  # views with the same members of populations


def populations(
    views: Sequence[ViewResult], placement: Placement, facts: Facts, settings: Settings
) -> tuple[list[Finding], list[Note]]:
    """Return one finding for each division of the hosts into populations, and notes on populations that hardly differ.

    The majority does not decide which population is the healthy one: the finding is CONFOUNDED. Populations that differ
    by no more than the loss in scope are each judged within themselves.
    """
    by_members: dict[tuple[int, ...], list[tuple[ViewResult, Populations]]] = defaultdict(list)
    for view in views:
        shared = placement.shared_machines and view.quantity == "latency"  # hosts take turns on the CPUs of one machine
        for population in () if shared else view.populations:
            if population is not None:
                by_members[tuple(population.label.tolist())].append((view, population))
    findings, notes = [], []
    for cases in by_members.values():
        if all(division.is_within(settings.log_loss_in_scope) for _, division in cases):
            notes.append(_note(cases, placement, facts))
        else:
            findings.append(_finding(cases, placement, facts))
    return findings, notes


def _note(cases: Cases, placement: Placement, facts: Facts) -> Note:
    """Return the note on populations that differ by less than the loss in scope."""
    view, note = max(cases, key=lambda case: float(case[1].effect.max()))
    fact = separating(note, facts)
    return noted.hosts_of_a_kind(
        hosts=tuple(placement.hosts[host] for host in np.flatnonzero(note.label > 0)),
        quantity=view.quantity,
        effect=relative(float(note.effect.max()), view.quantity),
        fact=fact.name if fact else None,
    )


def _finding(cases: Cases, placement: Placement, facts: Facts) -> Finding:
    view, division = max(cases, key=lambda case: (case[0].one_way, float(case[1].effect.max())))
    hosts = [[placement.hosts[host] for host in division.members(number)] for number in range(division.count)]
    names = [fold(members) for members in hosts]
    slower = range(1, division.count)
    fact = separating(division, facts)
    evidence = (
        seen_in(
            view,
            seen.populations(
                counts=tuple(len(hosts[number]) for number in slower),
                names=tuple(names[1:]),
                effects=tuple(relative(float(division.effect[number]), view.quantity) for number in slower),
                others=len(hosts[0]),
                usual=names[0],
            ),
        ),
        fact.evidence if fact else seen.no_separating_fact(),
        seen.undecided(),
    )
    common: dict[str, Any] = {
        "quantity": view.quantity,
        "effect": relative(float(division.effect.max()), view.quantity),
        "next_step": advise.compare_hosts(tuple(names)),
    }
    components = (ComponentRef.of("config", *hosts[1:], title="populations"),)
    other = (ComponentRef.of("config", hosts[0], title="speed above the design"),)
    return Finding(state=State.CONFOUNDED, components=components, evidence=evidence, ambiguity_group=other, **common)
