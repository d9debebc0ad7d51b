"""Recovery of the launches on a cluster: the hosts that made one fail are excluded from the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fablint.errors import NotStartedError
from fablint.model import Finding, Note
from fablint.workflows.recovery.host_triage import HostTriage
from fablint.workflows.recovery.launch_recovery import LaunchFailure
from fablint.workflows.recovery.start_trials import MOST_SEARCHES, StartTrials, findings_of

WATCHDOG_S = 20.0  # a rank without progress for so long has failed: the rounds of a check take a second or two


@dataclass
class HostExclusion:
    """A `LaunchRecovery`: hosts are asked and retested, and where ranks do not start, fewer hosts are launched."""

    triage: HostTriage
    trials: StartTrials
    unconnected: Mapping[str, Finding] = field(default_factory=dict)  # hosts that do not reach others, by their pings

    @property
    def engine_options(self) -> Sequence[str]:
        return ("--watchdog", f"{WATCHDOG_S:g}")

    @property
    def failed_hosts(self) -> Mapping[str, Finding]:
        return self.triage.failed_hosts

    @property
    def failed_pairs(self) -> Mapping[frozenset[str], Finding]:
        return self.triage.failed_pairs

    @property
    def notes(self) -> Sequence[Note]:
        return self.triage.notes

    def exclude_causes(self, failure: LaunchFailure) -> bool:
        if failure.not_started is not None:
            unconnected = {host: self.unconnected[host] for host in failure.hosts if host in self.unconnected}
            if unconnected:
                self.triage.exclude(unconnected, {})
                return True
        has_started = failure.not_started is None
        if self.triage.find_failed(
            failure.hosts, failure.entries, failure.partners, failure.reason, has_started=has_started
        ):
            return True
        return failure.not_started is not None and self._search(failure.hosts, failure.not_started)

    def _search(self, hosts: Sequence[str], error: NotStartedError) -> bool:
        """Exclude hosts that prevent a launch from starting; False where a further launch would fail as well.

        Raises IncompleteError where no two hosts start.
        """
        if self.trials.searches == MOST_SEARCHES:
            return False
        result = self.trials.search(hosts, error)
        failed_hosts, failed_pairs = findings_of(result, error.message)
        self.triage.exclude(failed_hosts, failed_pairs)
        if failed_hosts:
            return True
        note = "fablint: all hosts start when the launch is repeated: it is repeated once"
        self.trials.context.progress.note(note)
        is_first, self.trials.repeated = not self.trials.repeated, True
        return is_first
