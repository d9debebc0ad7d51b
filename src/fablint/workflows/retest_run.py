"""`fablint retest`: the pairs of faulty and suspect components of a run, and its slow routes, are measured again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fablint.errors import UsageError
from fablint.model import Topology
from fablint.workflows import analysis, measurement, run_files
from fablint.workflows.check.check_run import CheckOutcome
from fablint.workflows.context import Context, load_launch
from fablint.workflows.job_hosts import slots_of_job
from fablint.workflows.run_formats import read
from fablint.workflows.shared_folder import refuse_unshared

if TYPE_CHECKING:
    from fablint.plan.check.retest import Fate

_SHOWN = 8  # findings that are named


@dataclass(frozen=True)
class RetestOutcome:
    """What became of the findings of a run, and the outcome of the new run that shows it."""

    outcome: CheckOutcome
    fates: Sequence[Fate]

    @property
    def exit_code(self) -> int:
        """1: a fault was found; 3: a finding is undecided, or the run is not complete; else 0.

        The rest of the fabric is not judged by a retest, and does not count.
        """
        if self.outcome.diagnosis.verdict.verdict == "fault":
            return 1
        complete = self.outcome.run.state == "complete"
        return 0 if complete and all(fate.state == "gone" for fate in self.fates) else 3


def retest(
    context: Context, path: Path, output: Path, topology: Topology | None, budget_s: float | None
) -> RetestOutcome | None:
    """Measure the components again that a run finds faulty or suspect, and routes that were slow in one moment.

    The result is a run of its own: the component may have been exchanged since, so that old and new times do not belong
    together.

    Parameters
    ----------
    context
        Machine, progress, MPI.
    path
        The run.
    output
        Run directory to write.
    topology
        Which host is connected to which switch, None where that is not known.
    budget_s
        Seconds for the measurement, None: a usual time.

    Returns
    -------
    RetestOutcome or None
        None where the run has neither a fault nor a suspect nor a slow route.

    Raises
    ------
    UsageError
        The run was simulated or imported, no pair of ranks would be informative, the job lacks a host of the
        measurement, or the host of rank 0 does not see the folder of the run.
    IncompleteError
        The ranks were not on the hosts of the run.
    """
    from fablint.plan.check.retest import fates, plan_retest, reported_findings

    run = read(path)
    measurement.refuse_unmeasured(run, path)
    before = analysis.diagnose(run, topology)
    if not reported_findings(before):
        return None
    planned = plan_retest(run, before, topology, budget_s)
    if planned is None:
        names = ", ".join(finding.name for finding in reported_findings(before)[:_SHOWN])
        raise UsageError(f"{path}: no pair of ranks is informative about {names}", "see its findings: fablint analyse")
    stage = planned.stage
    stage = replace(stage, plan=replace(stage.plan, slots=slots_of_job(context.system, stage.plan.slots)))
    refuse_unshared(context.system, output.parent, stage.plan.slots)
    result = measurement.measure_stage(context, stage, output, options=load_launch(path).options)
    run_files.save_topology(topology, output)
    run_files.save_site(run_files.own_file(run, run_files.SITE), output)
    after = analysis.diagnose(result.run, topology)
    page = analysis.page_of(output)
    analysis.write_report(result.run, after, page)
    outcome = CheckOutcome(result.run, after, page, result.error)
    return RetestOutcome(outcome, fates(before, after, result.run, planned))
