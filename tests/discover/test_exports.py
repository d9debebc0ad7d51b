"""Topologies for others, and the printed tree."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from discovery_help import discovered, facts, lldp, says

from fablint.discover import export, format_tree, infer_format, load_topology, write_host_files
from fablint.discover.sources import SavedOutput, read_saved
from fablint.errors import UsageError
from fablint.model import Cable, Switch, Topology
from pinned import pinned_by

PINNED = pinned_by("discover.toml", __file__)

TREE = "scontrol-show-topology-tree.txt"


def topology() -> Topology:
    found = discovered(TREE).topology
    assert found is not None
    return found


def test_slurm_reads_what_slurm_said() -> None:
    text = export(topology(), "slurm")
    assert "SwitchName=x1000c0r3b0 Nodes=nid[001001-001004]\n" in text
    assert "SwitchName=fabric Switches=group0,group1\n" in text
    again = read_saved(SavedOutput("topology.conf", text))[1]
    assert set(again.attachments) == set(facts(TREE).attachments)
    assert set(again.switches) == set(facts(TREE).switches)


def test_slurm_takes_no_text_behind_a_bracket_and_no_group_of_a_switchs_name() -> None:
    hosts = {f"x1c0s{n}b0n0": "s0" for n in range(3)} | {"h1": "s1"}
    text = export(Topology({"s0": Switch("s0", "s1"), "s1": Switch("s1")}, hosts), "slurm")
    assert "Nodes=x1c0s0b0n0,x1c0s1b0n0,x1c0s2b0n0\n" in text
    assert "SwitchName=group-s1 Switches=s0\n" in text


@pytest.mark.parametrize("kind", ["yaml", "json"])
def test_files_read_back_the_same(kind: str, tmp_path: Path) -> None:
    found = discovered("fattree16-bad/ibnetdiscover.txt", "fattree16-bad/dump_fts.txt").topology
    assert found is not None
    path = tmp_path / f"t.{kind}"
    path.write_text(export(found, kind))
    again = load_topology(path)
    for name in ("switches", "host_switch", "cables", "routing", "ports", "nic_switch"):
        assert getattr(again, name) == getattr(found, name)


def test_json_with_keys_that_yaml_refuses_is_read(tmp_path: Path) -> None:
    names = ",".join(f"host{n * 7}" for n in range(500))
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"format": 1, "switches": {"s0": {}}, "hosts": {names: "s0"}}, indent="\t"))
    assert len(load_topology(path).host_switch) == 500


@pytest.mark.parametrize(
    "text", ['{"format": 1, "format": 1}', '{"format": 1', "{" * 100000, '{"a": ' * 3000 + "1" + "}" * 3000]
)
def test_wrong_json_is_refused_in_one_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load_topology(path)
    assert "\n" not in str(caught.value)
    assert "t.json" in str(caught.value)


def test_lists_of_hosts_for_each_switch_and_group(tmp_path: Path) -> None:
    folder = tmp_path / "lists"
    assert write_host_files(topology(), folder) == 6
    assert (folder / "switches" / "x1000c0r3b0.txt").read_text().split() == [f"nid00100{n}" for n in range(1, 5)]
    assert len((folder / "groups" / "group1.txt").read_text().split()) == 8
    with pytest.raises(UsageError, match="exists already"):
        write_host_files(topology(), folder)


def test_names_of_groups_cannot_leave_the_folder(tmp_path: Path) -> None:
    write_host_files(Topology({"s0": Switch("s0", "../../g")}, {"h0": "s0"}), tmp_path / "lists")
    assert [path.name for path in (tmp_path / "lists" / "groups").iterdir()] == ["_.__g.txt"] or not (
        tmp_path / "g.txt"
    ).exists()


def test_the_suffix_tells_the_format(tmp_path: Path) -> None:
    assert [infer_format(Path(name)) for name in ("a.yaml", "a.json", "topology.conf", "lists", str(tmp_path))] == [
        "yaml",
        "json",
        "slurm",
        "hostfiles",
        "hostfiles",
    ]
    with pytest.raises(UsageError, match="stands for no format"):
        infer_format(Path("a.txt"))


# ------------------------------------------------------------------------------------------------ tree


def test_the_tree_folds_hosts_and_ends_with_findings() -> None:
    text = format_tree(discovered("fattree16-bad/ibnetdiscover.txt", "fattree16-bad/dump_fts.txt"))
    assert "  leaf4   node[013-014,016] (3)\n" in text
    assert "  without hosts: spine[1-2] (2)\n" in text
    assert PINNED["routes from the forwarding"] in text
    assert text.index("sources") < text.index("findings") < text.index("FAULT cable leaf2=spine1")
    assert "scontrol, pbsnodes: not installed here" in text


def test_the_tree_keeps_to_80_columns() -> None:
    lines = [lldp(("hsn0", f"x{1000 + n}c0r0b0", f"p{n}")) for n in range(200)]
    found = discovered(answers=[says(f"login-with-a-long-name-{n * 3}", text) for n, text in enumerate(lines)])
    assert max(map(len, format_tree(found).splitlines())) <= 80
    one = discovered(answers=[says(f"n{n * n}", lldp(("hsn0", "s0", f"p{n}"))) for n in range(400)])
    assert max(map(len, format_tree(one).splitlines())) <= 80


def test_equal_findings_share_a_line() -> None:
    found = discovered(
        answers=[says("n0", lldp(("hsn0", "s0", "p0")))] + [says(f"n{n}") for n in range(1, 5)],
        hosts=[f"n{n}" for n in range(5)],
    )
    assert format_tree(found).count("SUSPECT") == 1


def test_cables_are_counted() -> None:
    fabric = Topology({"s0": Switch("s0"), "s1": Switch("s1")}, {"h0": "s0"}, (Cable("s0", "s1"),), "file")
    from fablint.discover import DiscoveredFabric

    assert PINNED["0 groups, 2 switches, 1 host"].begins(format_tree(DiscoveredFabric(fabric)))
