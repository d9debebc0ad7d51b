"""`fablint discover` as a user calls it, from saved outputs: no cluster is needed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fablint_command import Fablint

SAMPLES = Path(__file__).parents[2] / "fixtures" / "discover"
FAT_TREE = (
    "--from",
    SAMPLES / "fattree16-bad" / "ibnetdiscover.txt",
    "--from",
    SAMPLES / "fattree16-bad" / "dump_fts.txt",
)
TREE = ("--from", SAMPLES / "topology.conf")


def test_saved_outputs_make_a_topology_that_check_can_read(fablint: Fablint, tmp_path: Path) -> None:
    done = fablint("discover", *FAT_TREE, "-o", "fabric.json")
    assert done.returncode == 1
    assert "FAULT cable leaf2=spine1" in done.stdout
    assert done.stderr == "fablint: fabric.json written\n"
    assert max(map(len, done.stdout.splitlines())) <= 80
    again = fablint("discover", "--from", "fabric.json", "--json")
    assert again.returncode == 3
    assert [one["text"]["name"] for one in json.loads(again.stdout)["findings"]] == ["leaf3"]  # it has a cable less
    assert json.loads(again.stdout)["topology"] == json.loads((tmp_path / "fabric.json").read_text())
    plan = fablint("plan", "--hosts", "node[001-008]", "--topology", "fabric.json", "--explain")
    assert plan.returncode == 0, plan.stderr


@pytest.mark.parametrize(
    ("words", "written", "holds"),
    [
        (("-o", "t.yaml"), "t.yaml", "format: 1"),
        (("-o", "t.txt", "--to", "slurm"), "t.txt", "SwitchName=group0 Switches=x1000c0r3b0,x1000c0r7b0"),
        (("-o", "lists"), "lists/switches/x1001c0r7b0.txt", "nid001013"),
    ],
)
def test_exports(fablint: Fablint, tmp_path: Path, words: tuple[str, ...], written: str, holds: str) -> None:
    done = fablint("discover", *TREE, *words)
    assert done.returncode == 0, done.stderr
    assert holds in (tmp_path / written).read_text()


@pytest.mark.parametrize(
    ("words", "status", "line"),
    [
        (("--from", "none.txt"), 2, "none.txt: cannot be read: No such file or directory"),
        (("--from", SAMPLES / "README.md"), 2, "unknown format: give one of"),
        (
            ("--from", SAMPLES / "lldpcli-json0-switch-side.json"),
            2,
            "the output does not name the device that has these neighbours",
        ),
        (
            ("--from", SAMPLES / "lldpcli-json0-no-neighbours.json"),
            3,
            "no source reports to which switch the hosts are connected",
        ),
        ((*TREE, "-o", "t.txt"), 2, "t.txt: the suffix stands for no format"),
        ((*TREE, "-o", "none/t.json"), 2, "is not a directory"),
        ((*TREE, "--to", "yaml"), 2, "--to needs a file to write"),
        ((*TREE, "-w", "x[1-"), 2, "x[1-"),
        ((*TREE, "--nic", "eth0"), 2, "--nic requires hosts"),
        ((*TREE, "--blocks", "0"), 2, "Invalid value for '--blocks': 0 is not in the range x>=1"),
    ],
)
def test_every_mistake_is_one_line(fablint: Fablint, words: tuple[str | Path, ...], status: int, line: str) -> None:
    done = fablint("discover", *words, SLURM_JOB_ID="", PBS_NODEFILE="")
    assert done.returncode == status, done.stdout + done.stderr
    assert done.stderr.count("\n") == 1
    assert line in done.stderr
    assert "Traceback" not in done.stderr


def test_nothing_is_written_over(fablint: Fablint, tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text("mine")
    done = fablint("discover", *TREE, "-o", "t.yaml")
    assert done.returncode == 2
    assert "t.yaml: exists already" in done.stderr
    assert (tmp_path / "t.yaml").read_text() == "mine"


def test_json_has_findings_and_sources(fablint: Fablint) -> None:
    found = json.loads(fablint("discover", *FAT_TREE, "--json").stdout)
    assert found["exit_code"] == 1
    assert {one["text"]["name"] for one in found["findings"]} == {"leaf2=spine1", "node006=leaf2", "leaf3"}
    assert found["sources"][0]["counts"] == {"host": 15, "switch": 6, "cable": 15}
    assert found["topology"]["format"] == 1
