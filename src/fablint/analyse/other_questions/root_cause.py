"""Which of the parts in series is it: the host, its NIC, the cable, or the switch port?

Times cannot tell: all messages of a host cross all four. Error counters, loopback tests and what is known of other
parts can. Exactly one of the four is taken to be at fault; each symptom multiplies its odds by how likely the symptom
is if that part is (naive Bayes). The likelihoods below are stated judgements, not measurements: they put in
numbers what the meaning of the counters says.

What follows from the counters (counter_steps.py): the damage is on the path to the receiver that counts broken code
words; a packet that arrives marked bad on a clean line was damaged before it; one poisoned before it was sent was
damaged in the NIC. Ranks that wait for a CPU much longer than those of other hosts share it with other processes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from fablint.analyse.observations.counter_steps import TCP_LOST, CounterSteps, Symptom, count_steps
from fablint.analyse.phrasing import between_switches, run_name
from fablint.analyse.settings import CLEAR_EVIDENCE, SETTLED
from fablint.model import ComponentRef, Direction, Endpoint, EvidenceRecord, Finding, Run, State, Topology
from fablint.model.component import in_series
from fablint.model.figures.cpu_wait import CpuWait, cpu_wait_of
from fablint.model.host_name import NicRef
from fablint.model.verdict import Action
from fablint.snapshot.fabric_nics import message_nics
from fablint.text import actions as advise, evidence as seen
from fablint.text.sentence_kind import Plain

Part = Literal["host", "nic", "cable", "port"]
PARTS: tuple[Part, ...] = ("host", "nic", "cable", "port")
PRIOR: Mapping[Part, float] = {"host": 0.2, "nic": 0.2, "cable": 0.45, "port": 0.15}


class _Symptom(NamedTuple):
    """What a symptom is evidence of, and how it is reported."""

    chances: tuple[float, float, float, float]  # that a run that found the host slow shows it, by `PARTS` at fault
    present: Plain | None  # None: not reported without figures
    absent: Plain | None = None  # None: not reported


SYMPTOMS: Mapping[Symptom, _Symptom] = {
    # in the slow direction; for the other direction see BESIDE
    "line_rx": _Symptom((0.02, 0.15, 0.85, 0.25), seen.line_rx, seen.no_line_rx),
    "line_tx": _Symptom((0.02, 0.20, 0.85, 0.10), seen.line_tx, seen.no_line_tx),
    "marked": _Symptom((0.02, 0.03, 0.08, 0.60), seen.marked),
    "poisoned": _Symptom((0.08, 0.50, 0.02, 0.02), seen.poisoned),
    "late": _Symptom((0.60, 0.25, 0.03, 0.03), seen.late),
    "down": _Symptom((0.02, 0.10, 0.30, 0.15), seen.down),
    "again": _Symptom((0.15, 0.40, 0.60, 0.60), seen.again),
    "loopback": _Symptom((0.70, 0.70, 0.02, 0.02), seen.slow_loopback, seen.fine_loopback),
    "rails": _Symptom((0.80, 0.03, 0.03, 0.05), seen.slow_rails, seen.fine_rails),
    "neighbours": _Symptom((0.03, 0.03, 0.03, 0.30), seen.slow_neighbours),
    "cpu_wait": _Symptom((0.25, 0.01, 0.01, 0.01), None),
}
BESIDE = (0.02, 0.05, 0.40, 0.05)  # errors in the direction that is not slow: damaged cables often have errors in both


@dataclass(frozen=True)
class Ranking:
    """The parts in series, the most likely first."""

    parts: tuple[tuple[ComponentRef, float], ...]  # natural log of the odds
    reasons: tuple[EvidenceRecord, ...]  # empty where no symptom distinguishes them
    next_step: tuple[Action, ...]

    @property
    def first(self) -> ComponentRef:
        """The part to look at."""
        return self.parts[0][0]


@dataclass(frozen=True)
class Series:
    """What lies in series behind a slow host or NIC. Empty: unknown."""

    host: str
    nic: str = ""
    switch: str = ""
    port: str = ""
    neighbours: tuple[str, ...] = ()  # other hosts of the switch

    def has_nic(self, component: ComponentRef) -> bool:
        """Tell whether a component is about the NIC of the series."""
        return bool(self.nic) and component.ends[0].part == self.nic

    @cached_property
    def components(self) -> Mapping[Part, ComponentRef]:
        """The four components in series."""
        component = ComponentRef.of
        nic, cable, port = in_series(self.host)
        if self.nic:
            nic = component("nic", Endpoint(nodes=(self.host,), part=self.nic))
        if self.switch:
            cable, port = component("cable", self.host, self.switch), component("port", self.switch, self.host)
        if self.port:
            port = component("port", Endpoint(nodes=(self.switch,), part=self.port))
        return {"host": component("host", self.host), "nic": nic, "cable": cable, "port": port}


def fuse(
    series: Series,
    direction: Direction | None,
    counters: CounterSteps | None,
    others: Sequence[Finding],
    *,
    cpu_wait: CpuWait | None = None,
    run: str = "RUN",
) -> Ranking:
    """Rank the parts in series of a host or NIC that was found slow.

    Parameters
    ----------
    series
        The host, its NIC, the switch and its port.
    direction
        Which side of it is slow; None where it is undecidable.
    counters
        Of the NIC during the run (`count_steps`); None where there are none.
    others
        Findings of this run and of other stages (`fablint preflight --json`). One with evidence of the
        kind `loopback` is a loopback test of the host or NIC that it names.
    cpu_wait
        How long the ranks of the host waited for a CPU; None where it is unknown.
    run
        Name of the run directory, for the next step.
    """
    symptoms = _symptoms(series, counters, others)
    if cpu_wait is not None:
        symptoms["cpu_wait"] = cpu_wait.is_distinct
    log = np.log([PRIOR[part] for part in PARTS])
    for symptom, present in symptoms.items():
        chance = np.array(_chances(symptom, direction))
        log += np.log(chance if present else 1 - chance)
    for at, part in enumerate(PARTS):
        if any(finding.state is State.FAULT and _about(finding, series, part) for finding in others):
            log[at] += CLEAR_EVIDENCE
    log -= np.logaddexp.reduce(log)
    odds = log - np.log(-np.expm1(np.minimum(log, -1e-12)))
    order = np.argsort(-odds, kind="stable")
    ranked = tuple((series.components[PARTS[at]], float(odds[at])) for at in order)
    best = PARTS[order[0]]
    settled = odds[order[0]] >= SETTLED
    loses = counters is not None and TCP_LOST in counters.by
    if settled and best == "host" and symptoms.get("cpu_wait"):
        step = advise.free_cpus(series.components["host"])
    else:
        step = _action(best, series) if settled else _reading(series) if loses else _splitting(best, series, symptoms)
    return Ranking(ranked, _reasons(symptoms, cpu_wait), step + advise.retest(run=run))


def fuse_run(
    run: Run,
    topology: Topology | None,
    component: ComponentRef,
    direction: Direction | None,
    others: Sequence[Finding],
    lost: int = 0,
) -> Ranking:
    """Return the same for a host `h00` or NIC `h00/hsn1` of a run: its NIC, switch, port and counters are looked up.

    `lost` is how many segments TCP has lost there; 0 shows nothing, since MPI may not use TCP.
    """
    series, counted_nic = _series(run, topology, component)
    counters = count_steps(run.facts.counters, series.host, counted_nic)
    if lost:
        counters = CounterSteps({**(counters.by if counters else {}), TCP_LOST: lost})
    return fuse(series, direction, counters, others, cpu_wait=cpu_wait_of(run, series.host), run=run_name(run))


def with_part_to_look_at(
    finding: Finding,
    others: Sequence[Finding],
    run: Run,
    topology: Topology | None,
    lost: Mapping[ComponentRef, int],
) -> Finding:
    """Return a `FAULT` of a host, NIC, link or cable with the next step for the part to look at first; else itself.

    `others` are the findings beside it, `lost` the segments that TCP has lost at hosts and NICs.
    """
    component = finding.components[0]
    if finding.state is State.FAULT and finding.component in ("link", "cable"):
        steps = between_switches(component, finding.ambiguity_group, run, topology)
        return finding.model_copy(update={"next_step": steps})
    is_end = finding.component in ("host", "nic") and component.ends[0].rank is None
    if finding.state is not State.FAULT or not is_end:
        return finding
    ranking = fuse_run(run, topology, component, finding.direction, others, lost.get(component, 0))
    evidence = (*finding.evidence, *ranking.reasons)
    return finding.model_copy(update={"evidence": evidence, "next_step": ranking.next_step})


def _series(run: Run, topology: Topology | None, component: ComponentRef) -> tuple[Series, str]:
    """Return what the run and the topology know of it, and the name under which the run counts its NIC.

    A topology may call a NIC by its network interface (`hsn1`) and the run by its device (`cxi1`).
    """
    (host,), nic = component.hosts, component.ends[0].part
    used = {used for used, at in zip(run.facts.rank_nic, run.rank_host, strict=False) if at == host}
    nic = nic or (next(iter(used)) if len(used) == 1 else "" if used else _single_nic(run, host))
    counted_nic, aliases = nic, {nic}
    for facts in run.facts.nics.get(host, ()):
        if nic in (names := {facts.name, *(facts.netdevs or ())}):
            counted_nic, aliases = facts.name, names
    if topology is None:
        return Series(host, nic), counted_nic
    ends = (NicRef.of(host, alias) for alias in sorted(aliases))
    end = next((end for end in ends if end in topology.nic_switch), NicRef(host))
    switch = topology.nic_switch.get(end) or topology.host_switch.get(host, "")
    attached = {end.host for end, beyond in topology.end_switch.items() if beyond == switch}
    neighbours = tuple(other for other in run.hosts if other != host and other in attached)
    port = topology.ports.get((switch, end), "")
    return Series(host, end.device or nic, switch, port, neighbours if switch else ()), counted_nic


def _single_nic(run: Run, host: str) -> str:
    """The NIC of the fabric of a host that has one of them; empty where it has several, or the run names none."""
    nics = message_nics(run.facts.nics.get(host, ()))
    return nics[0] if len(nics) == 1 else ""


# ------------------------------------------------------------------------------------------------ symptoms


def _symptoms(series: Series, counters: CounterSteps | None, others: Sequence[Finding]) -> dict[Symptom, bool]:
    """Return what is known to be there or not to be there; what was not examined is left out."""
    symptoms: dict[Symptom, bool] = dict(counters.symptoms()) if counters else {}
    loopback = [f for f in others if _is_loopback(f) and _is_end(f, series)]
    if loopback:
        symptoms["loopback"] = any(finding.state in (State.FAULT, State.SUSPECT) for finding in loopback)
    rails = [f for f in others if f.component == "nic" and series.host in f.hosts and f not in loopback]
    others_of_host = [finding for finding in rails if finding.components != (series.components["nic"],)]
    if others_of_host:
        symptoms["rails"] = all(finding.state is State.FAULT for finding in others_of_host)
    if series.neighbours:
        slow = [finding for finding in others if finding.state is State.FAULT and finding.component in ("host", "nic")]
        symptoms["neighbours"] = any(host in f.hosts for f in slow for host in series.neighbours)
    return symptoms


def _chances(symptom: Symptom, direction: Direction | None) -> tuple[float, float, float, float]:
    """Return how likely the symptom is for each part; errors in a direction that is not slow are another symptom."""
    if (symptom, direction) in (("line_rx", "tx"), ("line_tx", "rx")):
        return BESIDE
    return SYMPTOMS[symptom].chances


def _is_end(finding: Finding, series: Series) -> bool:
    component = finding.components[0]
    whole = not component.ends or not component.ends[0].part
    return finding.component != "cable" and series.host in finding.hosts and (whole or series.has_nic(component))


def _about(finding: Finding, series: Series, part: Part) -> bool:
    """Tell whether another check reports this component. The finding on the host, from its times, is about all of
    them.
    """
    if _is_loopback(finding) or finding.quantity is not None:
        return False
    if part == "port":
        of_switch = finding.component == "switch" and series.switch in finding.nodes
        return bool(series.switch) and (of_switch or series.components["port"] in finding.components)
    if finding.component != part:
        return False
    component = finding.components[0]
    if part == "host":
        return series.host in finding.hosts
    if part == "nic":
        return series.host in finding.hosts and series.has_nic(component)
    return component.nodes == {series.host, series.switch} or _is_at_end(component, series)


def _is_at_end(cable: ComponentRef, series: Series) -> bool:
    """Tell whether a cable has the name of this NIC. What reads counters knows the end that it is in, and not the
    other.
    """
    end = cable.ends[0]
    return bool(end.part) and series.host in end.nodes and series.nic in ("", end.part)


# ------------------------------------------------------------------------------------------------ words


def _reasons(symptoms: Mapping[Symptom, bool], cpu_wait: CpuWait | None) -> tuple[EvidenceRecord, ...]:
    meanings = ((SYMPTOMS[symptom], present) for symptom, present in symptoms.items())
    kinds = (meaning.present if present else meaning.absent for meaning, present in meanings)
    reasons = [kind() for kind in kinds if kind is not None]
    if cpu_wait is not None and symptoms.get("cpu_wait"):
        reasons.append(seen.cpu_wait(cpu_wait.share, cpu_wait.others))
    return tuple(reasons)


def _is_loopback(finding: Finding) -> bool:
    """Tell whether it is a loopback test."""
    return bool(seen.loopback.among(finding.evidence))


def _action(part: Part, series: Series) -> tuple[Action, ...]:
    """Return what to do about it."""
    nic, port = series.components["nic"], series.components["port"]
    if part == "host":
        return advise.inspect_host(series.components["host"])
    if part == "nic":
        return advise.replace_nic(nic)
    return advise.swap_cable(nic, port) if part == "cable" else advise.change_port(nic, port)


def _reading(series: Series) -> tuple[Action, ...]:
    """Return what a loopback test does not show: segments are lost between hosts, and the receiver counts why."""
    return advise.read_drops(series.components["nic"], series.components["port"])


def _splitting(best: Part, series: Series, symptoms: Mapping[Symptom, bool]) -> tuple[Action, ...]:
    """The test that tells most where nothing is settled: what costs no hand first."""
    if "loopback" not in symptoms:
        return advise.test_loopback(series.components["nic"])
    return _action("cable" if best in ("cable", "port") else best, series)
