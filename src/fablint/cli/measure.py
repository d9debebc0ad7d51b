"""The verb `measure`: rows of a plan are measured into a run directory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from fablint.cli.bench_options import SETTINGS, engine_options, media_options, medium_values
from fablint.cli.many_ranks import confirm_ranks, yes_option
from fablint.cli.options import (
    FILE,
    launcher_option,
    measured_hostfile_option,
    mpicxx_option,
    output_option,
    ranks_option,
)
from fablint.cli.session import Session, verb
from fablint.errors import UsageError

if TYPE_CHECKING:
    from fablint.model import Plan, Slots


@verb(short_help="Measure the rows of a plan.")
@ranks_option
@measured_hostfile_option
@click.argument("planfile", required=False, type=FILE)
@click.option("-r", "--row", "rows", multiple=True, metavar="ROW", help="A row in quotes; may be given several times.")
@media_options
@SETTINGS["counters"].decorate
@SETTINGS["ranks_per_nic"].decorate
@output_option
@mpicxx_option
@launcher_option
@yes_option
def measure(
    session: Session,
    planfile: Path | None,
    rows: tuple[str, ...],
    output: Path | None,
    mpicxx: Path | None,
    launcher: str,
    **values: Any,
) -> int:
    """Measure the rows of PLANFILE, or those given with -r, into a run directory.

    With several transports each row is measured over each of them, as NAME-TRANSPORT.

    Ranks are started with the mpiexec of the MPI that the engine is built with.

    \b
    Examples:
      fablint measure -n 8 night.plan -o night.run
      fablint measure --hostfile check-1.hosts check-1.plan -o check-1.run
      fablint measure -n 4 -r 'latency --pattern all-pairs --sizes 8,1M'
      fablint measure -n 4 -r 'latency --pattern all-pairs' --transport mpi,tcp
      fablint measure -n 8 -r 'osu_bw --pattern all-pairs' --counters
    """
    from fablint.workflows import measurement

    slots = _slots(session, values["hostfile"])
    plan = _plan(planfile, rows, sum(slot.ranks for slot in slots) or values["ranks"], medium_values(values))
    plan = replace(plan, slots=slots)
    confirm_ranks(session, plan.ranks, is_confirmed=values["yes"])
    options = engine_options(counters=values["counters"], ranks_per_nic=values["ranks_per_nic"])
    output = measurement.free_output(session.machine(), output)
    with session.context(mpicxx, launcher) as context:
        return session.measurement(measurement.measure(context, plan, output, [*options, measurement.SKIP_REFUSED]))


def _slots(session: Session, hostfile: Path | None) -> tuple[Slots, ...]:
    """Return the ranks on each host of a hostfile, with the names that the job has for its hosts; none without one."""
    if hostfile is None:
        return ()
    from fablint.cluster.hostfile import read_hostfile
    from fablint.model import Slots
    from fablint.workflows.job_hosts import slots_of_job

    if click.get_current_context().get_parameter_source("ranks") is ParameterSource.COMMANDLINE:
        raise UsageError("-n and --hostfile contradict each other", "write HOST slots=N into the file")
    slots = [Slots(host, ranks or 1) for host, ranks in read_hostfile(hostfile).items()]
    return slots_of_job(session.machine(), slots)


def _plan(planfile: Path | None, rows: tuple[str, ...], ranks: int, carriers: Mapping[str, Any]) -> Plan:
    from fablint.workflows.benchmark import read_plan

    if (planfile is None) == (not rows):
        raise UsageError("give either a plan file or rows with -r", "such as -r 'latency --pattern all-pairs'")
    if planfile is None:
        return read_plan("\n".join(rows), ranks, "-r", carriers)
    try:
        return read_plan(planfile.read_text(), ranks, str(planfile), carriers)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text file"
        raise UsageError(f"cannot read {planfile}: {reason}", "give a plan file, one row per line") from error
