"""Arguments and options that several verbs have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from fablint.cli.param_types import Duration, Loss, RunPath, WrittenFile

SUITES = ("quick", "edge", "local", "global", "switch-pairs", "bisection", "acceptance", "full")  # of plan.check.suites

FILE = click.Path(path_type=Path)
WRITTEN_FILE = WrittenFile()
RUN = RunPath()


def with_options(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a decorator that adds options in this order."""

    def decorate(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def _nic_names(_: click.Context, __: click.Parameter, text: str | None) -> tuple[str, ...]:
    """Return the names in `NAME[,NAME]`. Raises UsageError."""
    from fablint.errors import UsageError
    from fablint.model.names import plain

    names = tuple(name.strip() for name in text.split(",")) if text is not None else ()
    if bad := [name for name in names if not name or plain(name) != name]:
        raise UsageError(f"--nic: '{bad[0]}' is not a name of a NIC", "write --nic ens3f0np0,ens3f1np1")
    return names


run_argument = click.argument("run", type=RUN)
runs_argument = click.argument("runs", nargs=-1, required=True, type=RUN, metavar="RUN|FILE...")
output_option = click.option("-o", "--output", type=FILE, metavar="RUN", help="Run directory to write.")
mpicxx_option = click.option(
    "--mpicxx", type=FILE, metavar="PROGRAM", help="MPI C++ compiler to build the engine with."
)
launcher_option = click.option(
    "--launcher",
    metavar="NAME",
    default="",
    help="Start the ranks with this program. ssh, srun, direct (this machine): without MPI [MPI's own, then srun].",
)
ranks_option = click.option(
    "-n", "--ranks", type=click.IntRange(1), default=2, show_default=True, help="Number of ranks."
)
nic_option = click.option(
    "--nic",
    "nics",
    metavar="NAME[,NAME]",
    callback=_nic_names,
    help="NICs that messages take, such as ens3f0np0 or mlx5_0 [detected].",
)
_TOPOLOGY_HELP = "Topology file: the switch of each host (YAML)"
_SITE_HELP = "Site file (TOML): thresholds of pairs, settings of hosts"
topology_option = click.option("--topology", type=FILE, metavar="FILE", help=f"{_TOPOLOGY_HELP}.")
site_option = click.option("--site", type=FILE, metavar="FILE", help=f"{_SITE_HELP}.")
# Of verbs that read a run.
run_topology_option = click.option("--topology", type=FILE, metavar="FILE", help=f"{_TOPOLOGY_HELP} [the run's own].")
run_site_option = click.option("--site", type=FILE, metavar="FILE", help=f"{_SITE_HELP} [the run's own].")
baseline_option = click.option(
    "--baseline", metavar="NAME", help="Also compare with a baseline: see fablint history baseline."
)
findings_option = click.option(
    "--findings",
    type=FILE,
    metavar="FILE",
    help="JSON results of loopback tests, to distinguish host, NIC, cable and port.",
)

# Hosts, and additional sources about the fabric.
exclude_option = click.option("-x", "--exclude", metavar="LIST", help="Exclude these hosts.")
hostfile_option = click.option("--hostfile", type=FILE, metavar="FILE", help="Use the hosts in FILE.")
measured_hostfile_option = click.option(
    "--hostfile", type=FILE, metavar="FILE", help="Ranks on the hosts in FILE, HOST slots=N on each line [1 on each]."
)
fabric_options: Sequence[Callable[[Any], Any]] = (
    exclude_option,
    hostfile_option,
    click.option(
        "--from",
        "files",
        multiple=True,
        metavar="[NAME=]FILE",
        help="Saved output of a tool, or a topology file; NAME: its switch or host. May be repeated.",
    ),
    click.option(
        "--blocks",
        type=click.IntRange(1),
        metavar="N",
        help="If no source knows: every N consecutive hosts share a switch.",
    ),
)

# What is measured.
hosts_option = click.option("-w", "--hosts", metavar="LIST", help="Measure these hosts: n[001-064].")
ppn_option = click.option("--ppn", type=click.IntRange(1), metavar="N", help="Ranks on each of the hosts [1].")
full_option = click.option("--full", is_flag=True, help="Measure all pairs, regardless of their number.")
budget_option = click.option("--budget", type=Duration(), metavar="TIME", help="Total time, such as 90s or 10m.")
until_option = click.option(
    "--until", type=Loss(), metavar="LOSS", help="Measure until a loss such as 8% would be named, or the budget ends."
)
suite_option = click.option("--suite", type=click.Choice(SUITES), help="Levels of a cluster check [quick].")
unequal_option = click.option(
    "--unequal", is_flag=True, help="Bisection: exclude surplus hosts if the halves differ in size."
)
