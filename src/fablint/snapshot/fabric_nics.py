"""Which of a host's NICs belong to the fabric, and which only manage it.

NICs with the name or of the kind of a fabric's (`hsn0`, `ib0`, `mlx5_0`, `cxi0`) if there is one; else those that are
not called like a management network's; of these, where speeds are known, the fastest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from fablint.snapshot.nics import NicFact

_FABRIC = re.compile(r"(hsn|ib|cxi|mlx|roce|hfi|opa|rdma|irdma|bnxt_re|qib|HCA)[\d_-]", re.IGNORECASE)
_MANAGEMENT = re.compile(r"(mgmt|bmc|ipmi|nmn|usb|idrac|oob|lo$|docker|veth|virbr|br-|vlan|tun|tap)", re.IGNORECASE)


def fabric_nics(named: Iterable[str], known: Mapping[str, NicFact]) -> set[str]:
    """Those of the NICs `named` that belong to the fabric. `known` are all NICs of the host, by name."""
    every = set(named) | {name for name, nic in known.items() if nic.kind != "virtual"}
    fast = {name for name in every if is_fabric(name, known.get(name))}
    if not fast:
        fast = {name for name in every if not _MANAGEMENT.match(name)} or every
        speeds = {name: nic.speed for name in fast if (nic := known.get(name)) and nic.speed}
        top = max(speeds.values(), default=None)
        fast = {name for name in fast if speeds.get(name, top) == top}
    return fast & set(named)


def is_fabric(name: str, nic: NicFact | None) -> bool:
    """Is it a fabric's by its name, or by what it is?"""
    return bool(_FABRIC.match(name)) or (nic is not None and nic.kind in ("infiniband", "cxi"))


def rails(nics: Sequence[NicFact]) -> list[NicFact]:
    """Those of a host's NICs that belong to the fabric."""
    known = {nic.name: nic for nic in nics if nic.kind != "virtual"}
    wanted = fabric_nics(known, known)
    return [nic for nic in nics if nic.name in wanted]
