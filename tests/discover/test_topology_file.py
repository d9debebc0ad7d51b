"""Topology files: what is read, and the one line for each mistake."""

from pathlib import Path

import pytest

from fablint.discover import load_topology
from fablint.errors import UsageError
from fablint.model import Cable

FIXTURES = Path(__file__).parents[1] / "fixtures" / "topology"

SWITCHES = "format: 1\nswitches: {s0: {group: g0}, s1: {}}\n"
HOSTS = SWITCHES + "hosts: {'h[0-1]': s0}\n"


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


def test_links_may_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "topology.yaml"
    path.write_text(HOSTS)
    assert load_topology(path).cables == ()


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
        ("format: 1\nswitches: {}\n", "switches: there is none"),
        ("format: 1\nswitches: {s0: g0}\n", "switches.s0: 'g0' does not describe a switch"),
        ("format: 1\nswitches: {s0: {colour: red}}\n", "switches.s0: {'colour': 'red'} does not describe a switch"),
        ("format: 1\nswitches: {s0: {group: [g0]}}\n", "switches.s0.group: ['g0'] is not a name"),
        ("format: 1\nswitches: {'s[0-1]': {}, s1: {}}\n", "switches.s1: switch s1 is given twice"),
        (SWITCHES, "hosts: missing, or not a mapping"),
        (SWITCHES + "hosts: {}\n", "hosts: there is none"),
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
