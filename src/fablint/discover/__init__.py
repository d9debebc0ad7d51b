"""Discovery of the fabric: the switch of each host, the cables between switches, and the routing of messages.

The topology comes from a topology file (`load_topology`) or is merged from all available sources (`discover`).
"""

from __future__ import annotations

from fablint.discover.assumed_cables import add_assumed_cables
from fablint.discover.discovering import DiscoveredFabric, discover, read_files
from fablint.discover.exports import FORMATS, export, infer_format, write_host_files
from fablint.discover.tree import format_tree
from fablint.topology.file_reader import load_topology
from fablint.topology.file_writer import topology_document, write_topology

__all__ = [
    "FORMATS",
    "DiscoveredFabric",
    "add_assumed_cables",
    "discover",
    "export",
    "format_tree",
    "infer_format",
    "load_topology",
    "read_files",
    "topology_document",
    "write_host_files",
    "write_topology",
]
