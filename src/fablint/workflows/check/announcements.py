"""What a check tells while it runs: findings as they become certain, and what is measured next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fablint.measure import Progress
from fablint.model import ComponentRef, Diagnosis, Finding, FollowUp, State
from fablint.model.names import plural
from fablint.plan.check.stages import Stage
from fablint.text import units

_SHOWN = 4  # components of a follow-up that are named


@dataclass
class Announcements:
    """What was announced of a check so far."""

    progress: Progress
    faults: dict[tuple[ComponentRef, ...], Finding] = field(default_factory=dict)  # by components

    def judged(self, diagnosis: Diagnosis) -> None:
        """Tell the faults that are certain since the last diagnosis, and those that no longer are."""
        now = {finding.components: finding for finding in diagnosis.verdict.findings if finding.state is State.FAULT}
        for components, finding in self.faults.items():
            if components not in now:
                text = f"fablint: no longer a fault: {_named(finding)}"
                self.progress.note(text, "withdrawn", finding=_json(finding))
        for components, finding in now.items():
            if components not in self.faults:
                effect = units.effect(finding.effect, finding.interval, finding.quantity)
                text = "  ".join(filter(None, (f"fablint: FAULT {_named(finding)}", effect)))
                self.progress.note(text, "finding", finding=_json(finding))
        self.faults = now

    def level(self, name: str, what: str, stage: Stage) -> None:
        """Tell which level is measured next."""
        rounds, seconds = _size(stage)
        text = f"fablint: next {name}: {what}: {plural(rounds, 'round')}, about {seconds:.0f} s"
        self.progress.note(text, "next", level=name, reason=what, rounds=rounds, predicted_s=seconds, components=[])

    def follow_up(self, stage: Stage, follow_ups: Sequence[FollowUp], left_s: float | None) -> None:
        """Tell what is measured again next, and for which components; `left_s` seconds of the budget are left."""
        rounds, seconds = _size(stage)
        components = list(dict.fromkeys(one.component.text for one in follow_ups))
        more = f" and {len(components) - _SHOWN} more" if len(components) > _SHOWN else ""
        left = "" if left_s is None else f"; {left_s:.0f} s of the budget are left"
        names = ", ".join(components[:_SHOWN])
        text = f"fablint: next a follow-up, about {seconds:.0f} s, to decide {names}{more}{left}"
        name, reason = "follow-up", "undecided"
        values = {"level": name, "reason": reason, "rounds": rounds, "predicted_s": seconds, "components": components}
        self.progress.note(text, "next", **values)


def _size(stage: Stage) -> tuple[int, float]:
    """Return the number of rounds and the predicted seconds of a stage."""
    return sum(row.rounds for row in stage.plan.rows), stage.plan.predicted_s


def _named(finding: Finding) -> str:
    direction = f" {finding.direction}" if finding.direction else ""
    return f"{finding.component} {finding.name}{direction}"


def _json(finding: Finding) -> dict[str, object]:
    return finding.model_dump(mode="json", exclude_none=True)
