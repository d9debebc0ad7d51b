"""Findings of preflight: results of checks as findings of the diagnosis, hosts folded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from fablint.model import ComponentRef, Endpoint, Finding, State
from fablint.model.host_name import DeviceRef
from fablint.model.names import fold
from fablint.model.preflight_results import Fitness, Outcome, Result, Rule, Suppressed
from fablint.text import actions as advise, evidence as seen

_STATES = {Outcome.FAIL: State.FAULT, Outcome.WARN: State.SUSPECT, Outcome.ERROR: State.NOT_JUDGED}


def finding_of(result: Result, fitness: Fitness) -> Finding:
    """Finding of one result of a check."""
    rule = fitness.rules[result.check]
    unit = result.unit or None
    evidence = seen.check(message=result.message, value=result.value, expected=result.expected, unit=unit)
    return Finding(
        state=_STATES[result.outcome],
        components=(_component(rule, [result.host], result.target),),
        evidence=(evidence.model_copy(update={"check": result.check}),),
        next_step=advise.remedy(fitness.remedy(result)),
    )


def finding_of_silent(hosts: Sequence[str], why: str) -> Finding:
    """Finding of hosts that gave no answer for the same reason."""
    evidence = (seen.no_answer(hosts=len(hosts), reason=why),)
    components = (ComponentRef.of("host", hosts),)
    return Finding(state=State.FAULT, components=components, evidence=evidence, next_step=advise.log_in())


def _component(rule: Rule, hosts: Iterable[str], target: str) -> ComponentRef:
    return ComponentRef.of(rule.component, Endpoint(nodes=tuple(hosts), part=target))


def findings(fitness: Fitness) -> list[Finding]:
    """Findings of a preflight: silent hosts first, then a finding for each component and check.

    Hosts with equal results, and hosts that share a cause, are one finding.
    """
    silent: dict[str, list[str]] = defaultdict(list)
    for host, why in fitness.silent.items():
        silent[why].append(host)
    results = [finding_of_silent(hosts, why) for why, hosts in silent.items()]
    groups: dict[tuple[str, ...], list[Result]] = defaultdict(list)
    for result in fitness.results:
        if result.outcome in _STATES:
            same = (result.cause,) if result.cause else _same(result, fitness)
            groups[same].append(result)
    for few in groups.values():
        results.append((_of_cause if few[0].cause else _folded)(few, fitness))
    return results


def _same(result: Result, fitness: Fitness) -> tuple[str, ...]:
    """Facts of a result that are equal on all hosts of a finding."""
    return result.check, result.target, result.outcome, result.message, fitness.remedy(result)


def _folded(results: Sequence[Result], fitness: Fitness) -> Finding:
    """Finding of results that differ only in their host."""
    rule = fitness.rules[results[0].check]
    components = (_component(rule, (result.host for result in results), results[0].target),)
    return finding_of(results[0], fitness).model_copy(update={"components": components})


def _of_cause(results: Sequence[Result], fitness: Fitness) -> Finding:
    """Finding of results of several hosts and checks that have one cause."""
    worst = min(results, key=lambda one: tuple(_STATES).index(one.outcome))
    kind, _, name = worst.cause.partition(" ")
    hosts = dict.fromkeys(result.host for result in results)
    others = [check for check in dict.fromkeys(result.check for result in results) if check != worst.check]
    also = (seen.also(tuple(others)),) if others else ()
    first = finding_of(worst, fitness)
    shared = seen.common_cause(len(hosts), worst.cause, tuple(hosts))
    return first.model_copy(
        update={
            "components": (
                ComponentRef.of("switch", name) if kind == "switch" else ComponentRef(kind="config", title=worst.cause),
            ),
            "evidence": (*first.evidence, shared, *also),
        }
    )


@dataclass(frozen=True)
class SuppressedFinding:
    """A suppressed result and all hosts with an equal result."""

    check: str
    target: str
    message: str
    suppressed: Suppressed
    hosts: Sequence[str]

    @property
    def name(self) -> str:
        """Hosts and component: `nid[001-008]/hsn0`."""
        return DeviceRef.of(fold(self.hosts), self.target)

    def facts(self) -> dict[str, str]:
        """Fields for programs."""
        words = {name: str(value) for name, value in self.suppressed._asdict().items()}
        return {"check": self.check, "hosts": fold(self.hosts), "target": self.target, "message": self.message, **words}


def suppressed_findings(fitness: Fitness) -> list[SuppressedFinding]:
    """Results that the site file suppresses, hosts with equal results together."""
    groups: dict[tuple[str, str, str, Suppressed], list[str]] = defaultdict(list)
    for result in fitness.results:
        if result.suppressed is not None:
            groups[result.check, result.target, result.message, result.suppressed].append(result.host)
    return [SuppressedFinding(*key, hosts) for key, hosts in groups.items()]


def unseen_network(fitness: Fitness, shown: Callable[[Iterable[str]], str] = fold) -> list[str]:
    """Sentences about parts of the network that were not examined; `shown` formats names of hosts."""
    result = [f"not examined: {shown(hosts)}: {why}" for why, hosts in fitness.unexamined.items()]
    pinged = fitness.not_pinged if len(fitness.not_examined) < len(fitness.hosts) else ""
    return [*result, f"not pinged: {pinged}"] if pinged else result
