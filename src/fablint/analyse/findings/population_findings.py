"""Populations of hosts as findings: one for a whole population, with the fact that separates it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fablint.analyse.detect.view import ViewResult
from fablint.analyse.findings.detection_text import relative, seen_in
from fablint.analyse.fit.host_populations import Populations
from fablint.analyse.settings import Settings
from fablint.model import ComponentRef, EvidenceRecord, Finding, Note, Placement, Run, State
from fablint.model.facts.run_attributes import HostNic
from fablint.model.names import fold
from fablint.text import actions as advise, evidence as seen, notes as noted

Facts = Mapping[str, Sequence[str]]  # what is recorded of each host, by the name of the fact
HostFacts = Mapping[str, Mapping[str, str]]  # by host and by name of the fact
MOST_VALUES = 3  # of a fact that a finding spells out


Cases = Sequence[tuple[ViewResult, Populations]]  # views with the same members of populations


def populations(
    run: Run, views: Sequence[ViewResult], placement: Placement, host_facts: HostFacts, settings: Settings
) -> tuple[list[Finding], list[Note]]:
    """Return one finding for each division of the hosts into populations, and notes on populations that hardly differ.

    The majority does not decide which population is the healthy one: the finding is CONFOUNDED. Populations that differ
    by no more than the loss in scope are each judged within themselves.
    """
    by_members: dict[tuple[int, ...], list[tuple[ViewResult, Populations]]] = defaultdict(list)
    for view in views:
        shared = placement.shared_machines and view.quantity == "latency"  # hosts take turns on the CPUs of one machine
        for found in () if shared else view.populations:
            if found is not None:
                by_members[tuple(found.label.tolist())].append((view, found))
    facts = facts_of(run, placement, host_facts)
    findings, notes = [], []
    for cases in by_members.values():
        if all(found.is_within(settings.log_loss_in_scope) for _, found in cases):
            notes.append(_note(cases, placement, facts))
        else:
            findings.append(_finding(cases, placement, facts))
    return findings, notes


def _note(cases: Cases, placement: Placement, facts: Facts) -> Note:
    """Return the note on populations that differ by less than the loss in scope."""
    view, found = max(cases, key=lambda case: float(case[1].effect.max()))
    fact = separating(found, facts)
    return noted.hosts_of_a_kind(
        hosts=tuple(placement.hosts[host] for host in np.flatnonzero(found.label > 0)),
        quantity=view.quantity,
        effect=relative(float(found.effect.max()), view.quantity),
        fact=fact.name if fact else None,
    )


def facts_of(run: Run, placement: Placement, host_facts: HostFacts) -> Facts:
    """What the run records of its hosts: one word per host, empty where it says nothing; the place of a host last."""
    nics = [run.facts.nics.get(host, ()) for host in placement.hosts]
    cores = dict(zip(run.rank_host, run.facts.rank_cores, strict=False))
    facts = {
        "NIC speed": ["/".join(sorted({_speed(nic) for nic in own})) for own in nics],
        "NIC type": ["/".join(sorted({nic.kind for nic in own})) for own in nics],
        "MTU": ["/".join(sorted({"" if nic.mtu is None else str(nic.mtu) for nic in own})) for own in nics],
        "CPUs of a rank": [str(cores.get(host, "")) for host in placement.hosts],
        **_of_snapshots(host_facts, placement),
        "group": ["/".join(names) for names in placement.host_groups],
        "switch": ["/".join(names) for names in placement.host_switches],
    }
    return {name: values for name, values in facts.items() if any(values)}


def _of_snapshots(host_facts: HostFacts, placement: Placement) -> Facts:
    """The same of what the hosts said before they were measured: firmware, driver, CPU model, image."""
    names = dict.fromkeys(name for own in host_facts.values() for name in own)
    return {name: [host_facts.get(host, {}).get(name, "") for host in placement.hosts] for name in names}


def _speed(nic: HostNic) -> str:
    return f"{nic.speed_mbps} Mbit/s" if nic.speed_mbps else ""


def _finding(cases: Cases, placement: Placement, facts: Facts) -> Finding:
    view, found = max(cases, key=lambda case: (case[0].one_way, float(case[1].effect.max())))
    hosts = [[placement.hosts[host] for host in found.members(number)] for number in range(found.count)]
    names = [fold(members) for members in hosts]
    slower = range(1, found.count)
    fact = separating(found, facts)
    evidence = (
        seen_in(
            view,
            seen.populations(
                counts=tuple(len(hosts[number]) for number in slower),
                names=tuple(names[1:]),
                effects=tuple(relative(float(found.effect[number]), view.quantity) for number in slower),
                others=len(hosts[0]),
                usual=names[0],
            ),
        ),
        seen.members_agree(),
        fact.evidence if fact else seen.no_separating_fact(),
        seen.undecided(),
    )
    common: dict[str, Any] = {
        "quantity": view.quantity,
        "effect": relative(float(found.effect.max()), view.quantity),
        "next_step": advise.compare_hosts(tuple(names)),
    }
    components = (ComponentRef.of("config", *hosts[1:], title="populations"),)
    other = (ComponentRef.of("config", hosts[0], title="speed above the design"),)
    return Finding(state=State.CONFOUNDED, components=components, evidence=evidence, ambiguity_group=other, **common)


@dataclass(frozen=True)
class Separation:
    """A fact whose values never occur in two populations."""

    name: str
    values: tuple[tuple[str, ...], ...]  # of each population

    @property
    def evidence(self) -> EvidenceRecord:
        """The fact, and its values where these are few."""
        if any(len(own) > MOST_VALUES for own in self.values[1:]):
            return seen.separating_fact_many(self.name)
        return seen.separating_fact(self.name, " and ".join(", ".join(own) for own in self.values[1:]))


def separating(found: Populations, facts: Facts) -> Separation | None:
    """The first fact whose values never occur in two populations, and that has fewer values than hosts."""
    for name, values in facts.items():
        of = np.array(values)
        each = [sorted(set(of[found.members(number)].tolist())) for number in range(found.count)]
        distinct = set().union(*map(set, each))
        if sum(map(len, each)) == len(distinct) and "" not in distinct and len(distinct) <= of.size / 2:
            return Separation(name, tuple(map(tuple, each)))
    return None
