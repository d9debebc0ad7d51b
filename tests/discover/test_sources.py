"""Each source knows its own samples, and reads them."""

from __future__ import annotations

import json

import pytest
from discovery_help import SAMPLES, facts, sample

from fablint.discover.facts import Attachment, Forward, Origin, SwitchFact, Wire
from fablint.discover.sources import SOURCES, SavedOutput, read_saved
from fablint.errors import UsageError
from fablint.snapshot.parsers.ama import decode
from fablint.snapshot.parsers.lldp import neighbours
from fablint.snapshot.parsers.lldptool import read_neighbour
from fablint.text.evidence_sentences import sentences
from pinned import pinned_by

PINNED = pinned_by("discover.toml", __file__)

KNOWN = {
    "lldpcli": "lldpcli-*.json",
    "lldptool": "lldptool-*.txt",
    "ibnetdiscover": "fattree16-*/ibnetdiscover.txt",
    "ibnetdiscover -p": "fattree16-*/ibnetdiscover-p.txt",
    "iblinkinfo": "fattree16-*/iblinkinfo*.txt",
    "dump_fts": "fattree16-*/dump_fts.txt",
    "scontrol show topology": "*topology*.[tc][xo][tn]*",
    "topology.yaml (Slurm)": "slurm-topology.yaml",
    "pbsnodes": "pbsnodes-*.txt",
    "STT show switches": "stt-show-switches.txt",
    "STT show fabric": "stt-show-fabric.txt",
    "STT show flaps": "stt-show-flaps.txt",
    "STT show links health": "stt-show-links-health.txt",
    "fabric_template.json": "fabric_template.json",
}


@pytest.mark.parametrize(("name", "pattern"), KNOWN.items())
def test_a_source_alone_recognises_its_samples(name: str, pattern: str) -> None:
    paths = sorted(SAMPLES.glob(pattern))
    assert paths
    for path in paths:
        assert [source.name for source in SOURCES if source.recognises(path.read_text())] == [name], path


def test_an_unknown_format_is_refused_with_the_list_of_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"x\.txt: unknown format: give one of .*ibnetdiscover"):
        read_saved(SavedOutput("x.txt", "hello\n"))


# ------------------------------------------------------------------------------------------------ LLDP


@pytest.mark.parametrize("shape", ["json", "json0"])
@pytest.mark.parametrize(("ports", "names"), [("one-port", ["hsn0"]), ("two-ports", ["hsn0", "hsn1"])])
def test_both_shapes_of_lldpcli_tell_the_same(shape: str, ports: str, names: list[str]) -> None:
    heard = neighbours(sample(f"lldpcli-{shape}-{ports}.json"))
    assert [neighbour.port for neighbour in heard] == names
    assert {neighbour.name for neighbour in heard} == {"x3000c0r42b0"}
    assert heard[0].its_port in ("ros0p21", "ros0p23")
    assert heard[0].bridge is True


def test_a_slingshot_port_tells_its_group_by_its_address() -> None:
    parsed = facts("lldpcli-json0-two-ports.json", "nid000001")
    assert (
        Attachment("nid000001", "x3000c0r42b0", Origin.LLDP, "hsn0", "ros0p21", "02:fe:00:00:00:15")
        in parsed.attachments
    )
    assert SwitchFact("x3000c0r42b0", Origin.LLDP, "group0", "group0-switch0") in parsed.switches


def test_a_switch_reports_the_connected_hosts() -> None:
    parsed = facts("lldpcli-json0-switch-side.json", "x3000c0r42b0")
    assert [(wire.a_port, wire.b, wire.b_port) for wire in parsed.wires] == [
        ("ros0p21", "nid000001", "hsn0"),
        ("ros0p22", "nid000001", "hsn1"),
        ("ros0p23", "nid000002", "hsn0"),
    ]
    assert parsed.stations == {"nid000001", "nid000002"}


def test_the_device_of_neighbours_is_not_guessed() -> None:
    with pytest.raises(UsageError, match="does not name the device that has these neighbours: use --from NAME="):
        facts("lldpcli-json0-switch-side.json")
    chassis = '{"local-chassis": [{"chassis": [{"id": [{"type": "mac", "value": "1"}], "name": [{"value": "s9"}]}]}]}'
    both = SavedOutput("both", f"{chassis}\n{sample('lldpcli-json0-switch-side.json')}")
    assert read_saved(both)[1].wires[0].a == "s9"


def test_several_neighbours_on_one_port_are_a_finding_and_no_attachment() -> None:
    parsed = facts("lldpcli-json0-several-neighbours-on-one-port.json", "nid000009")
    assert not parsed.attachments
    assert [finding.name for finding in parsed.findings] == ["nid000009/hsn0", "nid000009/hsn1"]
    assert PINNED["reports 2 devices on one"] in sentences(parsed.findings[0].evidence)


def test_lldptool_tells_switch_port_and_address() -> None:
    neighbour = read_neighbour("hsn0", sample("lldptool-tn-from-lldpd-switch.txt"))
    assert neighbour is not None
    assert (neighbour.name, neighbour.its_port, neighbour.address) == ("x3000c0r42b0", "ros0p51", "02:fe:00:00:08:b3")
    assert neighbour.bridge is True
    assert read_neighbour("hsn0", "") is None


# ------------------------------------------------------------------------------------------------ schedulers


@pytest.mark.parametrize("name", ["scontrol-show-topology-tree.txt", "topology.conf"])
def test_slurms_lowest_switches_are_switches_and_their_parents_groups(name: str) -> None:
    parsed = facts(name)
    assert len(parsed.attachments) == 16
    assert Attachment("nid001005", "x1000c0r7b0", Origin.SLURM) in parsed.attachments
    assert SwitchFact("x1001c0r7b0", Origin.SLURM, "group1") in parsed.switches
    assert not parsed.wires


@pytest.mark.parametrize(
    "text",
    [
        "SwitchName=s1 \\\n  Nodes=n[1-2],\\\nn3\nSwitchName=s2 Nodes=n4\n",
        "SwitchName=s1 Nodes=n1,n2,n3\\\r\n LinkSpeed=100 # the first\r\nSwitchName=s2 Nodes=n4",
        "SwitchName=s1 \\ \n\\\n Nodes=n[1-3]\nSwitchName=s2 \\\nNodes=n4",
    ],
)
def test_lines_of_topology_conf_may_continue(text: str) -> None:
    parsed = read_saved(SavedOutput("topology.conf", text))[1]
    assert {place.host: place.switch for place in parsed.attachments} == {
        "n1": "s1",
        "n2": "s1",
        "n3": "s1",
        "n4": "s2",
    }


def test_slurms_blocks_and_yaml() -> None:
    assert {place.switch for place in facts("scontrol-show-topology-block.txt").attachments} == {"b1", "b2"}
    parsed = facts("slurm-topology.yaml")  # the default topology of the two
    assert {fact.name: fact.group for fact in parsed.switches} == {"x1000c0r3b0": "group0", "x1000c0r7b0": "group0"}
    assert len(parsed.attachments) == 8


def test_pbs_nodes_name_their_switch_in_a_resource() -> None:
    parsed = facts("pbsnodes-switch-resource.txt")
    assert parsed.attachments[0] == Attachment("nid001001", "x1000c0r3b0", Origin.PBS)
    assert parsed.switches == (SwitchFact("x1000c0r3b0", Origin.PBS, "group0"),)


def test_absurd_ranges_are_left_out() -> None:
    parsed = read_saved(
        SavedOutput("t", "SwitchName=s0 Nodes=n[0-99999999999]\nSwitchName=s1 Nodes=n[0-999][0-999]\n")
    )[1]
    assert not parsed.attachments


# ------------------------------------------------------------------------------------------------ Slingshot


def test_algorithmic_addresses() -> None:
    place = decode("02:00:00:00:07:ea")
    assert place is not None
    assert (place.group, place.switch, place.port) == (0, 31, 42)
    assert decode("02:FE:00:00:08:B3") is not None
    for other in ("", "02:15:00:00:00:01", "02:42:ac:11:00:02", "00:00:00:00:07:ea", "02:00:00:10:07:ea"):
        assert decode(other) is None


def test_the_fabric_template_names_switches_groups_and_cables() -> None:
    parsed = facts("fabric_template.json")
    assert SwitchFact("x1001c0r3b0", Origin.TEMPLATE, "group1", "group1-switch0") in parsed.switches
    assert Wire("x1000c0r3b0", "x1001c0r3b0", Origin.TEMPLATE, "a0l29", "a0l48") in parsed.wires


def test_the_topology_tool_names_switches_cables_and_what_is_down() -> None:
    assert SwitchFact("x1001c0r7b0", Origin.STT, "group1", "group1-switch1") in facts("stt-show-switches.txt").switches
    parsed = facts("stt-show-fabric.txt")
    assert len(parsed.wires) == 8  # four cables, each from both ends
    (down,) = parsed.findings
    assert down.name == "x1000c0r3b0=x1001c0r3b0"
    assert "port j13p0" in sentences(down.evidence)


# ------------------------------------------------------------------------------------------------ InfiniBand


@pytest.mark.parametrize("name", ["ibnetdiscover.txt", "ibnetdiscover-p.txt", "iblinkinfo.txt", "iblinkinfo-line.txt"])
def test_all_infiniband_outputs_tell_the_same(name: str) -> None:
    parsed = facts(f"fattree16-bad/{name}")
    assert {(place.end, place.switch, place.port) for place in parsed.attachments} >= {
        ("node005/mlx5_0", "leaf2", "1"),
        ("node016/mlx5_0", "leaf4", "4"),
    }
    assert (len(parsed.attachments), len(parsed.wires), len(parsed.trained)) == (15, 15, 30)
    ends = {frozenset({(wire.a, wire.a_port), (wire.b, wire.b_port)}) for wire in parsed.wires}
    assert frozenset({("leaf2", "21"), ("spine1", "3")}) in ends
    assert {one.rate for one in parsed.trained} == {"4xEDR", "1xEDR", "4xQDR"}


def test_unnamed_switches_are_distinguished_by_their_guid() -> None:
    text = sample("fattree16-good/ibnetdiscover.txt").replace('"spine1"', '"MF0;sw"').replace('"spine2"', '"MF0;sw"')
    names = {fact.name for fact in read_saved(SavedOutput("ib", text))[1].switches}
    assert {"guid-0002c90300a00050", "guid-0002c90300a00060", "leaf1"} <= names


def test_a_switchs_own_computing_part_is_no_host() -> None:
    text = sample("fattree16-good/ibnetdiscover.txt").replace(
        '"node001 mlx5_0"', '"Mellanox Technologies Aggregation Node"'
    )
    assert len(read_saved(SavedOutput("ib", text))[1].attachments) == 15


def test_forwarding_entries_bear_the_switchs_guid() -> None:
    parsed = facts("fattree16-good/dump_fts.txt")
    assert Forward("guid-0002c90300a00040", "node001", "21") in parsed.forwards


def lldp_neighbour(port: str, name: str, its_port: str, capabilities: list[str]) -> dict[str, object]:
    enabled = [{"type": capability, "enabled": True} for capability in capabilities]
    chassis = {"id": [{"type": "mac", "value": "aa:bb:cc:00:00:01"}], "name": [{"value": name}], "capability": enabled}
    description = {"id": [{"type": "mac", "value": "aa:bb:cc:00:00:02"}], "descr": [{"value": its_port}]}
    return {"name": port, "via": "LLDP", "chassis": [chassis], "port": [description]}


@pytest.mark.parametrize("device", ["n1", "leaf1"])
@pytest.mark.parametrize("its_port", ["ens2f0np0", "enp65s0f1", "eno1", "hsn1"])
@pytest.mark.parametrize("capabilities", [["Station"], ["Bridge", "Router"], []], ids=["station", "docker", "none"])
def test_a_neighbour_whose_port_is_a_nic_is_a_host(capabilities: list[str], its_port: str, device: str) -> None:
    """A host with a bridge for its containers announces Bridge, another agent nothing."""
    is_host = device == "n1"
    leaf = lldp_neighbour("ens1f0np0" if is_host else "Ethernet9", "leaf9", "Ethernet1", ["Bridge"])
    neighbour = lldp_neighbour("ens2f0np0" if is_host else "Ethernet2", "n9", its_port, capabilities)
    text = json.dumps({"lldp": [{"interface": [leaf, neighbour]}]})
    parsed = read_saved(SavedOutput("x.json", text, device))[1]
    assert "n9" not in {switch.name for switch in parsed.switches}
    assert "n9" not in {attachment.switch for attachment in parsed.attachments}
    assert is_host or "n9" in parsed.stations
