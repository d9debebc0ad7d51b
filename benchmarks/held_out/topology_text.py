"""A fabric as a topology file of fablint: what a site would know of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from held_out.fabrics import Fabric

KEY = 100  # hosts of one key: YAML refuses keys of more than 1,024 letters


def topology_yaml(fabric: Fabric, cables: bool = True) -> str:
    """The topology file; without `cables` the switches of the hosts and no more."""
    lines = ["format: 1", "switches:"]
    used = range(len(fabric.switches)) if cables else sorted(set(fabric.host_switch.tolist()))
    lines += [f"  {fabric.switches[switch]}: {{group: {fabric.groups[switch]}}}" for switch in used]
    lines.append("hosts:")
    lines += [
        f"  {host}: {fabric.switches[switch]}" for host, switch in zip(fabric.hosts, fabric.host_switch, strict=True)
    ]
    if cables and len(fabric.links):
        lines.append("links:")
        lines += [f"  - [{fabric.switches[a]}, {fabric.switches[b]}]" for a, b in fabric.links[::2].tolist()]
        lines += routing_lines(fabric, fabric.hosts)
    return "\n".join(lines) + "\n"


def routing_lines(fabric: Fabric, names: Sequence[str]) -> list[str]:
    """How paths are chosen: forwarding tables where routing is static and there is a choice.

    `names` has the host of each endpoint: a host with several NICs is there several times.
    """
    if fabric.routing == "adaptive":
        return ["routing: {kind: adaptive, minimal_share: 1.0}"]
    if fabric.routing == "ecmp":
        return ["routing: ecmp"]
    next_switch: dict[int, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    seen: set[tuple[int, str]] = set()
    for (_, to), alternatives in fabric.paths.items():
        for host in fabric.hosts_of(to).tolist():
            for link in alternatives[host % len(alternatives)]:
                a, b = fabric.links[link].tolist()
                if (a, names[host]) not in seen:
                    seen.add((a, names[host]))
                    next_switch[a][b].append(names[host])
    lines = ["forwarding:"]
    for a, towards in next_switch.items():
        lines.append(f"  {fabric.switches[a]}:")
        for b, hosts in towards.items():
            subset = [hosts[at : at + KEY] for at in range(0, len(hosts), KEY)]
            lines += [f'    "{_folded(one)}": {fabric.switches[b]}' for one in subset]
    return lines


def _folded(hosts: list[str]) -> str:
    """`node[01,03]` of hosts whose names differ in the number alone."""
    return f"node[{','.join(sorted(host.removeprefix('node') for host in hosts))}]"
