"""What the fabric is made of: which host hangs on which switch, which cables join them, how messages are routed.

From a topology file that somebody wrote (`load_topology`), or from every source that exists (`discover`).
"""

from __future__ import annotations

from fablint.discover.assumed_cables import with_presumed_cables
from fablint.discover.discovering import Discovered, discover, read_files
from fablint.discover.exports import KINDS, export, kind_of, write_host_files
from fablint.discover.tree import print_tree
from fablint.topology.file_reader import load_topology
from fablint.topology.file_writer import topology_document, write_topology

__all__ = [
    "KINDS",
    "Discovered",
    "discover",
    "export",
    "kind_of",
    "load_topology",
    "print_tree",
    "read_files",
    "topology_document",
    "with_presumed_cables",
    "write_host_files",
    "write_topology",
]
