"""Confirmation before many more ranks than CPUs are started on one machine."""

from __future__ import annotations

import sys

import click

from fablint.cli.session import Session
from fablint.errors import UsageError

MOST_PER_CPU = 32  # ranks; with more the start takes minutes, and figures describe the scheduler of the kernel

yes_option = click.option("--yes", is_flag=True, help="Start many more ranks than there are CPUs without confirmation.")


def confirm_ranks(session: Session, ranks: int, *, is_confirmed: bool) -> None:
    """Ask on a terminal whether to start so many ranks, where the CPUs are known and far fewer.

    Parameters
    ----------
    session
        The call.
    ranks
        Ranks to start: on this machine, or in the Slurm job of this call.
    is_confirmed
        The answer given before, with --yes.

    Raises
    ------
    UsageError
        The answer is no, or there is no terminal to ask on.
    """
    from fablint.measure.oversubscription import slurm_cpus

    system = session.machine()
    cpus = sum(slurm_cpus(system.environ)) or len(system.affinity())
    if is_confirmed or ranks <= MOST_PER_CPU * cpus or "PBS_NODEFILE" in system.environ:
        return
    problem = f"{ranks:,} ranks on {cpus:,} CPUs"
    if sys.stdin.isatty() and sys.stderr.isatty() and click.confirm(f"fablint: {problem}: start them?", err=True):
        return
    raise UsageError(problem, f"give at most {MOST_PER_CPU * cpus:,}, or --yes")
