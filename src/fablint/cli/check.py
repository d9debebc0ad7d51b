"""The verb `check`: of ranks on this machine, of the hosts of an allocation, or of hosts for which it submits a job."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from fablint.cli.bench_options import MEDIA, given_media, media_options
from fablint.cli.jobs import request_fields, submit_job, submit_options
from fablint.cli.many_ranks import confirm_ranks, yes_option
from fablint.cli.options import (
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
    with_options,
)
from fablint.cli.result_files import result_file_options
from fablint.cli.session import Session, all_option, verb
from fablint.errors import PreflightError, UsageError

if TYPE_CHECKING:
    from fablint.cluster import JobRequest
    from fablint.workflows.check.cluster_check import ClusterCheckRequest

_OF_JOBS = ("dry_run", "detach", "begin", "account", "partition", "mail_user", "constraint", "time_s")
_OF_CLUSTERS = (
    *("hosts", "exclude", "hostfile", "files", "blocks", "nics", "ppn", "ranks_per_nic"),
    *("suite", "unequal", "submit", "site", "baseline", "force", "exclude_unfit"),
)


_cluster_options = with_options(
    hosts_option,
    *fabric_options,
    nic_option,
    ppn_option,
    click.option("--ranks-per-nic", type=click.IntRange(1), metavar="K", help="K ranks for each NIC, bound near it."),
    suite_option,
    unequal_option,
    click.option("--exclude-unfit", is_flag=True, help="Exclude hosts that preflight rejects."),
    click.option("--force", is_flag=True, help="Measure unfit hosts anyway, except those that do not answer."),
)


@verb(short_help="Measure, analyse and report in one step.")
@click.option("--local", "ranks", type=click.IntRange(2), metavar="N", help="Measure N ranks on this machine.")
@_cluster_options
@full_option
@output_option
@topology_option
@site_option
@baseline_option
@budget_option
@media_options
@submit_options
@mpicxx_option
@launcher_option
@yes_option
@result_file_options
@all_option
def check(session: Session, output: Path | None, mpicxx: Path | None, **values: Any) -> int:
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
    if not values["submit"]:
        _refuse_job_options(values)
    if values["ranks"] is not None:
        return _local(session, output, mpicxx, values)
    values["site"] = _site(session, values)
    if values["submit"]:
        return _submitted(session, output, mpicxx, values)
    return _cluster(session, output, mpicxx, values)


def _site(session: Session, values: dict[str, Any]) -> Path | None:
    """Return the site file, with the thresholds of the baseline."""
    from fablint.workflows.run_history import site_with_baseline

    return site_with_baseline(session.machine(), values["baseline"], values["site"])


def _refuse_job_options(values: dict[str, Any]) -> None:
    given = next((name for name in _OF_JOBS if values[name]), None)
    if given is not None:
        option = {"time_s": "time"}.get(given, given).replace("_", "-")
        raise UsageError(f"--{option} requires --submit", "give --submit as well")


def _local(session: Session, output: Path | None, mpicxx: Path | None, values: dict[str, Any]) -> int:
    """Check ranks on this machine."""
    from fablint.workflows import measurement, run_files
    from fablint.workflows.check import local_check

    given = next((name for name in _OF_CLUSTERS if values[name]), None)
    if given == "hosts":
        raise UsageError("--local and --hosts contradict each other", "give one of them")
    if given is not None:
        option = {"files": "from", "nics": "nic"}.get(given, given).replace("_", "-")
        raise UsageError(f"--{option} does not apply to --local", "it is for a cluster: give one of them")
    system = session.machine()
    confirm_ranks(session, values["ranks"], is_confirmed=values["yes"])
    request = local_check.local_request(system, values["ranks"])
    topology = run_files.load_topology(values["topology"])
    request = replace(
        request, topology=topology, full=values["full"], budget_s=values["budget"], media=given_media(values)
    )
    output = measurement.free_output(system, output)
    with session.context(mpicxx, values["launcher"]) as context:
        return session.outcome(local_check.check_local(context, request, output))


def _cluster(session: Session, output: Path | None, mpicxx: Path | None, values: dict[str, Any]) -> int:
    """Check hosts of a job, or those that were named."""
    from fablint.workflows import measurement
    from fablint.workflows.check.cluster_check import UnfitError, check_cluster

    request = _cluster_request(values)
    output = measurement.free_output(session.machine(), output)
    begun = session.machine().now().timestamp()
    try:
        with session.context(mpicxx, values["launcher"]) as context:
            return session.outcome(check_cluster(context, request, output))
    except UnfitError as error:
        session.fitness("quick", error.fitness, begun)
        raise


def _cluster_request(values: dict[str, Any]) -> ClusterCheckRequest:
    """Return the request of the options for a cluster."""
    from fablint.plan.check.suites import find_suite
    from fablint.plan.rows.refusals import refuse_media_within_hosts
    from fablint.workflows.check.cluster_check import ClusterCheckRequest
    from fablint.workflows.fabric_discovery import FabricRequest

    if values["ppn"] and values["ranks_per_nic"]:
        raise UsageError("--ppn and --ranks-per-nic contradict each other", "give one of them")
    if values["force"] and values["exclude_unfit"]:
        raise UsageError("--force and --exclude-unfit contradict each other", "give one of them")
    if values["full"] and values["suite"] not in (None, "full"):
        raise UsageError(f"--full and --suite {values['suite']} contradict each other", "give one of them")
    suite = find_suite("full" if values["full"] else values["suite"] or "quick", unequal=values["unequal"])
    files = (*((str(values["topology"]),) if values["topology"] else ()), *values["files"])
    fabric = FabricRequest(
        values["hosts"], values["exclude"], values["hostfile"], files, values["blocks"], values["nics"]
    )
    ranks = {"ranks_each": values["ppn"] or 1, "ranks_per_nic": values["ranks_per_nic"]}
    unfit: Literal["refuse", "exclude", "measure"] = "measure" if values["force"] else "refuse"
    unfit = "exclude" if values["exclude_unfit"] else unfit
    media = given_media(values)
    refuse_media_within_hosts(media)
    measured = {"budget_s": values["budget"], "media": media}
    return ClusterCheckRequest(fabric, suite, site=values["site"], unfit=unfit, **measured, **ranks)


# ------------------------------------------------------------------------------------------------ as a job


def _submitted(session: Session, output: Path | None, mpicxx: Path | None, values: dict[str, Any]) -> int:
    """Submit the check to the scheduler; if it is waited for, print its outcome."""
    from fablint.workflows import analysis, measurement, run_files
    from fablint.workflows.check.check_run import CheckOutcome
    from fablint.workflows.run_formats import read

    if values["detach"] and session.result_files:
        raise UsageError(
            f"--{next(iter(session.result_files))} and --detach contradict each other", "use fablint report"
        )
    output = measurement.free_output(session.machine(), output).absolute()
    request = _with_build(session, _job_request(session, output, mpicxx, values), mpicxx, values)
    done = submit_job(session, request, values["dry_run"], values["detach"])
    if done is None:
        return 0
    job, state = done
    if state.exit_code == PreflightError.exit_code:
        raise PreflightError(f"job {job.id} measured nothing: hosts are unfit", f"see {job.log}")
    if not (output / "zarr.json").exists():
        raise UsageError(f"job {job.id} measured nothing", f"see {job.log}")
    run = read(output)
    diagnosis = analysis.diagnose(run, run_files.load_topology(None, run))
    session.outcome(CheckOutcome(run, diagnosis, analysis.page_of(output)))
    return state.exit_code or 0


def _job_request(session: Session, output: Path, mpicxx: Path | None, values: dict[str, Any]) -> JobRequest:
    """Return the job: the same check, inside an allocation of the same hosts."""
    from fablint import cluster, discover
    from fablint.cluster import JobRequest
    from fablint.workflows import fabric_discovery, run_files
    from fablint.workflows.context import from_any_folder

    fabric = _cluster_request(values).fabric
    discover.read_files(fabric.files)  # now: in the job it would be too late
    if values["site"]:
        run_files.load_site(values["site"], session.machine())
    if not (fabric.hosts or fabric.hostfile):
        raise UsageError("--submit requires hosts", "name them with -w or --hostfile")
    allocation, unusable = fabric_discovery.usable_hosts(session.machine(), fabric)
    fields = request_fields(values)
    # -P: the job begins in the user's folder, and -m would import modules from there. -I would hide an installation
    # that PYTHONPATH or the user's own site-packages provide.
    hosts = [*allocation.hosts, *(finding.name for finding in unusable), *allocation.excluded]
    command = (sys.executable, "-P", "-m", "fablint.cli", "check", *_passed_on(hosts, values))
    command += ("-o", str(output), *(("--mpicxx", from_any_folder(mpicxx)) if mpicxx else ()))
    command += ("--launcher", from_any_folder(Path(values["launcher"]))) if values["launcher"] else ()
    cluster.find_scheduler(session.machine())
    return JobRequest(
        command, Path.cwd(), run=output, hosts=tuple(allocation.hosts), ranks=max(2, values["ppn"] or 1), **fields
    )


def _with_build(session: Session, request: JobRequest, mpicxx: Path | None, values: dict[str, Any]) -> JobRequest:
    """Build the engine here; if this machine cannot, return the job with the time that it needs for that."""
    from fablint.workflows import programs

    with session.context(mpicxx, values["launcher"]) as context:
        build_s = programs.build_before_job(context, given_media(values), is_dry=values["dry_run"])
    if not build_s:
        return request
    minutes = f"{build_s / 60:.0f} min"
    if request.time_s is None:
        session.say(f"this machine has no compiler for the engine: the job builds it, which takes up to {minutes}")
        return request
    session.say(f"this machine has no compiler for the engine: the job builds it, and may take {minutes} longer")
    return replace(request, time_s=request.time_s + build_s)


def _passed_on(hosts: Sequence[str], values: dict[str, Any]) -> list[str]:
    """Return the options of the check inside the job. `hosts` are all requested hosts; paths of files are absolute."""
    from fablint.model.names import fold

    words = ["-w", fold(hosts)]
    words += ["-x", values["exclude"]] if values["exclude"] else []
    for name in ("suite", "ppn", "ranks_per_nic", "budget", "blocks", *MEDIA):
        words += [f"--{name.replace('_', '-')}", str(values[name])] if values[name] is not None else []
    words += ["--nic", ",".join(values["nics"])] if values["nics"] else []
    words += [f"--{name}" for name in ("full", "unequal", "force") if values[name]]
    words += ["--exclude-unfit"] if values["exclude_unfit"] else []
    for name in ("topology", "site"):
        words += [f"--{name}", str(values[name].absolute())] if values[name] else []
    for given in values["files"]:
        name, mark, file = ("", "", given) if Path(given).exists() or "=" not in given else given.partition("=")
        words += ["--from", f"{name}{mark}{Path(file).absolute()}"]
    return words
