"""The answer: findings about parts, and how much of the work they rest on."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from fablint.model.component import ComponentKind, ComponentRef, Data, Direction, label_of
from fablint.model.registry import Quantity


class State(StrEnum):
    """What is known about a component; the gravest state first."""

    FAULT = "FAULT"
    SUSPECT = "SUSPECT"  # worth a retest
    CONFOUNDED = "CONFOUNDED"  # something else explains it as well
    SUPPRESSED = "SUPPRESSED"  # one of these before, known until a date
    NOT_JUDGED = "NOT JUDGED"  # too little was measured
    OK = "OK"  # with an upper bound of the loss


# `local`: nothing is wrong on the one host of the run, and no network was measured.
VerdictWord = Literal["pass", "fault", "incomplete", "local"]


Value = bool | int | float | str | tuple[str, ...] | tuple[int, ...] | tuple[float, ...] | None


class Statement(Data):
    """A statement: its kind, the measurement that it is about, its numbers and names."""

    kind: str
    row: str = Field(default="", description="the row of the measurement")
    size: int | None = Field(default=None, description="the message size, bytes")
    values: Mapping[str, Value] = Field(default={}, description="numbers and names, by kind")

    def measured_in(self, row: str, size: int | None = None) -> Self:
        """Return the statement as that of a measurement."""
        return self.model_copy(update={"row": row, "size": size})


class EvidenceRecord(Statement):
    """One piece of evidence. `fablint.text.evidence` has the fields and sentence of each kind."""

    check: str = Field(default="", description="the check of preflight")


class Note(Statement):
    """A circumstance or limit of a verdict that is no finding. `fablint.text.notes` has the fields and sentences."""

    @model_validator(mode="before")
    @classmethod
    def _of_text(cls, document: Any) -> Any:
        """Return the document of a note; format 2 of a verdict has texts."""
        return {"kind": "message", "values": {"message": document}} if isinstance(document, str) else document


class Action(Data):
    """One action of a next step. `fablint.text.actions` has the sentence of each kind."""

    kind: str
    components: tuple[ComponentRef, ...] = Field(default=(), description="components that the action is about")
    values: Mapping[str, Value] = Field(default={}, description="names and numbers, by kind")

    def __hash__(self) -> int:
        """Hash of an action, whose values are a mapping."""
        return hash((self.kind, self.components, frozenset(self.values.items())))


def respelled(item: Any, names: Mapping[str, str]) -> Any:
    """Return a finding, or a part of it, with other names for its hosts: `names` has them by the present names.

    Names are in the tuples and mappings of a finding; its other texts are kinds, labels and reasons.
    """
    if isinstance(item, BaseModel):
        present = {field: getattr(item, field) for field in type(item).model_fields}
        new = {field: value if isinstance(value, str) else respelled(value, names) for field, value in present.items()}
        changed = {field: value for field, value in new.items() if value != present[field]}
        return item.model_copy(update=changed) if changed else item
    if isinstance(item, tuple):
        return tuple(respelled(value, names) for value in item)
    if isinstance(item, Mapping):
        return {key: respelled(value, names) for key, value in item.items()}
    return names.get(item, item) if isinstance(item, str) else item


class FormerState(Data):
    """The state of a suppressed finding before, and what the site file says about it."""

    state: State
    until: str = Field(description="the last day, `2026-12-31`")
    reason: str

    @property
    def words(self) -> str:
        """`FAULT, suppressed until 2026-12-31: cable ordered`."""
        return f"{self.state}, suppressed until {self.until}: {self.reason}"


class PairFigures(Data):
    """What a pair that uses a faulty component measures, and what it would measure without the fault."""

    row: str = Field(description="the row of the measurement")
    size: int = Field(description="the message size, bytes")
    expected: float = Field(description="figure of a healthy pair at this distance: seconds, or bytes per second")
    measured: float = Field(description="the same with the effect")


class Damage(Data):
    """What a fault costs."""

    hosts: int = Field(
        description="hosts behind the components: their own, those connected to their switches, "
        "or those that send or receive a tenth of their messages across them"
    )
    pairs: int = Field(
        description="ordered pairs of ranks on different hosts whose messages use the components, each by the share of "
        "its messages that do where these choose among several paths"
    )
    figures: PairFigures | None = Field(default=None, description="of such a pair; null without a model of it")


class Finding(BaseModel):
    """One statement about one component (or one folded set of them)."""

    model_config = ConfigDict(frozen=True)

    state: State
    components: tuple[ComponentRef, ...] = Field(min_length=1, description="of one kind; mostly one")
    direction: Direction | None = Field(default=None, description="direction of the loss; null if undecidable")
    quantity: Quantity | None = None
    effect: float | None = Field(
        default=None,
        description="relative change of the quantity: -0.2 is 20 % less bandwidth; "
        "for OK the largest loss that could hide",
    )
    interval: tuple[float, float] | None = Field(
        default=None, description="95 % interval of the effect of the fault alone"
    )
    log10_e: float | None = Field(
        default=None,
        description="decimal logarithm of the e-value of the evidence; no probability, since measurements that share a "
        "cause count as if they did not",
    )
    evidence: tuple[EvidenceRecord, ...] = Field(default=(), description="what was seen, and where")
    ambiguity_group: tuple[ComponentRef, ...] = Field(
        default=(), description="other components, and other causes, that explain the evidence as well"
    )
    next_step: tuple[Action, ...] = Field(default=(), description="what to do, in this order")
    damage: Damage | None = Field(default=None, description="what it costs; null where no pairs are known to use it")
    suppressed: FormerState | None = Field(
        default=None, description="of a finding whose state is SUPPRESSED: its state before, the last day, the reason"
    )

    @property
    def component(self) -> ComponentKind:
        """The kind of the components."""
        return self.components[0].kind

    @property
    def name(self) -> str:
        """The label of the components."""
        return label_of(self.components)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that the finding is about: none of a switch, a link, a route."""
        return tuple(dict.fromkeys(host for component in self.components for host in component.hosts))

    @property
    def nodes(self) -> frozenset[str]:
        """Hosts, switches and groups at the ends of the components."""
        return frozenset().union(*(component.nodes for component in self.components))

    @property
    def directions(self) -> frozenset[tuple[str, str]]:
        """Ordered pairs of nodes at the two ends of the components."""
        return frozenset().union(*(component.directions for component in self.components))

    @property
    def loss(self) -> float:
        """Share of the speed that is lost: 0.2 of 20 % less bandwidth, 0.5 of twice the latency; 0 if not known."""
        effect = self.effect or 0.0
        return abs(effect / (1 + effect) if self.quantity == "latency" and effect > 0 else effect)

    @property
    def rank(self) -> tuple[int, float, float]:
        """Sort key of reports: the gravest state first, then the largest loss times pairs, then the largest effect."""
        pairs = self.damage.pairs if self.damage is not None else 0
        return tuple(State).index(self.state), -self.loss * pairs, -abs(self.effect or 0.0)


class Coverage(BaseModel):
    """How much of the planned work was done."""

    model_config = ConfigDict(frozen=True)

    pairs_planned: int
    pairs_measured: int
    hosts: int
    hosts_judged: int
    links: int = 0
    links_judged: int = 0


class NamedLoss(BaseModel):
    """Smallest loss of a component of a type that the run would have named in 9 of 10 cases, by its own noise."""

    model_config = ConfigDict(frozen=True)

    component: ComponentKind
    quantity: Quantity
    loss: float = Field(description="of bandwidth in one direction, or added latency, as a fraction")


class Limits(BaseModel):
    """The relative losses that decide, as fractions: 0.05 is 5 %."""

    model_config = ConfigDict(frozen=True)

    reported: float = Field(description="healthy variation: a smaller loss is not reported")
    passed: float = Field(description="a component whose loss has a larger bound than this is NOT JUDGED")
    named: tuple[NamedLoss, ...] = Field(default=(), description="empty where no component has peers")


class Verdict(BaseModel):
    """The answer. Its JSON form is `docs/reference/verdict.md`."""

    model_config = ConfigDict(frozen=True)

    format: int = 3
    verdict: VerdictWord
    exit_code: int
    findings: tuple[Finding, ...]
    coverage: Coverage
    complete: bool = Field(default=False, description="whether all that was planned was measured and judged")
    limits: Limits | None = Field(default=None, description="null where no diagnosis was made")
    not_judged: str = Field(
        default="", description="why no component could be judged although what was measured is complete; else empty"
    )
    notes: tuple[Note, ...] = Field(default=(), description="circumstances and limits of the verdict")
    network: tuple[str, ...] = Field(
        default=(), description="what of the network preflight did not look at, and why: one sentence each"
    )
    thresholds: tuple[dict[str, Any], ...] = Field(
        default=(), description="those of the site, beside what was measured"
    )
