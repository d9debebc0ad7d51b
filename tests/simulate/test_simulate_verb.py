"""`fablint simulate` as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fablint.cli import main
from fablint.discover import load_topology
from fablint.simulate import dragonfly, fat_tree, multi_rail, read_truth
from fablint.store import read_run


def call(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["simulate", *map(str, words)])
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out, said.err


def test_writes_a_run_with_its_topology_and_its_truth(tmp_path: Path, capsys) -> None:
    path = tmp_path / "x.run"
    words = [
        "--host-count",
        "64",
        "--fault",
        "host:h12:tx:-20%",
        "--fault",
        "random:2",
        "--noise",
        "student3",
        "-o",
        path,
    ]
    code, out, err = call(capsys, *words)
    assert code == 0
    assert "fault: host h12 tx slow -20 %" in out
    assert f"Analyse it: fablint analyse {path}" in out
    assert err.count("\n") == 1
    run, truth = read_run(path), read_truth(path)
    assert not run.notes
    assert [row.name for row in run.rows] == ["latency", "bandwidth"]
    assert run.rows[0].statistics == ("min", "median", "mean", "p99", "max")
    assert len(truth) == 3
    assert run.facts.simulated["faults"][0]["component"] == {"kind": "host", "ends": [{"nodes": "h12"}]}
    assert truth[0].component.label == "h12"
    topology = load_topology(path / "topology.yaml")
    assert list(topology.host_switch.items()) == list(fat_tree(8, 2).topology.host_switch.items())
    assert topology.cables == fat_tree(8, 2).topology.cables
    assert topology.routing.kind == "d-mod-k"


def test_a_run_is_judged_by_the_topology_that_lies_in_it(tmp_path: Path, capsys) -> None:
    path = tmp_path / "x.run"
    call(capsys, "--host-count", "64", "--fault", "link:spine0>leaf3:-40%", "-o", path)
    with pytest.raises(SystemExit) as ended:
        main(["analyse", "--json", str(path)])
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert ended.value.code == 1
    assert [finding["text"]["name"] for finding in findings if finding["state"] == "FAULT"] == ["spine0>leaf3"]
    (path / "topology.yaml").unlink()
    with pytest.raises(SystemExit):
        main(["analyse", "--json", str(path)])
    assert "no_topology" in [note["kind"] for note in json.loads(capsys.readouterr().out)["notes"]]


@pytest.mark.parametrize(
    ("words", "fabric"),
    [
        (
            ["--fabric", "dragonfly", "--shape", "5x4x2", "--minimal-share", "0.7", "--rounds", "6"],
            dragonfly(5, 4, 2, 0.7),
        ),
        (["--fabric", "dragonfly", "--shape", "3x2x2", "--full"], dragonfly(3, 2, 2)),
        (["--shape", "3x2", "--rails", "2", "--rounds", "6"], multi_rail(fat_tree(3, 2), 2)),
    ],
)
def test_the_topology_file_is_that_of_the_fabric(words: list[str], fabric, tmp_path: Path, capsys) -> None:
    path = tmp_path / "x.run"
    assert call(capsys, *words, "-o", path)[0] == 0
    topology = load_topology(path / "topology.yaml")
    assert topology.cables == fabric.topology.cables
    assert topology.routing == fabric.topology.routing
    assert dict(topology.nic_switch) == dict(fabric.topology.nic_switch)
    assert list(topology.host_switch) == list(fabric.hosts)
    adaptive = topology.routing.kind == "adaptive"
    assert all(("histogram" in row.arrays) == adaptive for row in read_run(path).rows)


def test_json_and_every_option(tmp_path: Path, capsys) -> None:
    path = tmp_path / "x.run"
    words = [
        "--fabric",
        "mesh",
        "--host-count",
        "16",
        "--kernel",
        "exchange",
        "--kernel",
        "bandwidth",
        "--sizes",
        "8,1M",
    ]
    words += ["--full", "--serial", "--contention", "--seed", "7", "--ranks-per-host", "2"]
    code, out, err = call(capsys, *words, "--json", "-q", "-o", path)
    facts = json.loads(out)
    assert (code, err) == (0, "")
    assert facts["rounds"] == {"exchange": 31, "bandwidth": 31}
    run = read_run(path)
    assert run.ranks == 32
    assert all(row.layout == "matrix" and row.sizes == (8, 1 << 20) for row in run.rows)
    assert all(row.facts.schedule.order == "serial" and row.facts.schedule.seed == 7 for row in run.rows)
    assert run.facts.simulated["contention"]


def test_the_number_of_rounds(tmp_path: Path, capsys) -> None:
    path = tmp_path / "x.run"
    facts = json.loads(call(capsys, "--shape", "4x3", "--rounds", "7", "--json", "-o", path)[1])
    assert facts["rounds"] == {"latency": 7, "bandwidth": 7}
    assert facts["hosts"] == 64


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--host-count", "63"], "63 hosts do not fit its shape: take 49 or 64"),
        (["--host-count", "1"], "between 2 and 250,000"),
        (["--shape", "4x"], "write ARITYxLEVELS"),
        (["--shape", "4x2", "--host-count", "16"], "either the number of hosts or a shape"),
        (["--fault", "host:h99:-20%"], "no host h99"),
        (["--fault", "loop"], "fault 'loop': write COMPONENT:NAME"),
        (["--fault", "link:leaf0>leaf0:-9%"], "no link leaf0>leaf0"),
        (["--host-count", "16", "--fault", "random:999"], "request fewer"),
        (["--full", "--rounds", "3"], "omit one of them"),
        (["--fabric", "torus", "--host-count", "64", "--routing", "ecmp"], "choose from tables"),
        (["--minimal-share", "0.2"], "belongs to adaptive routing"),
        (["--host-count", "32768", "--fabric", "mesh", "--full"], "do not fit into memory"),
        (["--sizes", "big"], "is not a size"),
        (["--rounds", "0"], "--rounds"),
    ],
)
def test_what_makes_no_run_is_one_line(words: list[str], line: str, tmp_path: Path, capsys) -> None:
    code, out, err = call(capsys, *words, "-q", "-o", tmp_path / "x.run")
    assert (code, out) == (2, "")
    assert line in err
    assert err.count("\n") == 1
    assert not (tmp_path / "x.run").exists()


def test_a_run_that_is_there_is_kept(tmp_path: Path, capsys) -> None:
    (tmp_path / "x.run").mkdir()
    code, _, err = call(capsys, "--host-count", "16", "-o", tmp_path / "x.run")
    assert code == 2
    assert "exists" in err
