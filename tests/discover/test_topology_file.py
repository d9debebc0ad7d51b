"""Topology files: what is read, and the one line for each mistake."""

from pathlib import Path

import pytest

from fablint.discover import load_topology
from fablint.errors import UsageError
from fablint.model import Cable, Routing, Topology

FIXTURES = Path(__file__).parents[1] / "fixtures" / "topology"

SWITCHES = "format: 1\nswitches: {s0: {group: g0}, s1: {}}\n"
HOSTS = SWITCHES + "hosts: {'h[0-1]': s0}\n"
LINKED = (
    "format: 1\nswitches: {'s[0-2]': {}}\nhosts: {'h[0-1]': s0, 'h[2-3]': s2}\nlinks: [[s0, s1], [s1, s2], [s2, s1]]\n"
)


def test_reads_switches_groups_hosts_and_links() -> None:
    topology = load_topology(FIXTURES / "mesh.yaml")
    assert list(topology.switches) == ["s0", "s1", "s2", "s3", "s4"]
    assert topology.switches["s3"].group == "g1"
    assert topology.host_switch["h07"] == "s0"
    assert topology.host_switch["h20"] == "s2"
    assert len(topology.host_switch) == 20
    assert topology.cables == (Cable("s0", "s1"), Cable("s1", "s2"))
    assert topology.group_of("h16") == "g1"
    assert topology.group_of("login") == "s4"


def test_links_may_declare_their_speed(tmp_path: Path) -> None:
    links = "links: [{ends: [s0, s1], speed: 200 Gb/s}, {ends: [s0, s1], speed: 1.6Tb/s}, [s0, s1]]\n"
    assert [cable.speed for cable in read(tmp_path, HOSTS + links).cables] == [25e9, 200e9, None]


def test_links_may_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "topology.yaml"
    path.write_text(HOSTS)
    assert load_topology(path).cables == ()


def read(tmp_path: Path, text: str) -> Topology:
    path = tmp_path / "topology.yaml"
    path.write_text(text)
    return load_topology(path)


def test_a_host_says_which_port_and_which_nic_is_where(tmp_path: Path) -> None:
    topology = read(
        tmp_path,
        SWITCHES
        + "hosts:\n  h0: {switch: s0, port: 012x}\n  h1: {hsn0: s1, 'hsn[1-2]': s0}\n"
        + "  h2: {mlx5_0/1: {switch: s1, port: 7}}\n  'h[3-4]': {hsn0: s0, hsn1: s1}\n",
    )
    assert topology.host_switch == {"h0": "s0", "h1": "s1", "h2": "s1", "h3": "s0", "h4": "s0"}
    assert topology.nic_switch == {
        "h1/hsn0": "s1",
        "h1/hsn1": "s0",
        "h1/hsn2": "s0",
        "h2/mlx5_0/1": "s1",
        "h3/hsn0": "s0",
        "h3/hsn1": "s1",
        "h4/hsn0": "s0",
        "h4/hsn1": "s1",
    }
    assert topology.ports == {("s0", "h0"): "012x", ("s1", "h2/mlx5_0/1"): "7"}


def test_a_link_says_its_port_at_each_end(tmp_path: Path) -> None:
    links = (
        "links: [[s0, s1], {ends: [s0, s1], ports: [17, p4]}, {ends: [s1, s0], ports: [p5, 18]}, {ends: [s0, s1]}]\n"
    )
    topology = read(tmp_path, HOSTS + links)
    assert topology.cables == (Cable("s0", "s1"), Cable("s0", "s1"), Cable("s1", "s0"), Cable("s0", "s1"))
    assert topology.ports == {("s0", "s1"): "17,18", ("s1", "s0"): "p4,p5"}


@pytest.mark.parametrize(
    ("text", "routing"),
    [
        ("", Routing()),
        ("routing: d-mod-k\n", Routing("d-mod-k")),
        ("routing: {kind: ecmp}\n", Routing("ecmp")),
        ("routing: {kind: adaptive, minimal_share: 0.5}\n", Routing("adaptive", 0.5)),
        ("routing: adaptive\n", Routing("adaptive", 0.4)),
        ("routing: tables\nforwarding: {s1: }\n", Routing("tables", tables={"s1": {}})),
        (
            "forwarding: {s0: {'h[2-3]': s1}, s1: {h2: s2, 'h[0-1]': s0}}\n",
            Routing("tables", tables={"s0": {"h2": "s1", "h3": "s1"}, "s1": {"h2": "s2", "h0": "s0", "h1": "s0"}}),
        ),
    ],
)
def test_the_routing_of_a_file_is_read(tmp_path: Path, text: str, routing: Routing) -> None:
    assert read(tmp_path, LINKED + text).routing == routing


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a topology"),
        ("- s0\n", "not a topology"),
        ("format: 1\nswitches: [\n", ":3: "),
        ("a\tb: : c", "the file must be YAML"),
        ("format: 1\nformat: 1\n", ":2: 'format' is given twice"),
        (HOSTS + "cables: []\n", "unknown key 'cables'"),
        ("switches: {s0: {}}\n", "format: None is not a format number"),
        ("format: yes\n", "format: True is not a format number"),
        ("format: 2\nswitches: {s0: {}}\n", "format: 2 is newer than the 1 known here"),
        ("format: 1\nhosts: {h0: s0}\n", "switches: missing, or not a mapping"),
        ("format: 1\nswitches: {}\n", "switches: the list is empty"),
        ("format: 1\nswitches: {s0: g0}\n", "switches.s0: 'g0' does not describe a switch"),
        ("format: 1\nswitches: {s0: {colour: red}}\n", "switches.s0: {'colour': 'red'} does not describe a switch"),
        ("format: 1\nswitches: {s0: {group: [g0]}}\n", "switches.s0.group: ['g0'] is not a name"),
        ("format: 1\nswitches: {'s[0-1]': {}, s1: {}}\n", "switches.s1: switch s1 is given twice"),
        (SWITCHES, "hosts: missing, or not a mapping"),
        (SWITCHES + "hosts: {}\n", "hosts: the list is empty"),
        (SWITCHES + "hosts: {h0: s9}\n", "hosts.h0: unknown switch 's9'"),
        (SWITCHES + "hosts: {'h[0-3]': s0, 'h[2-4]': s1}\n", "hosts.h[2-4]: host h2 is on s0 already"),
        (SWITCHES + "hosts: {h0: s0, h0: s1}\n", ":3: 'h0' is given twice"),
        (SWITCHES + "hosts: {s1: s0}\n", "hosts.s1: s1 is a switch"),
        (SWITCHES + "hosts: {'h[0-': s0}\n", "hosts.h[0-: "),
        (SWITCHES + "hosts: {'': s0}\n", "hosts.: an empty name"),
        (HOSTS + "links: s0\n", "links: str is not a list"),
        (HOSTS + "links: [[s0]]\n", "links[0]: ['s0'] is not a pair of switches"),
        (HOSTS + "links: [[s0, s1], [s0, h0]]\n", "links[1]: unknown switch 'h0'"),
        (HOSTS + "links: [[s1, s1]]\n", "links[0]: joins s1 to itself"),
        ("format: 1\n? [a]\n: b\n", ":2: a key must be a name"),
        ("format: " + "[" * 50 + "]" * 50, ":1: nested deeper than 10: the file must be YAML"),
        ("format: " + "[" * 100_000 + "]" * 100_000, ": the file must be YAML"),  # the C parser has a limit as well
        ("format: 0o9e\nlinks: 2001-99-99\n", "not YAML: month must be in 1..12"),
        ('"a\\nb": 1\n', r"unknown key 'a\nb'"),
        (SWITCHES + 'hosts: {"a\\nb": s0}\n', r"hosts: 'a\nb' is not a name"),
        (
            SWITCHES + "hosts: {'h[0-99999999999]': s0}\n",
            "hosts.h[0-99999999999]: 'h[0-99999999999]' stands for more than 250,000 names",
        ),
        (SWITCHES + "hosts: {a/b: s0}\n", "hosts.a/b: a/b is not a host name"),
        (SWITCHES + "hosts: {h0: [s0, s1]}\n", "hosts.h0: unknown switch ['s0', 's1']"),
        (SWITCHES + "hosts: {h0: {}}\n", "hosts.h0: {} names no switch"),
        (SWITCHES + "hosts: {h0: {port: 3}}\n", "hosts.h0: {'port': 3} names no switch"),
        (
            SWITCHES + "hosts: {h0: {switch: s0, speed: 3}}\n",
            "hosts.h0: {'switch': 's0', 'speed': 3} is not an attachment",
        ),
        (SWITCHES + "hosts: {h0: {switch: s7}}\n", "hosts.h0.switch: unknown switch 's7'"),
        (SWITCHES + "hosts: {h0: {switch: s0, port: [1]}}\n", "hosts.h0.port: [1] is not the name of a port"),
        (SWITCHES + "hosts: {h0: {switch: s0, port: true}}\n", "hosts.h0.port: True is not the name of a port"),
        (SWITCHES + "hosts: {'h[0-1]': {switch: s0, port: 1}}\n", "hosts.h[0-1]: one port for 2 hosts"),
        (
            SWITCHES + "hosts: {h0: {switch: s0, port: 1}, h1: {switch: s0, port: 1}}\n",
            "hosts.h1: port 1 of s0 has h0 on it already",
        ),
        (SWITCHES + "hosts: {h0: {nic0: s7}}\n", "hosts.h0.nic0: unknown switch 's7'"),
        (SWITCHES + "hosts: {h0: {nic0: {}}}\n", "hosts.h0.nic0: {} names no switch"),
        (SWITCHES + "hosts: {h0: {nic0: s0, 'nic[0-1]': s1}}\n", "hosts.h0.nic[0-1]: nic0 is given twice"),
        (SWITCHES + "hosts: {h0: {'nic,switch': s0}}\n", "hosts.h0.nic,switch: switch is not a NIC"),
        (
            SWITCHES + "hosts: {h0: {'nic[0-1]': {switch: s0, port: 4}}}\n",
            "hosts.h0.nic[0-1]: one port for 2 NICs",
        ),
        (HOSTS + "links: [{ends: [s0, s1], colour: red}]\n", "links[0]: {'ends': ['s0', 's1'], 'colour': 'red'}"),
        (HOSTS + "links: [{ends: [s0, s1], speed: 200}]\n", "links[0].speed: 200 is not the speed of a cable"),
        (HOSTS + "links: [{ends: [s0, s1], speed: 0 Gb/s}]\n", "links[0].speed: '0 Gb/s' is not the speed of a cable"),
        (HOSTS + "links: [{ends: [s0, s1], speed: 25 GB/s}]\n", "links[0].speed: '25 GB/s' is not the speed of a"),
        (HOSTS + "links: [{ports: [1, 2]}]\n", "links[0]: None is not a pair of switches"),
        (HOSTS + "links: [{ends: [s0, s1], ports: [1]}]\n", "links[0].ports: [1] is not a port at each end"),
        (
            HOSTS + "links: [{ends: [s0, s1], ports: [1, 2]}, {ends: [s0, s1], ports: [1, 3]}]\n",
            "links[1]: port 1 of s0 has s1 on it already",
        ),
        (HOSTS + "routing: random\n", "routing: 'random' is not a kind of routing: choose from shortest, d-mod-k"),
        (HOSTS + "routing: [ecmp]\n", "routing: ['ecmp'] is not a kind of routing"),
        (HOSTS + "routing: {kind: [ecmp]}\n", "routing: ['ecmp'] is not a kind of routing"),
        (HOSTS + "routing: tables\n", "routing: tables, without forwarding"),
        (HOSTS + "routing: ecmp\nforwarding: {}\n", "routing: ecmp, with forwarding"),
        (HOSTS + "routing: {kind: ecmp, minimal_share: 0.5}\n", "routing: {'kind': 'ecmp', 'minimal_share': 0.5} is"),
        (HOSTS + "routing: {kind: adaptive, minimal_share: 0}\n", "routing.minimal_share: 0 is not a share"),
        (HOSTS + "routing: {kind: adaptive, minimal_share: .nan}\n", "routing.minimal_share: nan is not a share"),
        (HOSTS + "forwarding: []\n", "forwarding: missing, or not a mapping"),
        (LINKED + "forwarding: {s9: {}}\n", "forwarding.s9: unknown switch 's9'"),
        (LINKED + "forwarding: {s0: s1}\n", "forwarding.s0: 's1' is not a table"),
        (LINKED + "forwarding: {s0: {h9: s1}}\n", "forwarding.s0.h9: unknown host 'h9': declare it under hosts"),
        (LINKED + "forwarding: {s0: {h2: s2}}\n", "forwarding.s0.h2: s0 has no link to s2"),
        (LINKED + "forwarding: {s0: {h2: s9}}\n", "forwarding.s0.h2: unknown switch 's9'"),
        (LINKED + "forwarding: {s0: {h2: s1, 'h[2-3]': s1}}\n", "forwarding.s0.h[2-3]: host h2 is given twice"),
        (
            LINKED + "forwarding: {s0: {h0: s1}}\n",
            "forwarding.s0: sends messages for h0 away to s1: h0 is connected to s0",
        ),
        (
            LINKED + "forwarding: {s0: {h2: s1}, s1: {'h[2-3]': s0}}\n",
            "forwarding: messages for h2 are in a routing loop: s0 > s1 > s0",
        ),
    ],
)
def test_each_mistake_is_one_line_with_file_and_key(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "topology.yaml"
    path.write_text(text)
    with pytest.raises(UsageError) as error:
        load_topology(path)
    line = str(error.value)
    assert line.startswith(str(path))
    assert message in line
    assert "\n" not in line


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load_topology(tmp_path / "none.yaml")
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="not a text file"):
        load_topology(binary)
