"""The verb `check`: of ranks on this machine, of the hosts of an allocation, or of hosts for which it submits a job."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from fablint.cli.common import (
    Duration,
    Session,
    Verb,
    fabric_options,
    mpicxx_option,
    nic_option,
    output_option,
    site_option,
    topology_option,
    verb,
)
from fablint.cli.jobs import handed_over, submit_options, wishes
from fablint.errors import PreflightError, UsageError

if TYPE_CHECKING:
    from fablint.cluster import JobRequest
    from fablint.workflows.cluster_check import Wanted
    from fablint.workflows.local_check import Checked

SUITES = ("quick", "edge", "local", "global", "switch-pairs", "bisection", "acceptance", "full")  # of plan.suites

hosts_option = click.option("-w", "--hosts", metavar="LIST", help="Measure these hosts: n[001-064].")
ppn_option = click.option("--ppn", type=click.IntRange(1), metavar="N", help="Ranks on each of the hosts [1].")
full_option = click.option("--full", is_flag=True, help="Measure all pairs, however many.")
budget_option = click.option(
    "--budget", type=Duration(), metavar="TIME", help="Time for all of it, such as 90s or 10m."
)
suite_option = click.option("--suite", type=click.Choice(SUITES), help="What is measured of a cluster [quick].")
unequal_option = click.option("--unequal", is_flag=True, help="Bisection: leave hosts out where halves are unequal.")

_OF_JOBS = ("dry_run", "detach", "begin", "account", "partition", "mail_user", "constraint", "time_s")
_OF_CLUSTERS = (
    *("hosts", "exclude", "hostfile", "files", "blocks", "nics", "ppn", "ranks_per_nic"),
    *("suite", "unequal", "submit", "site", "force", "exclude_unfit"),
)


_CLUSTER_OPTIONS = (
    hosts_option,
    *fabric_options,
    nic_option,
    ppn_option,
    click.option("--ranks-per-nic", type=click.IntRange(1), metavar="K", help="K ranks for each NIC, bound near it."),
    suite_option,
    unequal_option,
    click.option("--exclude-unfit", is_flag=True, help="Leave out hosts that preflight finds unfit."),
    click.option("--force", is_flag=True, help="Measure them all the same, if they answer."),
)


def _cluster_options(function: Verb) -> Verb:
    """Which hosts, what is known of them, and what is measured."""
    for option in reversed(_CLUSTER_OPTIONS):
        function = option(function)
    return function


@verb(short_help="Measure, judge and report, all in one.")
@click.option("--local", "ranks", type=int, metavar="N", help="Measure N ranks on this machine.")
@_cluster_options
@full_option
@output_option
@topology_option
@site_option
@budget_option
@submit_options
@mpicxx_option
def check(session: Session, output: Path | None, mpicxx: Path | None, **values: Any) -> int:
    """Measure, judge and report, all in one.

    Of a cluster every host is asked first whether it is fit (fablint preflight) and where it hangs; unfit hosts are not
    measured. Then it goes level after level, ranks of one host, hosts of one switch, of one group, of different groups;
    hosts that fail a level are left out of the next. A host that dies or hangs costs its own rounds. What is suspect
    after that is measured again, until every part is decided or the time is over; what is undecided then is named.

    The hosts are those of the job (Slurm, PBS) that it runs in, or those of -w or --hostfile, reached by ssh. Outside
    of a job --submit hands it to the scheduler and waits; --dry-run shows the script.

    Writes a run directory (by default fablint-DATE-TIME.run) with report/index.html and report/verdict.json in it. The
    exit code is the verdict's: 0 pass, 1 fault found, 3 incomplete or undecided; 4: hosts are unfit, see above.

    \b
    Examples:
      fablint check --local 8 -o today.run
      salloc --no-kill -N 64 fablint check
      fablint check -w 'nid[001000-001063]' --suite acceptance --submit --partition hpc --time 30m
    """
    if not values["submit"]:
        _refuse_job_options(values)
    if values["ranks"] is not None:
        return _local(session, output, mpicxx, values)
    if values["submit"]:
        return _submitted(session, output, mpicxx, values)
    return _cluster(session, output, mpicxx, values)


def _refuse_job_options(values: dict[str, Any]) -> None:
    given = next((name for name in _OF_JOBS if values[name]), None)
    if given is not None:
        option = {"time_s": "time"}.get(given, given).replace("_", "-")
        raise UsageError(f"--{option}: nothing would be submitted", "give --submit as well")


def told(session: Session, checked: Checked) -> int:
    """Print what a check came to; returns the exit code."""
    if checked.error:
        session.warn(checked.error)
    code = session.verdict(checked.run, checked.diagnosis)
    session.say(f"report: {checked.page}")
    return code


def _local(session: Session, output: Path | None, mpicxx: Path | None, values: dict[str, Any]) -> int:
    """Ranks on this machine."""
    from fablint.workflows import flow, local_check

    given = next((name for name in _OF_CLUSTERS if values[name]), None)
    if given == "hosts":
        raise UsageError("--local and --hosts contradict each other", "give one of them")
    if given is not None:
        option = {"files": "from", "nics": "nic"}.get(given, given).replace("_", "-")
        raise UsageError(f"--{option}: on which hosts?", "it is for a cluster: leave out --local")
    system = session.machine()
    asked = local_check.asked_local(system, values["ranks"])
    asked = replace(
        asked, topology=flow.load_topology(values["topology"]), full=values["full"], budget_s=values["budget"]
    )
    output = flow.free_output(system, output)
    with session.surroundings(mpicxx) as around:
        return told(session, local_check.check(around, asked, output))


def _cluster(session: Session, output: Path | None, mpicxx: Path | None, values: dict[str, Any]) -> int:
    """Hosts of a job, or those that were named."""
    from fablint.workflows import flow
    from fablint.workflows.cluster_check import UnfitError, check_cluster

    wanted = _wanted(values)
    output = flow.free_output(session.machine(), output)
    try:
        with session.surroundings(mpicxx) as around:
            return told(session, check_cluster(around, wanted, output))
    except UnfitError as error:
        session.fitness("quick", error.fitness)
        raise


def _wanted(values: dict[str, Any]) -> Wanted:
    """What the options ask of a cluster."""
    from fablint.plan.check.suites import find_suite
    from fablint.workflows.cluster_check import Wanted
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
    return Wanted(fabric, suite, budget_s=values["budget"], site=values["site"], unfit=unfit, **ranks)


# ------------------------------------------------------------------------------------------------ as a job


def _submitted(session: Session, output: Path | None, mpicxx: Path | None, values: dict[str, Any]) -> int:
    """Hand the check to the scheduler; where it is waited for, print what it came to."""
    from fablint.workflows import flow, local_check

    output = flow.free_output(session.machine(), output).absolute()
    request = _request(session, output, mpicxx, values)
    done = handed_over(session, request, values["dry_run"], values["detach"])
    if done is None:
        return 0
    job, state = done
    if state.exit_code == PreflightError.exit_code:
        raise PreflightError(f"job {job.id} measured nothing: hosts are unfit", f"see {job.log}")
    if not (output / "zarr.json").exists():
        raise UsageError(f"job {job.id} measured nothing", f"see {job.log}")
    run = flow.read(output)
    diagnosis = flow.diagnose(run, flow.load_topology(None, run))
    told(session, local_check.Checked(run, diagnosis, flow.page_of(output)))
    return state.exit_code or 0


def _request(session: Session, output: Path, mpicxx: Path | None, values: dict[str, Any]) -> JobRequest:
    """The job: the same check, inside an allocation of the same hosts."""
    from fablint import cluster, discover
    from fablint.cluster import JobRequest
    from fablint.workflows import fabric_discovery, flow

    fabric = _wanted(values).fabric
    discover.read_files(fabric.files)  # now: in the job it would be too late
    if values["site"]:
        flow.load_site(values["site"], session.machine())
    if not (fabric.hosts or fabric.hostfile):
        raise UsageError("--submit: for which hosts?", "name them with -w or --hostfile")
    allocation, out = fabric_discovery.usable_hosts(session.machine(), fabric)
    fields = wishes(values)
    # -P: the job begins in the user's folder, and -m would import modules from there. -I would hide an installation
    # that PYTHONPATH or the user's own site-packages provide.
    every = [*allocation.hosts, *(one.name for one in out), *allocation.excluded]
    command = (sys.executable, "-P", "-m", "fablint.cli", "check", *_passed_on(every, values))
    command += ("-o", str(output), *(("--mpicxx", _elsewhere(mpicxx)) if mpicxx else ()))
    cluster.find_scheduler(session.machine())
    return JobRequest(
        command, Path.cwd(), run=output, hosts=tuple(allocation.hosts), ranks=max(2, values["ppn"] or 1), **fields
    )


def _elsewhere(program: Path) -> str:
    """A program by a name that means the same in another folder: a mere name is looked for on the PATH."""
    return str(program.absolute()) if program.parent != Path() else str(program)


def _passed_on(hosts: Sequence[str], values: dict[str, Any]) -> list[str]:
    """The options of the check inside the job. `hosts` are all that were asked for; files are named from the root."""
    from fablint.text.names import fold

    words = ["-w", fold(hosts)]
    words += ["-x", values["exclude"]] if values["exclude"] else []
    for name in ("suite", "ppn", "ranks_per_nic", "budget", "blocks"):
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
