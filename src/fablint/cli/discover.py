"""The verb `discover`: which switch each host is connected to, from all available sources."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fablint.cli.options import WRITTEN_FILE, fabric_options, nic_option, with_options
from fablint.cli.session import Session, columns, verb
from fablint.errors import IncompleteError, UsageError

if TYPE_CHECKING:
    from fablint.discover import DiscoveredFabric
    from fablint.model import Topology

FORMATS = ("yaml", "json", "slurm", "hostfiles")  # those of fablint.discover.FORMATS, which imports YAML

_options = with_options(
    click.option("-w", "--hosts", metavar="LIST", help="Hosts, as in nid[001000-001063] [those of the job]."),
    *fabric_options,
    nic_option,
    click.option(
        "-o", "--output", type=WRITTEN_FILE, metavar="FILE", help="Topology file to write; the suffix sets the format."
    ),
    click.option("--to", "kind", type=click.Choice(FORMATS), help="Format of FILE [by its suffix]."),
)


@verb(name="discover", short_help="Find out which switch each host is connected to.")
@_options
def discover(session: Session, output: Path | None, kind: str | None, **options: Any) -> int:
    """Find out which switch and group each host is connected to, from all available sources.

    Every host reports its NICs and their LLDP neighbours once, through the scheduler or ssh. On this machine Slurm, PBS
    and InfiniBand's ibnetdiscover and dump_fts are queried. --from reads saved output: lldpcli and lldptool,
    topology.conf and topology.yaml of Slurm, pbsnodes, ibnetdiscover, ibdiagnet, iblinkinfo, dump_fts, Slingshot's
    fabric_template.json and the tables of its topology tool. Sources that contradict each other are findings, and so
    are NICs with the address of another port (Slingshot), cables below the rate of comparable ones, and hosts that do
    not answer. Settings of NICs are checked by `fablint preflight`.

    FILE is a topology for --topology (.yaml, .json), Slurm's topology.conf (.conf), or a folder with a list of hosts
    for each switch and group.

    Exit codes: 1 something is at fault, 3 sources contradict each other or do not place all hosts.

    \b
    Examples:
      fablint discover -w nid[001000-001063] -o topology.json
      fablint discover --from ibnetdiscover.txt --from dump_fts.txt -o fabric.yaml
      fablint discover --from x1000c0r3b0=neighbors.json --from fabric_template.json -o lists/
    """
    from fablint import discover as stage
    from fablint.system.written_files import is_written_into
    from fablint.workflows.fabric_discovery import FabricRequest, discover_fabric

    if kind and output is None:
        raise UsageError("--to needs a file to write", "give one with -o")
    if output is not None:
        kind = kind or ("yaml" if is_written_into(output) else stage.infer_format(output))
        _refuse_taken(output, kind)
    fabric, allocation = discover_fabric(session.machine(), FabricRequest(**options))
    hosts = list(allocation.hosts) if allocation else []
    session.result(stage.format_tree(fabric, columns()), _facts(fabric, hosts))
    if fabric.topology is None:
        raise IncompleteError(*_nothing(fabric, len(hosts)))
    if output is not None and kind is not None:
        _write(fabric.topology, output, kind)
        session.say(f"{output} written")
    return fabric.exit_code


def _refuse_taken(output: Path, kind: str) -> None:
    """Raise UsageError where the result cannot be written; called before any host is contacted."""
    from fablint.system.written_files import is_written_into

    if is_written_into(output):
        if kind == "hostfiles":
            raise UsageError(f"hostfiles are a folder, which {output} cannot be", "name a folder with -o")
        return
    is_taken = output.exists() and (kind != "hostfiles" or not output.is_dir() or any(output.iterdir()))
    if is_taken:
        raise UsageError(f"{output}: exists already", "choose another name or remove it")
    if not output.absolute().parent.is_dir():
        raise UsageError(f"{output.absolute().parent} is not a directory", "create it, or write elsewhere")


def _nothing(fabric: DiscoveredFabric, hosts: int) -> tuple[str, str]:
    """Return the error where no source placed a host."""
    from fablint.snapshot.neighbours import RUNS

    silent = [report for report in fabric.sources if report.name == "LLDP"]
    hosts_text = f"the {hosts} hosts are" if hosts > 1 else "the hosts are"
    why = silent[0].silent if silent else ""
    daemon = "enable LLDP on the switches' ports" if why.startswith(RUNS) else "start lldpd on hosts and switches"
    return (
        f"no source reports to which switch {hosts_text} connected{f'; LLDP: {why}' if why else ''}",
        f"{daemon}, give a file with --from, or --blocks N if N hosts in a row share a switch",
    )


def _write(topology: Topology, output: Path, kind: str) -> None:
    from fablint import discover as stage
    from fablint.system.written_files import written_beside

    if kind == "hostfiles":
        stage.write_host_files(topology, output)
    else:
        with written_beside(output) as temporary:
            temporary.write_text(stage.export(topology, kind), encoding="utf-8")


def _facts(fabric: DiscoveredFabric, hosts: list[str]) -> dict[str, Any]:
    """Return the result as JSON."""
    from fablint import discover as stage
    from fablint.text.sentences import finding_facts

    return {
        "exit_code": fabric.exit_code,
        "hosts": hosts,
        "topology": stage.topology_document(fabric.topology) if fabric.topology else None,
        "findings": [finding_facts(finding) for finding in fabric.findings],
        "nics": [dataclasses.asdict(nic) for nic in fabric.nics],
        "sources": [
            {"name": source.name, "counts": dict(source.counts), "silent": source.silent} for source in fabric.sources
        ],
    }
