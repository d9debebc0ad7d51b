"""The verb `check`: of ranks on this machine, of the hosts of an allocation, or of hosts for which it submits a job."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click
from click.core import ParameterSource

from fablint.cli.bench_options import MEDIA, given_media, media_options
from fablint.cli.jobs import submit_job, submit_options
from fablint.cli.many_ranks import confirm_ranks, yes_option
from fablint.cli.option_sections import SectionedCommand
from fablint.cli.options import (
    FILE,
    baseline_option,
    budget_option,
    fabric_options,
    full_option,
    hosts_option,
    launcher_option,
    mpicxx_option,
    nic_option,
    output_option,
    ppn_option,
    site_option,
    suite_option,
    topology_option,
    unequal_option,
    until_option,
    with_options,
)
from fablint.cli.result_files import result_file_options
from fablint.cli.session import Session, all_option, json_lines_option, verb
from fablint.errors import PreflightError, UsageError

if TYPE_CHECKING:
    from fablint.cluster import JobOptions, JobRequest
    from fablint.workflows.check.request import CheckRequest

_REQUEST = "/dev/stdin"  # of the check in a job: the script holds the request


_options = with_options(
    click.option("--local", "ranks", type=click.IntRange(2), metavar="N", help="Measure N ranks on this machine."),
    hosts_option,
    *fabric_options,
    nic_option,
    ppn_option,
    click.option("--ranks-per-nic", type=click.IntRange(1), metavar="K", help="K ranks for each NIC, bound near it."),
    suite_option,
    unequal_option,
    click.option("--exclude-unfit", is_flag=True, help="Exclude hosts that preflight rejects."),
    click.option("--include-unfit", is_flag=True, help="Measure unfit hosts anyway, except those that do not answer."),
    full_option,
    output_option,
    topology_option,
    site_option,
    baseline_option,
    budget_option,
    until_option,
    media_options,
    submit_options,
    click.option("--request", "request_file", type=FILE, metavar="FILE", help="All options, as a job has them (JSON)."),
    mpicxx_option,
    launcher_option,
    yes_option,
    result_file_options,
    json_lines_option,
    all_option,
)


class _CheckCommand(SectionedCommand):
    """The verb, with its options in sections."""

    sections: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "Hosts": ("--local", "--hosts", "--exclude", "--hostfile", "--ppn", "--exclude-unfit", "--include-unfit"),
        "What is measured": ("--suite", "--full", "--budget", "--until", "--unequal"),
        "How it is measured": (
            *("--transport", "--device", "--streams", "--ofi-provider", "--memory", "--nic", "--ranks-per-nic"),
            *("--mpicxx", "--launcher", "--yes"),
        ),
        "What is known of the fabric": ("--topology", "--from", "--blocks", "--site", "--baseline"),
        "As a job": (
            *("--submit", "--dry-run", "--detach", "--begin", "--account", "--partition", "--mail-user"),
            *("--constraint", "--time", "--request"),
        ),
        "Result": ("--output", "--junit", "--prometheus", "--json-lines", "--all"),
    }


@verb(cls=_CheckCommand, short_help="Measure, analyse and report in one step.")
@_options
def check(session: Session, request_file: Path | None, yes: bool, **values: Any) -> int:
    """Measure, analyse and report in one step.

    On a cluster every host is first checked (fablint preflight) and located at its switch; unfit hosts are not
    measured. Then the levels follow: ranks of one host, hosts of one switch, of one group, of different groups. Hosts
    that fail a level are excluded from the next. Only the rounds of a host that dies or stalls are lost. Suspects are
    measured again until every component is decided, or the rounds or the budget end; undecided ones are reported.

    The hosts are those of the job (Slurm, PBS) that it runs in, or those of -w or --hostfile, reached by ssh. Outside
    of a job --submit submits the check to the scheduler and waits; --dry-run prints the script.

    Writes a run directory (by default fablint-DATE-TIME.run) with report/index.html and report/verdict.json in it. The
    exit code is the verdict's: 0 pass, 1 fault found, 3 incomplete or undecided; 4: hosts are unfit, see above.

    \b
    Examples:
      fablint check --local 8 -o today.run
      salloc --no-kill -N 64 fablint check
      fablint check -w 'nid[001000-001063]' --transport mpi,tcp
      fablint check -w 'nid[001000-001063]' --suite acceptance --submit --partition hpc --time 30m
    """
    from fablint.cluster import JobOptions

    submit, dry_run, detach = (values.pop(name) for name in ("submit", "dry_run", "detach"))
    options = JobOptions(**{field.name: values.pop(field.name) for field in fields(JobOptions)})
    if not submit:
        _refuse_given("{} requires --submit", "give --submit as well", "dry_run", "detach", *vars(options))
    request = _request(values, submit=submit) if request_file is None else _request_of(request_file)
    if request.ranks is not None:
        return _local(session, request, is_confirmed=yes)
    request = _with_baseline(session, request)
    if submit:
        return _submitted(session, request, options, dry_run=dry_run, detach=detach)
    return _cluster(session, request)


def _request(values: dict[str, Any], *, submit: bool) -> CheckRequest:
    """Return the request that the options are. Raises UsageError for options that contradict each other."""
    from fablint.workflows.check.request import CheckRequest, inapplicable_to_local

    media = given_media({name: values.pop(name) for name in MEDIA})
    request = CheckRequest(**values, media=media)
    if submit and request.ranks is not None:
        raise inapplicable_to_local("--submit")
    return request


def _request_of(file: Path) -> CheckRequest:
    """Read a request. Raises UsageError where another option of a check is given as well."""
    from fablint.workflows.check.request import read_request

    parameters = click.get_current_context().command.params
    others = (str(one.name) for one in parameters if one.expose_value and one.name not in ("request_file", "yes"))
    _refuse_given("--request and {} contradict each other", "give one of them", *others)
    return read_request(file)


def _refuse_given(what: str, hint: str, *names: str) -> None:
    """Raise UsageError for the first of these options that the user gives; `what` has `{}` in its place."""
    context = click.get_current_context()
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if parameter.name in names and source is ParameterSource.COMMANDLINE:
            raise UsageError(what.format(parameter.opts[-1]), hint)


def _with_baseline(session: Session, request: CheckRequest) -> CheckRequest:
    """Return the request with a site file that has the thresholds of its baseline."""
    from fablint.workflows.run_history import site_with_baseline

    site = site_with_baseline(session.machine(), request.baseline, request.site)
    return replace(request, site=site, baseline=None)


def _local(session: Session, request: CheckRequest, *, is_confirmed: bool) -> int:
    """Check ranks on this machine."""
    from fablint.workflows import measurement
    from fablint.workflows.check import local_check

    confirm_ranks(session, request.ranks or 0, is_confirmed=is_confirmed)
    output = measurement.free_output(session.machine(), request.output)
    with session.context(request.mpicxx, request.launcher) as context:
        return session.outcome(local_check.check_local(context, request, output))


def _cluster(session: Session, request: CheckRequest) -> int:
    """Check hosts of a job, or those that were named."""
    from fablint.workflows import measurement
    from fablint.workflows.check.cluster_check import UnfitError, check_cluster

    output = measurement.free_output(session.machine(), request.output)
    begun = session.machine().now().timestamp()
    try:
        with session.context(request.mpicxx, request.launcher) as context:
            return session.outcome(check_cluster(context, request, output))
    except UnfitError as error:
        session.fitness("quick", error.fitness, begun)
        raise


# ------------------------------------------------------------------------------------------------ as a job


def _submitted(session: Session, request: CheckRequest, options: JobOptions, *, dry_run: bool, detach: bool) -> int:
    """Submit the check to the scheduler; if it is waited for, print its outcome."""
    from fablint.workflows import analysis, measurement
    from fablint.workflows.check.check_run import CheckOutcome
    from fablint.workflows.run_formats import read

    if detach and session.result_files:
        raise UsageError(
            f"--{next(iter(session.result_files))} and --detach contradict each other", "use fablint report"
        )
    output = measurement.free_output(session.machine(), request.output).absolute()
    job_request = _with_build(
        session, _job_request(session, replace(request, output=output), options), request, dry_run
    )
    done = submit_job(session, job_request, dry_run=dry_run, detach=detach)
    if done is None:
        return 0
    job, state = done
    if state.exit_code == PreflightError.exit_code:
        raise PreflightError(f"job {job.id} measured nothing: hosts are unfit", f"see {job.log}")
    if not (output / "zarr.json").exists():
        raise UsageError(f"job {job.id} measured nothing", f"see {job.log}")
    run = read(output)
    diagnosis = analysis.judge(run)
    session.outcome(CheckOutcome(run, diagnosis, analysis.page_of(output)))
    return state.exit_code or 0


def _job_request(session: Session, request: CheckRequest, options: JobOptions) -> JobRequest:
    """Return the job: the same check, inside an allocation of the same hosts."""
    from fablint import cluster, discover
    from fablint.model.names import fold
    from fablint.workflows import fabric_discovery, run_files
    from fablint.workflows.check.request import request_text

    system = session.machine()
    discover.read_files(request.sources)  # now: in the job it would be too late
    if request.site:
        run_files.load_site(request.site, system)
    if not (request.hosts or request.hostfile):
        raise UsageError("--submit requires hosts", "name them with -w or --hostfile")
    allocation, unusable = fabric_discovery.usable_hosts(system, request)
    hosts = fold([*allocation.hosts, *(finding.name for finding in unusable), *allocation.excluded])
    inside = replace(request, hosts=hosts, hostfile=None).in_any_folder()
    cluster.find_scheduler(system)
    return cluster.JobRequest(
        # -P: the job begins in the user's folder, and -m would import modules from there. -I would hide an installation
        # that PYTHONPATH or the user's own site-packages provide.
        (sys.executable, "-P", "-m", "fablint.cli", "check", "--request", _REQUEST),
        Path.cwd(),
        run=request.output,
        hosts=tuple(allocation.hosts),
        ranks=max(2, request.ppn or 1),
        input=request_text(inside),
        **vars(options),
    )


def _with_build(session: Session, job: JobRequest, request: CheckRequest, is_dry: bool) -> JobRequest:
    """Build the engine here; if this machine cannot, return the job with the time that it needs for that."""
    from fablint.workflows import programs

    with session.context(request.mpicxx, request.launcher) as context:
        build_s = programs.build_before_job(context, request.media, is_dry=is_dry)
    if not build_s:
        return job
    minutes = f"{build_s / 60:.0f} min"
    if job.time_s is None:
        session.say(f"this machine has no compiler for the engine: the job builds it, which takes up to {minutes}")
        return job
    session.say(f"this machine has no compiler for the engine: the job builds it, and may take {minutes} longer")
    return replace(job, time_s=job.time_s + build_s)
