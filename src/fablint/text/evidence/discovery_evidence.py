"""Evidence about cabling: what sources of topologies report, and hosts that are not where they are declared."""

from __future__ import annotations

from fablint.model.names import plural
from fablint.text.sentence_kind import Names, Plain, Sentence
from fablint.text.sentence_words import microseconds

placed_elsewhere = Sentence[str, float]("its times are those of {switch} ({median_s:us})")
place_unknown = Plain("the switch that it is connected to is unknown")
routing_loop = Sentence[str]("the forwarding tables have a routing loop: {loop}")
two_ends = Sentence[str, str]("sources report both {first} and {second} on this port; {first} was used")
several_devices = Sentence[int, Names]("""LLDP reports {count} devices on one port ({devices:fold}): a device
    between them does not support LLDP or forwards LLDP frames""")
same_guid = Sentence[str, str, Names]("""port {port} of the node with the GUID {guid} is at the end of several cables,
    to {ends:and}: several nodes have this GUID, and their hosts cannot be distinguished""")
cable_speed = Sentence[str, str, str]("{cable} runs at {rate}, {others}")
two_names = Sentence[str, str, str, str]("{source} names it {name}, {other} {other_name}; {source} was used")
contradiction = Sentence[str, str, str, str, str]("""{verb} {taken} according to {by}, {other} according to
    {other_by}; {by} was used""")
topology_ignored = Sentence[str, int]("""Slurm's topology {topology} is not used for {count} of its hosts: they are in
    the default or an earlier topology as well""")
topology_unread = Sentence[str, str]("Slurm's topology {topology} has the plugin {plugin}, which is not read")
topology_key = Sentence[str, int, int]("""the key {key} is not read, from line {line} on in {count:#line}: if it is
    misspelt, its hosts or switches are missing""")
topology_yaml_key = Sentence[str, str, str]("""Slurm's topology {topology} has the key {key} in {plugin}, which is not
    read: if it is misspelt, its hosts or switches are missing""")
hosts_unnamed = Sentence[int]("""the node descriptions of {count} adapters are defaults or shared, and no snapshot has
    their node GUIDs: they are named by these""")
fewer_cables = Sentence[int, str, int]("the sources report {count} {what}, most others of its kind have {usual}")
port_down = Sentence[str, str, str, str, str]("""port {port} of {switch} is down: a {cable} cable to {other}
    {other_port}""")

link_flaps = Sentence[str, str, str, str, str]("""the link between ports {here} and {there} went down {flaps} times at
    its ends, the last time {since} ago; its flap scores are {scores} of 6""")


@Sentence
def misplaced(*, declared: str, slow: int, pairs: int, median_s: float, near_s: float, far_s: float) -> str:
    return (
        f"declared on {declared}, but {slow} of its {plural(pairs, 'pair')} there take as long as pairs on different"
        f" switches ({microseconds(median_s)}; usual: {microseconds(near_s)} on one switch, {microseconds(far_s)} on"
        " different ones)"
    )


@Sentence
def switch_unknown(*, missing: int, hosts: int) -> str:
    most = "; these are more than half of the hosts, too many for a diagnosis" if 2 * missing > hosts else ""
    return f"no source gives the switch of {plural(missing, 'host')} of {hosts}{most}"


@Sentence
def mac_of_another_port(
    *, mac: str, own_switch: str, own_port: int, switch: str, port: str, there_switch: str, there_port: int
) -> str:
    return (
        f"its MAC {mac} belongs to {own_switch} port {own_port}, but it is connected to {switch} {port}, which is"
        f" {there_switch} port {there_port}"
    )
