"""Export of a topology: YAML, JSON, Slurm's topology.conf, and a list of hosts for each switch and group."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from fablint.errors import UsageError
from fablint.model import Topology
from fablint.model.names import natural
from fablint.topology.file_writer import folded_runs, topology_document, write_topology

FORMATS = ("yaml", "json", "slurm", "hostfiles")
_SUFFIX = {".yaml": "yaml", ".yml": "yaml", ".json": "json", ".conf": "slurm"}
_NO_FILE_NAME = re.compile(r"[^A-Za-z0-9_.:-]|^\.+")


def infer_format(output: Path) -> str:
    """Return the format that the suffix of a file name stands for; without a suffix, a folder of host files.

    Raises UsageError for an unknown suffix.
    """
    if output.is_dir() or not output.suffix:
        return "hostfiles"
    if output.suffix not in _SUFFIX:
        suffixes = ", ".join(_SUFFIX)
        raise UsageError(
            f"{output}: the suffix stands for no format", f"use {suffixes}, a folder, or --to {'|'.join(FORMATS)}"
        )
    return _SUFFIX[output.suffix]


def export(topology: Topology, kind: str) -> str:
    """Return the text of a file in the format `kind`. Raises UsageError for a name that the format does not allow."""
    if kind == "yaml":
        return write_topology(topology)
    if kind == "json":
        return json.dumps(topology_document(topology), indent=1) + "\n"
    return _slurm(topology)


def write_host_files(topology: Topology, folder: Path) -> int:
    """Write `switches/NAME.txt` and `groups/NAME.txt` with one host per line; return the number of files.

    Raises UsageError for a folder that is not empty.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: exists already", "choose another name or remove it")
    files = _host_files(topology)
    for name, hosts in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{host}\n" for host in hosts))
    return len(files)


def _host_files(topology: Topology) -> dict[str, list[str]]:
    """Return the hosts of each file, by file name. A host with NICs on several switches is in the file of each."""
    ends = [(end.host, switch) for end, switch in topology.nic_switch.items()]
    files: dict[str, dict[str, None]] = defaultdict(dict)
    for host, name in [*topology.host_switch.items(), *ends]:
        switch = topology.switches[name]
        files[f"switches/{_file_name(name)}.txt"][host] = None
        if switch.group:
            files[f"groups/{_file_name(switch.group)}.txt"][host] = None
    return {name: sorted(hosts, key=natural) for name, hosts in files.items()}


def _file_name(name: str) -> str:
    return _NO_FILE_NAME.sub("_", name)


def _slurm(topology: Topology) -> str:
    """Return topology.conf: switches, their groups, and one root. A host is on the switch of its first NIC."""
    hosts: dict[str, list[str]] = defaultdict(list)
    for host, switch in topology.host_switch.items():
        hosts[switch].append(host)
    groups: dict[str, list[str]] = defaultdict(list)
    lines = [f"# {topology.source}" if topology.source.isprintable() else "#"]
    for name in topology.switches:
        if there := hosts.get(name):
            lines.append(f"SwitchName={name} Nodes={_node_list(there)}")
            groups[topology.switches[name].group].append(name)
    loose = groups.pop("", [])
    top = [*(_free_name(group, topology) for group in groups), *loose]
    for group, switches in groups.items():
        lines.append(f"SwitchName={_free_name(group, topology)} Switches={','.join(switches)}")
    if len(top) > 1:
        root = next(name for name in ("fabric", "root", "fabric-root") if name not in {*topology.switches, *top})
        lines.append(f"SwitchName={root} Switches={','.join(top)}")
    return "\n".join(lines) + "\n"


def _free_name(group: str, topology: Topology) -> str:
    """Return a name for a group that no switch has, since Slurm treats a group as a switch."""
    return f"group-{group}" if group in topology.switches else group


def _node_list(hosts: Sequence[str]) -> str:
    """Fold hosts as `nid[001000-001003],login1`: Slurm accepts no text after the bracket."""
    plain: list[str] = []
    for folded, run in folded_runs(sorted(hosts, key=natural)):
        plain += [folded] if folded.endswith("]") or len(run) == 1 else run
    return ",".join(plain)
