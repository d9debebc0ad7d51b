"""The verb `discover`: which host hangs on which switch, from every source there is."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fablint.cli.common import Session, fabric_options, nic_option, verb
from fablint.errors import IncompleteError, UsageError

if TYPE_CHECKING:
    from fablint.discover import Discovered
    from fablint.model import Topology

KINDS = ("yaml", "json", "slurm", "hostfiles")  # those of fablint.discover.KINDS, which brings YAML
_WIDTH, _WIDEST = 80, 120


OPTIONS = (
    click.option("-w", "--hosts", metavar="HOSTS", help="Hosts, as in nid[001000-001063] [those of the job]."),
    *fabric_options,
    nic_option,
    click.option(
        "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write the topology; suffix: format."
    ),
    click.option("--to", "kind", type=click.Choice(KINDS), help="Format of FILE [by its suffix]."),
)


def _with_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(OPTIONS):
        function = option(function)
    return function


@verb(name="discover", short_help="Find out which host hangs on which switch.")
@_with_options
def discover(session: Session, output: Path | None, kind: str | None, **options: Any) -> int:
    """Find out which host hangs on which switch of which group, from every source that exists.

    Every host is asked once, through the scheduler or ssh, for its NICs and their LLDP neighbours. Asked on this
    machine are Slurm, PBS and InfiniBand's ibnetdiscover and dump_fts. --from reads what was saved elsewhere: lldpcli
    and lldptool, topology.conf and topology.yaml of Slurm, ibnetdiscover, iblinkinfo, dump_fts, Slingshot's
    fabric_template.json and the tables of its topology tool. Sources that contradict each other are findings, and so
    are NICs with the address of another port (Slingshot), cables that run below their like, and hosts that do not
    answer. How NICs are set is judged by `fablint preflight`.

    FILE is a topology for --topology (.yaml, .json), Slurm's topology.conf (.conf), or a folder with a list of hosts
    for each switch and group.

    Exit codes: 1 something is at fault, 3 sources contradict each other or do not tell of all hosts.

    \b
    Examples:
      fablint discover -w nid[001000-001063] -o topology.json
      fablint discover --from ibnetdiscover.txt --from dump_fts.txt -o fabric.yaml
      fablint discover --from x1000c0r3b0=neighbors.json --from fabric_template.json -o lists/
    """
    from fablint import discover as stage
    from fablint.workflows.fabric_discovery import FabricRequest, discover_fabric

    if kind and output is None:
        raise UsageError("--to needs a file to write", "give one with -o")
    if output is not None:
        kind = kind or stage.kind_of(output)
        _refuse_taken(output, kind)
    found, allocation = discover_fabric(session.machine(), FabricRequest(**options))
    width = min(shutil.get_terminal_size((_WIDTH, 24)).columns, _WIDEST)
    hosts = list(allocation.hosts) if allocation else []
    session.result(stage.print_tree(found, width), _facts(found, hosts))
    if found.topology is None:
        raise IncompleteError(*_nothing(found, len(hosts)))
    if output is not None and kind is not None:
        _write(found.topology, output, kind)
        session.say(f"{output} written")
    return found.exit_code


def _refuse_taken(output: Path, kind: str) -> None:
    """Before anybody is asked: is there a place for the result?"""
    taken = output.exists() and (kind != "hostfiles" or not output.is_dir() or any(output.iterdir()))
    if taken:
        raise UsageError(f"{output}: exists already", "choose another name or remove it")
    if not output.absolute().parent.is_dir():
        raise UsageError(f"{output.absolute().parent} is no directory", "create it, or write elsewhere")


def _nothing(found: Discovered, hosts: int) -> tuple[str, str]:
    """What to say where no source placed a host."""
    from fablint.snapshot.neighbours import RUNS

    silent = [report for report in found.sources if report.name == "LLDP"]
    what = f"the {hosts} hosts hang" if hosts > 1 else "the hosts hang"
    why = silent[0].silent if silent else ""
    daemon = "switch LLDP on at the switches' ports" if why.startswith(RUNS) else "start lldpd on hosts and switches"
    return (
        f"no source says on which switch {what}{f'; LLDP: {why}' if why else ''}",
        f"{daemon}, give a file with --from, or --blocks N if N hosts in a row share a switch",
    )


def _write(topology: Topology, output: Path, kind: str) -> None:
    from fablint import discover as stage

    if kind == "hostfiles":
        stage.write_host_files(topology, output)
    else:
        output.write_text(stage.export(topology, kind), encoding="utf-8")


def _facts(found: Discovered, hosts: list[str]) -> dict[str, Any]:
    """The result as JSON."""
    from fablint import discover as stage

    return {
        "format": 1,
        "exit_code": found.exit_code,
        "hosts": hosts,
        "topology": stage.topology_document(found.topology) if found.topology else None,
        "findings": [finding.model_dump(mode="json") for finding in found.findings],
        "nics": [dataclasses.asdict(nic) for nic in found.nics],
        "sources": [{"name": one.name, "told": dict(one.told), "silent": one.silent} for one in found.sources],
    }
