"""The words of fablint as types. Everything is frozen; stages take and return these and nothing else.

Modules of this package import nothing else of fablint but `errors`, so that every stage can import them. Modules that
need pydantic or numpy (`Placement`) are imported on first use: most verbs of a run that is not judged do without.
Seconds and bytes throughout; relative effects are fractions of the healthy figure (-0.2: 20 % less).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fablint.model.cluster import Allocation, Answer, HostState
from fablint.model.lazy_imports import lazy_names
from fablint.model.plan import Plan, PlannedLevel, PlanRow, Slots
from fablint.model.row import Medium, RowSpec
from fablint.model.run import Observations, Row, Run
from fablint.model.topology import SCOPES, Cable, Routing, Scope, Switch, Topology

if TYPE_CHECKING:
    from fablint.model.component import OF_HOSTS, ComponentKind, ComponentRef, Direction, Endpoint
    from fablint.model.diagnosis import Diagnosis, Fit, FollowUp
    from fablint.model.placement import Placement
    from fablint.model.verdict import (
        Coverage,
        EvidenceRecord,
        Finding,
        Limits,
        Note,
        State,
        Verdict,
        VerdictWord,
    )

__all__ = [
    "OF_HOSTS",
    "SCOPES",
    "Allocation",
    "Answer",
    "Cable",
    "ComponentKind",
    "ComponentRef",
    "Coverage",
    "Diagnosis",
    "Direction",
    "Endpoint",
    "EvidenceRecord",
    "Finding",
    "Fit",
    "FollowUp",
    "HostState",
    "Limits",
    "Medium",
    "Note",
    "Observations",
    "Placement",
    "Plan",
    "PlanRow",
    "PlannedLevel",
    "Routing",
    "Row",
    "RowSpec",
    "Run",
    "Scope",
    "Slots",
    "State",
    "Switch",
    "Topology",
    "Verdict",
    "VerdictWord",
]

_OF_VERDICT = ("Coverage", "EvidenceRecord", "Finding", "Limits", "Note", "State", "Verdict", "VerdictWord")

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__,
        dict.fromkeys(("Diagnosis", "Fit", "FollowUp"), "diagnosis")
        | dict.fromkeys(_OF_VERDICT, "verdict")
        | dict.fromkeys(("OF_HOSTS", "ComponentKind", "ComponentRef", "Direction", "Endpoint"), "component")
        | {"Placement": "placement"},
    )
