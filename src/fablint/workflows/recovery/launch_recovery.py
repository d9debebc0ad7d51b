"""What a check does about a launch that failed: nothing on one machine; host_exclusion.py on a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from fablint.errors import NotStartedError
from fablint.model import Finding, Note
from fablint.model.facts.failed_rank import FailedRank


@dataclass(frozen=True)
class LaunchFailure:
    """How a launch failed. Hosts have the names of the check's request."""

    hosts: Sequence[str]  # that took part
    entries: Sequence[FailedRank]
    partners: Sequence[str]  # of each entry: the host of the rank that waited for it, empty where there was none
    reason: str
    not_started: NotStartedError | None = None  # where the ranks did not start


class LaunchRecovery(Protocol):
    """Finds the hosts that made a launch fail, so that the others can be launched without them."""

    @property
    def engine_options(self) -> Sequence[str]:
        """Run options of the engine that the recovery needs."""

    @property
    def failed_hosts(self) -> Mapping[str, Finding]:
        """Excluded hosts."""

    @property
    def failed_pairs(self) -> Mapping[frozenset[str], Finding]:
        """Pairs of hosts that are not measured with each other any more."""

    @property
    def notes(self) -> Sequence[Note]:
        """Reasons of repeated launches."""

    def exclude_causes(self, failure: LaunchFailure) -> bool:
        """Exclude the hosts that caused a failure.

        Returns
        -------
        bool
            True where a further launch may succeed.

        Raises
        ------
        IncompleteError
            No two hosts can be launched together.
        """


@dataclass(frozen=True)
class NoRecovery:
    """Recovery on one machine: a launch that failed is the last one."""

    engine_options: Sequence[str] = ()
    failed_hosts: Mapping[str, Finding] = field(default_factory=dict)
    failed_pairs: Mapping[frozenset[str], Finding] = field(default_factory=dict)
    notes: Sequence[Note] = ()

    def exclude_causes(self, _: LaunchFailure) -> bool:
        return False
