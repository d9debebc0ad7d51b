"""The answer: findings about parts, and how much of the work they rest on."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class State(StrEnum):
    """What is known about a component; the gravest state first."""

    FAULT = "FAULT"
    SUSPECT = "SUSPECT"  # worth a retest
    CONFOUNDED = "CONFOUNDED"  # something else explains it as well
    NOT_JUDGED = "NOT JUDGED"  # too little was measured
    OK = "OK"  # with an upper bound of the loss


Component = Literal["host", "nic", "cable", "link", "switch", "group", "route", "config"]
Direction = Literal["tx", "rx", "both"]
VerdictWord = Literal["pass", "fault", "incomplete"]


class Finding(BaseModel):
    """One statement about one component (or one folded set of them)."""

    model_config = ConfigDict(frozen=True)

    state: State
    component: Component
    name: str = Field(description="the part: `nid000231`, `s3>s5` (directed link), `s3=s5` (cable), `nid[001-064]`")
    direction: Direction | None = Field(default=None, description="which side is slow; null where it cannot be told")
    quantity: Literal["latency", "bandwidth"] | None = None
    effect: float | None = Field(
        default=None,
        description="relative change of the quantity: -0.2 is 20 % less bandwidth; "
        "for OK the largest loss that could hide",
    )
    interval: tuple[float, float] | None = Field(default=None, description="95 % interval of the effect")
    log10_e: float | None = Field(
        default=None,
        description="decimal logarithm of the e-value of the evidence; no probability, since measurements that share a "
        "cause count as if they did not",
    )
    evidence: str = Field(default="", description="what was seen, in one sentence with counts")
    alternatives: tuple[str, ...] = Field(default=(), description="parts that the evidence cannot tell from this one")
    next_step: str = ""

    @property
    def rank(self) -> tuple[int, float]:
        """Sort key of reports: the gravest state first, and within a state the largest effect first."""
        return tuple(State).index(self.state), -abs(self.effect or 0.0)


OF_HOSTS = ("host", "nic", "cable", "config")  # components that a finding about a single host names


def host_of(finding: Finding) -> str:
    """The host that a finding is about, empty where it is about several or none: a cable's first end is its host."""
    if finding.component not in OF_HOSTS:
        return ""
    return finding.name.split("=")[0].split(":")[0].split("/")[0].split(" ")[0]


class Coverage(BaseModel):
    """How much of the planned work was done."""

    model_config = ConfigDict(frozen=True)

    pairs_planned: int
    pairs_measured: int
    hosts: int
    hosts_judged: int
    links: int = 0
    links_judged: int = 0


class Limits(BaseModel):
    """The relative losses that decide, as fractions: 0.05 is 5 %."""

    model_config = ConfigDict(frozen=True)

    reported: float = Field(description="smallest loss that is reported; more where healthy components differ by more")
    passed: float = Field(description="a component whose loss has a larger bound than this is NOT JUDGED")


class Verdict(BaseModel):
    """The answer. Its JSON form is `docs/reference/verdict.md`."""

    model_config = ConfigDict(frozen=True)

    format: int = 1
    verdict: VerdictWord
    exit_code: int
    findings: tuple[Finding, ...]
    coverage: Coverage
    limits: Limits | None = Field(default=None, description="null where no diagnosis was made")
    notes: tuple[str, ...] = ()
    network: tuple[str, ...] = Field(
        default=(), description="what of the network preflight did not look at, and why: one sentence each"
    )
    thresholds: tuple[dict[str, Any], ...] = Field(
        default=(), description="those of the site, beside what was measured"
    )
