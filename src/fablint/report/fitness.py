"""What preflight found, for a terminal: only what is wrong, grouped, with hosts folded."""

from __future__ import annotations

from fablint.fitness import Fitness, Outcome, alike
from fablint.names import fold


def fitness_table(fitness: Fitness, width: int = 80, *, color: bool = False) -> str:
    """What is wrong with which hosts; at the end how many there are, and how many are fit."""
    lines = [f"FAIL   host  {host}: no answer: {why}" for host, why in fitness.silent.items()]
    for (check, target, outcome, message), hosts in alike(fitness.results).items():
        if outcome in (Outcome.FAIL, Outcome.WARN, Outcome.ERROR):
            lines.append(f"{outcome:<6} {check} {fold(hosts)} {target} {message}")
    lines.append(f"{len(fitness.hosts)} hosts, {len(fitness.unfit)} unfit, {fitness.count(Outcome.SKIP)} skipped")
    return "\n".join(lines)


def junit_text(fitness: Fitness) -> str:
    return ""


def prometheus_text(fitness: Fitness) -> str:
    return ""
