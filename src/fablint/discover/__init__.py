"""What the fabric is made of. So far: from a topology file that somebody wrote."""

from __future__ import annotations

from fablint.discover.topology_file import load_topology
from fablint.discover.topology_text import write_topology

__all__ = ["load_topology", "write_topology"]
