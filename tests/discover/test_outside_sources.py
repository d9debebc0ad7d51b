"""Published outputs of other people's fabrics: names, ports and topologies as these people have them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from discovery_help import BareFakeSystem

from fablint.discover.discovering import discover
from fablint.discover.facts import Facts
from fablint.discover.sources import SavedOutput, read_saved
from fablint.errors import UsageError
from fablint.model import State
from fablint.snapshot import CollectedSnapshots, snapshot_of
from fablint.snapshot.parsers.lldp import neighbours
from fablint.text import evidence as seen
from fablint.text.evidence_sentences import sentences
from pinned import pinned_by

PINNED = pinned_by("discover.toml", __file__)

OUTSIDE = Path(__file__).parents[1] / "fixtures" / "outside"


def text_of(name: str) -> str:
    return (OUTSIDE / f"{name}.txt").read_text()


def read(text: str, device: str = "") -> Facts:
    return read_saved(SavedOutput("given", text, device))[1]


def places(facts: Facts) -> dict[str, str]:
    return {place.host: place.switch for place in facts.attachments}


# ------------------------------------------------------------------------------------------------ Slurm


@pytest.mark.parametrize(
    "text",
    [
        text_of("28-slurm-block-spaces.conf"),
        "BlockName= 8fb4-uuid Nodes =node-1,node-2\nBlockName\t=\t9fb4-uuid Nodes=node-[3-4]\n",
        "RingName = 8fb4-uuid Nodes = node-[1-2]\nRingName=9fb4-uuid Nodes=node-[3-4]\n",
        "SwitchName = 8fb4-uuid Nodes = node-1,node-2 LinkSpeed = 100\nswitchname=9fb4-uuid nodes = node-[3-4] # x\n",
    ],
)
def test_blanks_around_equals_signs(text: str) -> None:
    assert places(read(text)) == {f"node-{n}": "8fb4-uuid" if n < 3 else "9fb4-uuid" for n in range(1, 5)}


def test_commented_blocks_are_no_blocks() -> None:
    assert set(places(read(text_of("30-cyclecloud-blocks.conf")))) == {f"hpcbench-hpc-{n}" for n in (9, 13, 17)}


def test_hosts_of_all_topologies_are_read() -> None:
    facts = read(text_of("29-slurm-several-topologies.yaml"))
    expected = {"s1": range(1, 3), "s2": range(3, 5), "b1": range(5, 9), "b2": range(9, 13)}
    assert places(facts) == {f"node{n:02}": name for name, nodes in expected.items() for n in nodes}
    assert {fact.name: fact.group for fact in facts.switches}["s1"] == "sw_root"
    assert facts.findings == ()


def test_of_a_host_in_two_topologies_the_default_one_counts_and_the_other_is_named() -> None:
    text = (
        "- topology: first\n  block: {blocks: [{block: b1, nodes: 'n[1-4]'}]}\n"
        "- topology: usual\n  cluster_default: true\n  tree: {switches: [{switch: s1, nodes: 'n[1-2]'}]}\n"
    )
    facts = read(text)
    assert places(facts) == {"n1": "s1", "n2": "s1", "n3": "b1", "n4": "b1"}
    (finding,) = facts.findings
    assert (finding.state, finding.component) == (State.NOT_JUDGED, "config")
    assert PINNED["topology first is not used"] in sentences(finding.evidence)


@pytest.mark.parametrize(
    "plugin",
    [
        "ring: {rings: [{ring: r1, nodes: 'n[1-2]'}]}",
        "ring: {rings: {ring: r1, nodes: 'n[1-2]'}}",
        "torus3d: {toruses: [{name: r1, dims: {x: 2, y: 1, z: 1}, nodes: 'n[1-2]'}]}",
        "torus3d: {toruses: {name: r1, nodes: 'n[1-2]', placements: {dims: {x: 1}, anchor_spacing: {x: 1}}}}",
        "torus3d: {toruses: [{name: r1, regions: [{anchor: {x: 0}, nodes: n1}, {dims: {x: 1}, nodes: n2}]}]}",
        "tree: {switches: {switch: r1, nodes: 'n[1-2]', link_speed: 1}}\n  flat: {alpha_step_rank: true}",
        "block: {block_sizes: [2], blocks: [{block: r1, nodes: 'n[1-2]'}]}",
    ],
)
def test_each_plugin_has_its_rows(plugin: str) -> None:
    facts = read(f"- topology: t\n  cluster_default: true\n  {plugin}\n")
    assert (places(facts), facts.findings) == ({"n1": "r1", "n2": "r1"}, ())


def test_an_unknown_plugin_is_named() -> None:
    facts = read("- topology: t\n  moebius: {strips: [{strip: m1, nodes: n1}]}\n- topology: u\n  flat: true\n")
    assert ["plugin moebius" in sentences(finding.evidence) for finding in facts.findings] == [True]


@pytest.mark.parametrize(
    ("text", "key", "line", "count"),
    [
        ("SwitchName=s1 Nodes=n[1-2]\nSwitchName=s2 Node=n[3-4]\n", "node", 2, 1),
        ("# racks\nswitchname=s1 \\\n  nodes=n1\nswitchname=s2 nods=n2\nSwitchName=s3 nods=n3\n", "nods", 4, 2),
        ("SwitchName=s1 \\\n Nodes=n1 \\\n LinkSpede=100 # Gb/s, Rate=1\n", "linkspede", 1, 1),
        ("BlockName=b1 Nodes=n[1-2]\nBlockSize=2\nBlockSizs=2,4\n", "blocksizs", 3, 1),
        ("RingName=r1 Nodes=n[1-2] Weight=5\n", "weight", 1, 1),
        ("SwitchName=s1 Nodes=n1\nInclude racks.conf\n", "include", 2, 1),
    ],
)
def test_a_key_of_topology_conf_that_is_not_read_is_named_with_its_line(text, key, line, count) -> None:
    (finding,) = read(text).findings
    assert finding.state is State.NOT_JUDGED
    assert finding.evidence == (seen.topology_key(key, line, count),)


@pytest.mark.parametrize(
    "text",
    [
        "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[1-2]\nSwitchName=s1 Level=1 Nodes=n[1-2] Switches=s0\n",
        "BlockName=b1 BlockIndex=0 Nodes=n[1-2] BlockSize=2\nAggregatedBlock=b1 BlockIndex=1 BlockSize=4\n",
        "RingName=r1 RingIndex=0 RingSize=2 Nodes=n[1-2]\n",
        "TorusName=t1 Dims=2x1x1 Nodes=n[1-2]\n  TorusName=t1 PlacementDims=1x1x1(1) Anchors=2\n",
        "BlockName=b1 Nodes=n[1-2]\nBlockLevels=0,1\n",
        "# Nods=n9\nBlockName=b1 Nodes=n[1-2] # Rack=5\nBlockSizes=2\n",
    ],
)
def test_all_keys_of_slurm_are_read(text: str) -> None:
    assert read(text).findings == ()


@pytest.mark.parametrize(
    ("plugin", "kind", "key"),
    [
        ("tree: {switches: [{switch: s1, node: 'n[1-2]'}]}", "tree", "node"),
        ("block: {block_size: [2], blocks: [{block: b1, nodes: n1}]}", "block", "block_size"),
        ("ring: {rings: [{ring: r1, nodes: n1, weight: 3}]}", "ring", "weight"),
        ("torus3d: {torus: [{name: r1, nodes: n1}]}", "torus3d", "torus"),
        ("torus3d: {toruses: [{name: r1, node: n1, dims: {x: 2, y: 1, z: 1}}]}", "torus3d", "node"),
        ("torus3d: {toruses: [{name: r1, regions: [{ancor: {x: 0}, nodes: n1}]}]}", "torus3d", "ancor"),
        ("torus3d: {toruses: [{name: r1, nodes: n1, placements: [{dims: {X: 1}}]}]}", "torus3d", "X"),
        ("torus3d: {toruses: [{name: r1, nodes: n1, dims: 4x4x2}]}", "torus3d", "dims"),
        ("tree: {switches: [{switch: s1, nodes: [n1, n2]}]}", "tree", "nodes"),
        ("tree: {switches: [s1, s2]}", "tree", "switches"),
    ],
)
def test_a_key_of_topology_yaml_that_is_not_read_is_named(plugin: str, kind: str, key: str) -> None:
    facts = read(f"- topology: t\n  {plugin}\n")
    assert [finding.evidence for finding in facts.findings] == [(seen.topology_yaml_key("t", kind, key),)]
    assert set(places(facts)) <= {"n1"}


@pytest.mark.parametrize(
    "text",
    [
        "topology: t\ntree:\n  switches:\n  - switch: r1\n    nodes: n[1-2]\n",
        "---\n  - cluster_default: true\n    topology: t\n    tree: {switches: {switch: r1, nodes: 'n[1-2]'}}\n",
        '- "topology": "t"\n  "tree":\n    "switches":\n      - "switch": "r1"\n        "nodes": "n[1-2]"\n',
        '[{"topology": "t", "block": {"blocks": [{"block": "r1", "nodes": "n[1-2]"}]}}]',
        '{"topology": "t", "ring": {"rings": [{"ring": "r1", "nodes": "n[1-2]"}]}}',
    ],
)
def test_forms_of_topology_yaml(text: str) -> None:
    facts = read(text)
    assert (places(facts), facts.findings) == ({"n1": "r1", "n2": "r1"}, ())


# ------------------------------------------------------------------------------------------------ Slingshot

FLAPS = (OUTSIDE.parent / "discover" / "stt-show-flaps.txt").read_text()
HEALTH = (OUTSIDE.parent / "discover" / "stt-show-links-health.txt").read_text()


def cable_findings(facts: Facts) -> list[tuple[str, frozenset[str], str]]:
    """State, switches and evidence of each finding."""
    return [
        (
            one.state.value,
            frozenset(node for end in one.components[0].ends for node in end.nodes),
            sentences(one.evidence),
        )
        for one in facts.findings
    ]


def test_links_that_flap() -> None:
    ((worst, ends, words), (other, _, other_words)) = cable_findings(read(FLAPS))
    assert (worst, other) == ("FAULT", "SUSPECT")
    assert ends == {"x1000c0r3b0", "x1001c0r7b0"}
    assert PINNED["between ports j104p0"] in words
    assert "the last time 0:04:10 ago" in words
    assert "went down 3 and 1 times" in other_words
    assert "flap scores are 2 and 2 of 6" in other_words
    assert {(wire.a, wire.b) for wire in read(FLAPS).wires} == {
        ("x1000c0r3b0", "x1001c0r7b0"),
        ("x1000c0r3b0", "x1000c0r7b0"),
    }


SCORES = [("6/0", "FAULT"), ("0/6", "FAULT"), ("5/5", "SUSPECT"), ("3/0", "SUSPECT")]


@pytest.mark.parametrize(("scores", "state"), SCORES)
def test_the_score_of_the_worse_end_counts(scores: str, state: str) -> None:
    assert cable_findings(read(FLAPS.replace("6/6", scores)))[0][0] == state


def test_without_flaps_there_is_no_finding() -> None:
    facts = read(FLAPS[: FLAPS.index(" x1000c0r3j104p0")])
    assert (facts.findings, facts.wires) == ((), ())


def test_links_that_are_down() -> None:
    ((state, _, words), (edge_state, ends, edge)) = cable_findings(read(HEALTH))
    assert (state, words) == ("FAULT", PINNED["port j104p0 of x1000c0r3b0"])
    assert (edge_state, ends) == ("FAULT", {"x1000c0r3b0", "x1000c0s0b0n0"})
    assert "j11p0" in edge
    assert "hsn0" in edge


@pytest.mark.parametrize(
    ("xname", "end"),
    [
        ("x1000c0s0b0n0h0", "x1000c0s0b0n0/hsn0"),
        ("x3001c0s21b1n0h3", "x3001c0s21b1n0/hsn3"),
        ("x1000c0s0b0n0", ""),  # a host alone is no end of a cable
        ("x1000c0s0b0", ""),
    ],
)
def test_links_of_hosts(xname: str, end: str) -> None:
    edge = HEALTH.replace("x1000c0s0b0n0h0", xname)
    flap = FLAPS.replace("x1000c0r7j112p0", xname)
    labels = [one.components[0].ends[1].label for text in (edge, flap) for one in read(text).findings[1:]]
    assert labels == [end] * (2 * bool(end))
    assert len(read(flap).wires) == 1


@pytest.mark.parametrize("text", [FLAPS, HEALTH])
def test_a_cut_off_output_of_stt_has_no_invented_cable(text: str) -> None:
    whole = {words for *_, words in cable_findings(read(text))}
    for end in range(text.index("\n") + 1, len(text), 7):
        try:
            found = {words for *_, words in cable_findings(read(text[:end]))}
        except UsageError:
            continue
        assert found <= whole


def test_other_output_of_stt_is_refused_as_such() -> None:
    text = "(STT) show switch ports x1000c0r3\nCollecting data using 'dgrlinkstat' script.\n| port | media |\n"
    with pytest.raises(UsageError, match="output of STT that is not read"):
        read(text)
    with pytest.raises(UsageError, match="unknown format"):
        read("hello")


# ------------------------------------------------------------------------------------------------ LLDP


def test_a_management_port_of_a_switch_leads_to_no_switch_of_the_fabric() -> None:
    facts = read(text_of("25-lldp-management-port.json"), "Leaf301")
    ends = {wire.b: (wire.a_port, wire.b_port) for wire in facts.wires}
    assert "mgmt-sw1" not in ends | {fact.name: () for fact in facts.switches}
    assert ends["gpu-node-1.cluster.example.com"] == ("Ethernet0", "ens3f0np0")
    assert "Spine1" in ends


def lldp(port: str, name: str, port_id: tuple[str, str], descr: str, bridge: bool | None = True) -> str:
    chassis: dict[str, object] = {"id": {"type": "mac", "value": "1c:34:da:00:00:aa"}}
    if bridge is not None:
        chassis["capability"] = [{"type": "Bridge", "enabled": bridge}, {"type": "Station", "enabled": not bridge}]
    there = {"id": {"type": port_id[0], "value": port_id[1]}, "descr": descr}
    entry = {"via": "LLDP", "chassis": {name: chassis} if name else chassis, "port": there}
    return json.dumps({"lldp": {"interface": [{port: entry}]}})


@pytest.mark.parametrize(
    ("here", "there"), [("mgmt0", "Gi1/1"), ("Management1", "1"), ("fxp0", "ge-0/0/3"), ("swp1", "mgmt0")]
)
def test_cables_at_management_ports_are_none_of_the_fabric(here: str, there: str) -> None:
    two = json.loads(lldp("swp49", "spine1", ("ifname", "swp3"), ""))
    two["lldp"]["interface"] += json.loads(lldp(here, "other", ("ifname", there), ""))["lldp"]["interface"]
    facts = read(json.dumps(two), "leaf1")
    assert [(wire.a_port, wire.b, wire.b_port) for wire in facts.wires] == [("swp49", "spine1", "swp3")]


def test_the_agent_of_a_nic_is_no_device() -> None:
    mac = ("mac", "1c:34:da:00:00:aa")
    both = json.loads(lldp("Ethernet4", "", mac, "", None))
    both["lldp"]["interface"] += json.loads(lldp("Ethernet4", "n1", ("mac", "b8:ce:f6:00:00:02"), "ens3", False))[
        "lldp"
    ]["interface"]
    facts = read(json.dumps(both), "leaf1")
    assert [(wire.b, wire.b_port) for wire in facts.wires] == [("n1", "ens3")]
    assert facts.findings == ()


@pytest.mark.parametrize(
    ("port_id", "descr", "name"),
    [
        (("local", "etp1"), "Ethernet0", "Ethernet0"),  # SONiC
        (("local", "512"), "xe-0/0/1", "xe-0/0/1"),  # Junos
        (("local", "561"), "et-0/0/3:1", "et-0/0/3:1"),
        (("local", "17"), "link to n17", "17"),  # a remark of the site
        (("local", "etp1"), "n17", "etp1"),
        (("ifname", "Ethernet1/1"), "n17", "Ethernet1/1"),  # as people type it
        (("ifname", "Gi3/36"), "GigabitEthernet3/36", "Gi3/36"),
        (("mac", "b8:ce:f6:00:00:01"), "ens3f0np0", "ens3f0np0"),
        (("ifname", "Eth1/5/1"), "rack 7, n5", "Eth1/5/1"),  # Onyx
        (("ifname", "ethernet1/1/9"), "n9", "ethernet1/1/9"),  # OS10
        (("ifname", "ethernet-1/3"), "", "ethernet-1/3"),  # SR Linux
        (("ifname", "Twenty-FiveGigE1/0/4"), "Twenty-FiveGigE1/0/4 Interface", "Twenty-FiveGigE1/0/4"),  # Comware
        (("ifname", "swp31s1"), "to n31", "swp31s1"),  # Cumulus
        (("local", "1/1/7"), "1/1/7", "1/1/7"),  # AOS-CX
        (("local", "527"), "et-0/0/12.0", "et-0/0/12.0"),  # Junos, a logical unit
    ],
)
def test_a_port_has_the_name_that_people_use(port_id: tuple[str, str], descr: str, name: str) -> None:
    (neighbour,) = neighbours(lldp("ens3f0np0", "leaf1", port_id, descr))
    assert neighbour.its_port == name


def test_both_ends_of_a_cable_agree_about_its_port() -> None:
    outputs = [
        SavedOutput("a", text_of("27a-sonic-switch.json"), "Leaf301"),
        SavedOutput("b", text_of("27b-sonic-host.json"), "gpu-node-1"),
    ]
    found = discover(BareFakeSystem(), texts=outputs)
    assert found.topology is not None
    assert found.topology.ports["Leaf301", "gpu-node-1"] == "Ethernet0"
    assert not [finding for finding in found.findings if finding.state is State.SUSPECT]


# ------------------------------------------------------------------------------------------------ InfiniBand


def test_adapters_without_a_name_are_hosts_of_their_own_with_a_finding() -> None:
    found = discover(BareFakeSystem(), texts=[SavedOutput("given", text_of("23-ib-unnamed-hcas"))])
    assert found.topology is not None
    assert set(found.topology.host_switch) == {
        "guid-0002c9030031ff10", "guid-0002c90300281c26", "n1014", "n1015", "n1016",
    }  # fmt: skip
    (finding,) = found.findings
    assert "2 adapters" in sentences(finding.evidence)


def test_snapshots_name_adapters_by_their_node_guids() -> None:
    files = {"sys": {"class": {"infiniband": {"mlx4_0": {"node_guid": "0002:c903:0031:ff10"}}}}}
    snapshot = snapshot_of({"fablint_snapshot": 1, "host": "n1012", "files": files})
    collected = CollectedSnapshots(snapshots={"n1012": snapshot})
    found = discover(BareFakeSystem(), collected, [SavedOutput("given", text_of("23-ib-unnamed-hcas"))])
    assert found.topology is not None
    assert {"n1012", "guid-0002c90300281c26"} <= set(found.topology.host_switch)
    assert any(
        "1 adapters" in sentences(finding.evidence) or "1 adapter" in sentences(finding.evidence)
        for finding in found.findings
    )


@pytest.mark.parametrize(
    "shared",
    [
        "localhost HCA-1",
        "localhost mlx5_0",
        "MT4129 ConnectX7 Mellanox Technologies",
        "n7 HCA-1",
        "mlx5_0",
        "HCA-1",
        "(none) HCA-1",
    ],
)
def test_a_default_or_shared_description_is_no_name(shared: str) -> None:
    text = text_of("23-ib-unnamed-hcas").replace("n1014 HCA-1", shared).replace("n1015 HCA-1", shared)
    hosts = set(places(read(text)))
    assert {"guid-080038000139e421", "guid-080038000139a345", "n1016"} <= hosts
    assert len(hosts) == 5


def test_rails_of_a_host_may_have_its_name_alone() -> None:
    text = text_of("23-ib-unnamed-hcas").replace("n1014 HCA-1", "n1014").replace("n1015 HCA-1", "n1014")
    assert {"n1014", "n1016"} <= set(places(read(text)))


def test_an_aggregation_node_is_no_host() -> None:
    assert set(places(read(text_of("44-iblinkinfo-aggregation-node")))) == {f"gpu-{number}" for number in range(4)}
