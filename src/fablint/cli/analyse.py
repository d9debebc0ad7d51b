"""The verb `analyse`: the verdict about a run."""

from __future__ import annotations

from pathlib import Path

from fablint.cli.options import baseline_option, findings_option, run_site_option, run_topology_option, runs_argument
from fablint.cli.result_files import result_file_options
from fablint.cli.session import Session, all_option, verb


@verb(short_help="Analyse a run: localise faults.")
@runs_argument
@run_topology_option
@findings_option
@run_site_option
@baseline_option
@result_file_options
@all_option
def analyse(
    session: Session,
    runs: tuple[Path, ...],
    topology: Path | None,
    findings: Path | None,
    site: Path | None,
    baseline: str | None,
) -> int:
    """Analyse a run: faults, their confidence, next steps. The exit code is the verdict's.

    RUN is a run directory; FILE is the output of another tool, as for fablint import. Runs of several allocations, as
    fablint plan --split plans them, have one verdict.

    \b
    Examples:
      fablint analyse night.run --topology fabric.yaml
      fablint analyse night.run --baseline spring
      fablint analyse check-1.run check-2.run --topology fabric.yaml
      fablint analyse mpigraph.out
    """
    from fablint.model.names import plural
    from fablint.workflows import analysis, run_files
    from fablint.workflows.run_history import site_with_baseline

    run = session.read(runs)
    site = site_with_baseline(session.machine(), baseline, site or run_files.own_file(run, run_files.SITE))
    with session.working(f"judging {plural(len(run.hosts), 'host')}") as step:
        diagnosis = analysis.judge(run, topology, findings, site, step=step)
    return session.verdict(run, diagnosis)
