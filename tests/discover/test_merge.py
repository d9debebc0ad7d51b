"""One topology of several sources: the accepted source, and findings on the other sources."""

from __future__ import annotations

from pathlib import Path

import pytest
from discovery_help import BareFakeSystem, discovered, facts, lldp, nic, sample, says

from fablint.discover import discover, read_files, write_topology
from fablint.discover.agreement import Claim, settle
from fablint.discover.facts import Attachment, Facts, Forward, Origin, SwitchFact, Wire, gather
from fablint.discover.merge import merge
from fablint.model import Cable, Finding, State
from fablint.model.host_name import NicRef
from fablint.snapshot import NicFact, read_answers as snapshots
from fablint.snapshot.fabric_nics import fabric_nics
from fablint.text.evidence_sentences import sentences
from fablint.topology.file_reader import read_topology
from pinned import pinned_by

PINNED = pinned_by("discover.toml", __file__)

TREE = "scontrol-show-topology-tree.txt"
HOSTS = [f"nid{number:06}" for number in range(1001, 1017)]
SWITCHES = ["x1000c0r3b0", "x1000c0r7b0", "x1001c0r3b0", "x1001c0r7b0"]


def heard(wrong: dict[str, str] | None = None, names: dict[str, str] | None = None) -> Facts:
    """LLDP of the sample; `wrong`: hosts that are elsewhere, `names`: switches that are called otherwise."""
    places = []
    for index, host in enumerate(HOSTS):
        switch = (wrong or {}).get(host, SWITCHES[index // 4])
        places.append(Attachment(host, (names or {}).get(switch, switch), Origin.LLDP, "hsn0", f"p{index}"))
    return Facts(tuple(places))


def said(findings: tuple[Finding, ...]) -> list[tuple[str, str]]:
    return [(finding.name, sentences(finding.evidence)) for finding in findings]


def slurm() -> Facts:
    return facts(TREE)


def both(*several: Facts) -> Facts:
    return gather(several)


# ------------------------------------------------------------------------------------------------ agreement


def test_sources_that_agree_are_no_finding() -> None:
    merged = merge(both(slurm(), heard()))
    assert merged.topology is not None
    assert merged.findings == ()
    assert merged.topology.source == "LLDP"
    assert merged.topology.group_of("nid001016") == "group1"
    assert merged.topology.ports["x1000c0r3b0", "nid001001"] == "p0"
    assert not merged.topology.nic_switch  # one NIC each


def test_a_host_on_another_switch_than_slurm_thinks_is_a_contradiction() -> None:
    merged = merge(both(slurm(), heard(wrong={"nid001003": "x1001c0r3b0"})))
    assert said(merged.findings) == [("nid001003", PINNED["is connected to x1001c0r3b0"])]
    assert merged.findings[0].state is State.SUSPECT
    assert merged.topology is not None
    assert merged.topology.host_switch["nid001003"] == "x1001c0r3b0"


def test_other_names_of_the_same_switches_are_no_contradiction() -> None:
    names = {name: f"sw-{index}" for index, name in enumerate(SWITCHES)}
    merged = merge(both(slurm(), heard(wrong={"nid001003": "x1001c0r3b0"}, names=names)))
    assert said(merged.findings) == [("nid001003", PINNED["is connected to sw-2 according"])]
    assert merged.topology is not None


def test_what_a_source_does_not_tell_is_taken_from_the_next() -> None:
    names = {name: f"sw-{index}" for index, name in enumerate(SWITCHES)}
    some = Facts(tuple(place for place in heard(names=names).attachments if place.host != "nid001001"))
    merged = merge(both(slurm(), some))
    assert merged.topology is not None
    assert merged.topology.host_switch["nid001001"] == "sw-0"  # Slurm's word under LLDP's name
    assert merged.topology.source == "LLDP, Slurm"


def test_a_switch_in_two_groups_is_a_contradiction() -> None:
    stated = Facts(
        switches=tuple(SwitchFact(name, Origin.TEMPLATE, "g0" if i < 3 else "g1") for i, name in enumerate(SWITCHES))
    )
    merged = merge(both(slurm(), stated))
    assert [name for name, _ in said(merged.findings)] == ["x1001c0r3b0"]


def test_a_host_with_two_nics_agrees_with_a_source_that_has_one_switch() -> None:
    rails = [Claim(f"n{n}/hsn{rail}", f"s{rail}", Origin.LLDP, f"n{n}") for n in range(4) for rail in range(2)]
    taken, disputes = settle([rails, [Claim(f"n{n}", "leaf0", Origin.SLURM) for n in range(4)]])
    assert not disputes
    assert taken["n0/hsn1"].container == "s1"


def test_long_and_short_names_are_the_same_host() -> None:
    stated = Facts(
        (Attachment("n1.site.org", "s0.site.org", Origin.LLDP, "hsn0"), Attachment("n1", "s0", Origin.SLURM))
    )
    for asked in ("n1", "n1.site.org"):
        merged = merge(stated, hosts=[asked])
        assert merged.topology is not None
        assert merged.topology.host_switch == {asked: "s0"}
        assert merged.topology.source == "LLDP"
        assert merged.findings == ()


def test_a_number_of_a_switch_has_one_name() -> None:
    stated = Facts(
        (Attachment("n1", "group0-switch3", Origin.AMA, "hsn0"),),
        switches=(
            SwitchFact("x1", Origin.STT, "group0", "group0-switch3"),
            SwitchFact("x2", Origin.TEMPLATE, "group0", "group0-switch3"),
        ),
    )
    merged = merge(stated)
    assert merged.topology is not None
    assert merged.topology.host_switch == {"n1": "x1"}
    assert said(merged.findings) == [
        ("group0-switch3", PINNED["STT names it x1, fabric template"]),
    ]


def test_a_file_is_believed_before_the_cables(tmp_path: Path) -> None:
    path = tmp_path / "site.json"
    path.write_text('{"format": 1, "switches": {"a": {}, "b": {}}, "hosts": {"n[1-2]": "a"}, "links": [["a", "b"]]}')
    answers = [
        says("n1", lldp(("hsn0", "b", "p1")), nics=[nic()]),
        says("n2", lldp(("hsn0", "a", "p1")), nics=[nic()]),
    ]
    found = discover(BareFakeSystem(), snapshots(answers), read_files([str(path)]), ["n1", "n2"])
    assert found.topology is not None
    assert found.topology.host_switch == {"n1": "a", "n2": "a"}
    assert [finding.name for finding in found.findings] == ["n1/hsn0"]
    assert found.topology.cables == (Cable("a", "b"),)


# ------------------------------------------------------------------------------------------------ NICs


@pytest.mark.parametrize(
    ("named", "kept"),
    [
        ({"hsn0", "mgmt0"}, {"hsn0"}),
        ({"mlx5_0", "eth0"}, {"mlx5_0"}),
        ({"eth0", "mgmt0"}, {"eth0"}),
        ({"eno1"}, set()),  # hsn0 is there, but its neighbour is not known
        ({"mgmt0"}, set()),
    ],
)
def test_management_nics_are_no_fabric(named: set[str], kept: set[str]) -> None:
    there = {"eno1": NicFact("n", "eno1", speed=1000), "hsn0": NicFact("n", "hsn0", speed=200000)}
    known = there if named in ({"eno1"}, {"mgmt0"}) else {}
    assert fabric_nics(named, known) == kept


def test_without_names_the_fastest_are_the_fabric() -> None:
    known = {
        name: NicFact("n", name, speed=speed) for name, speed in (("eth0", 1000), ("eth1", 100000), ("eth2", 100000))
    }
    assert fabric_nics(known, known) == {"eth1", "eth2"}


def test_rails_have_switches_of_their_own() -> None:
    answers = [
        says(f"n{n}", lldp(("hsn0", "s0", f"p{n}"), ("hsn1", "s1", f"p{n}"), ("mgmt0", "m0", f"{n}"))) for n in range(3)
    ]
    found = discovered(answers=answers, hosts=["n0", "n1", "n2"])
    assert found.topology is not None
    assert found.topology.nic_switch[NicRef("n1/hsn1")] == "s1"
    assert found.topology.host_switch["n1"] == "s0"
    assert found.topology.ports["s1", "n1/hsn1"] == "p1"
    assert "m0" not in found.topology.switches


# ------------------------------------------------------------------------------------------------ cables and routes


def test_a_cable_that_both_ends_tell_is_one_and_parallel_ones_are_several() -> None:
    wires = [
        Wire("s0", "s1", Origin.LLDP, "1", "7"),
        Wire("s1", "s0", Origin.LLDP, "7", "1"),
        Wire("s0", "s1", Origin.LLDP, "2", "8"),
    ]
    merged = merge(Facts((Attachment("n0", "s0", Origin.LLDP),), tuple(wires)))
    assert merged.topology is not None
    assert merged.topology.cables == (Cable("s0", "s1"), Cable("s0", "s1"))
    assert merged.topology.ports["s0", "s1"] == "1,2"


def test_half_cables_reported_by_both_ends_are_counted_once() -> None:
    found = discovered(TREE, "stt-show-fabric.txt")
    assert found.topology is not None
    names = [cable.name for cable in found.topology.cables]
    assert sorted(names) == [
        "x1000c0r3b0=x1000c0r7b0",
        "x1000c0r3b0=x1000c0r7b0",
        "x1000c0r3b0=x1001c0r3b0",
        "x1001c0r3b0=x1001c0r7b0",
    ]
    assert found.topology.routing.kind == "adaptive"
    assert found.exit_code == 1  # a cable is down


def test_a_port_with_two_hosts_on_it_is_a_contradiction() -> None:
    places = (Attachment("n0", "s0", Origin.LLDP, "", "7"), Attachment("n1", "s0", Origin.LLDP, "", "7"))
    merged = merge(Facts(places))
    assert [name for name, _ in said(merged.findings)] == ["s0/7"]


@pytest.mark.parametrize(("fabric", "pair"), [("good", (1, 16)), ("good", (1, 6)), ("bad", (1, 16)), ("bad", (1, 6))])
def test_tables_lead_where_ibtracert_went(fabric: str, pair: tuple[int, int]) -> None:
    found = discovered(f"fattree16-{fabric}/ibnetdiscover.txt", f"fattree16-{fabric}/dump_fts.txt")
    assert found.topology is not None
    assert found.topology.routing.kind == "tables"
    source, there = (f"node{number:03}" for number in pair)
    path = [found.topology.host_switch[source]]
    while path[-1] != found.topology.host_switch[there]:
        path.append(found.topology.routing.tables[path[-1]][there])
    trace = sample(f"fattree16-{fabric}/ibtracert-{pair[0]}-{pair[1]}.txt")
    assert path == [line.split('"')[1] for line in trace.splitlines() if "switch port" in line]


def test_tables_with_a_routing_loop_are_a_fault() -> None:
    wires = tuple(Wire(a, b, Origin.INFINIBAND, f"{b}", f"{a}") for a, b in (("s0", "s1"), ("s1", "s2"), ("s0", "s2")))
    places = tuple(Attachment(f"n{n}", f"s{n}", Origin.INFINIBAND) for n in range(3))
    entries = (Forward("s0", "n2", "s1"), Forward("s1", "n2", "s0"), Forward("s0", "n1", "s1"))
    merged = merge(Facts(places, wires, forwards=entries))
    assert [(finding.state, finding.component, finding.name) for finding in merged.findings] == [
        (State.FAULT, "route", "n2")
    ]
    assert merged.topology is not None
    assert merged.topology.routing.tables["s0"] == {"n1": "s1"}


def test_cables_below_their_like_are_faults() -> None:
    found = discovered("fattree16-bad/ibnetdiscover.txt")
    faults = {finding.name: finding for finding in found.findings if finding.state is State.FAULT}
    assert set(faults) == {"node006=leaf2", "leaf2=spine1"}
    assert [finding.name for finding in found.findings if finding.state is State.SUSPECT] == ["leaf3"]  # a cable less
    assert faults["leaf2=spine1"].effect == pytest.approx(-0.75)
    assert faults["node006=leaf2"].effect == pytest.approx(-0.68)
    assert found.exit_code == 1
    assert discovered("fattree16-good/ibnetdiscover.txt").exit_code == 0


# ------------------------------------------------------------------------------------------------ hosts


def test_only_the_hosts_that_were_asked_for_are_in_the_topology() -> None:
    found = discovered(TREE, hosts=["nid001002", "nid001001", "nid009999"])
    assert found.topology is not None
    assert list(found.topology.host_switch) == ["nid001002", "nid001001"]
    assert set(found.topology.switches) == {"x1000c0r3b0"}
    assert found.missing == ("nid009999",)
    assert found.exit_code == 3


def test_half_of_the_hosts_missing_is_said_clearly() -> None:
    found = discovered(TREE, hosts=["nid001001", *(f"nid{n:06}" for n in range(2001, 2006))])
    (finding,) = found.findings
    assert finding.name == "nid[002001-002005]"
    assert "5 hosts of 6; these are more than half" in sentences(finding.evidence)


def test_name_blocks_are_the_last_resort() -> None:
    hosts = [f"nid{n:06}" for n in (1000, 1001, 1003, 1004, 1008)]
    found = discovered(hosts=hosts, blocks=4)
    assert found.topology is not None
    assert list(found.topology.host_switch.values()) == ["block0", "block0", "block0", "block1", "block2"]
    assert discovered(hosts=hosts).topology is None


def test_what_was_found_reads_back_as_a_file() -> None:
    for files in ((TREE, "fabric_template.json"), ("fattree16-bad/ibnetdiscover.txt", "fattree16-bad/dump_fts.txt")):
        first = discovered(*files).topology
        assert first is not None
        again = read_topology(Path("written"), write_topology(first))
        assert (again.host_switch, again.cables) == (first.host_switch, first.cables)
        assert (again.routing, again.ports) == (first.routing, first.ports)
