"""Outputs of large fabrics: thousands of ports, long logs and neighbour tables, files whose end is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from preflight_help import of, outcomes, wrong
from simulated_fabric import Tree

from fablint.discover.sources import SavedOutput, read_saved
from fablint.errors import UsageError
from fablint.model.preflight_results import Outcome
from fablint.preflight.checks.fabric.infiniband_fabric import FABRIC_BALANCE, FABRIC_LINKS
from fablint.snapshot import Snapshot, snapshot_of
from fablint.snapshot.agent import collector
from fablint.snapshot.agent.collector import fewer_neighbours
from fablint.snapshot.agent.log_records import LOG_LETTERS
from fablint.snapshot.agent.machine import MOST_LETTERS
from fablint.snapshot.host_snapshot import Output
from fablint.snapshot.parsers.ibnetdiscover import why_incomplete
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

LARGE = Tree(leaves=800, rates={("node666", 1): "1xEDR"})
TEXT = LARGE.net_file()


def below(root: Path, commands: dict[str, str], level: str = "quick", **files: str) -> Snapshot:
    """What the collector takes of a tree with these outputs."""
    for path, text in [(f"commands/{name}", said) for name, said in commands.items()] + list(files.items()):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return snapshot_of(collector.snapshot(level, 0.0, 60.0, str(root)))


def test_thousands_of_ports_are_judged(tmp_path: Path) -> None:
    assert len(TEXT) > 2 * MOST_LETTERS
    fabric = below(tmp_path, {"ibnetdiscover": TEXT}, "fabric")
    assert fabric.command("ibnetdiscover").text == TEXT.rstrip("\n")
    ((name, target, outcome, message),) = wrong(of(FABRIC_LINKS, fabric=fabric))
    assert (name, target, outcome) == ("node666", "", Outcome.FAIL)
    assert "runs at 1xEDR" in message
    assert len(of(FABRIC_LINKS, fabric=fabric)) == 4002, "every host and every switch"


def test_a_real_program_prints_more_than_others_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "out.txt").write_text(TEXT)
    program = tmp_path / "ibnetdiscover"
    program.write_text(f"#!/bin/sh\nexec cat {tmp_path / 'out.txt'}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    from fablint.snapshot.agent.machine import Machine

    machine = Machine("/", 30.0)
    assert machine.ask("ibnetdiscover", ["ibnetdiscover"], 20.0) == {"status": 0, "output": TEXT}
    assert machine.ask("ethtool-S/ens3f0np0", ["ibnetdiscover"], 20.0)["output"] == TEXT  # as of 250 queues
    assert machine.ask("another", ["ibnetdiscover"], 20.0) == {"error": f"it printed more than {MOST_LETTERS} letters"}


def test_what_is_still_too_long_is_no_pass() -> None:
    fabric = Snapshot("here", commands={"ibnetdiscover": Output(error="it printed more than 33554432 letters")})
    assert outcomes(of(FABRIC_LINKS, fabric=fabric)) == [Outcome.ERROR]


@pytest.mark.parametrize("part", [0.3, 0.7, 0.95])
def test_a_file_whose_end_is_missing_is_refused(part: float) -> None:
    text = Tree().net_file()
    cut = text[: int(part * len(text))]
    with pytest.raises(UsageError) as refused:
        read_saved(SavedOutput("fabric.txt", cut))
    assert PINNED["fabric.txt: the output"].begins(str(refused.value))
    assert "\n" not in str(refused.value)
    fabric = Snapshot("here", commands={"ibnetdiscover": Output(cut, status=0)})
    for check in (FABRIC_LINKS, FABRIC_BALANCE):
        ((_, _, outcome, message),) = wrong(of(check, fabric=fabric))
        assert (outcome, message) == (Outcome.ERROR, why_incomplete(cut))
    assert why_incomplete(text) == ""


def test_of_a_long_log_the_end_is_kept(tmp_path: Path) -> None:
    lines = [f"<6>[{number:12.6f}] usb 1-1: news number {number}" for number in range(20_000)]
    lines.insert(10, "<3>[    9.500000] mlx5_core 0000:10:00.0: health compromised")
    log = below(tmp_path, {}, **{"var/log/dmesg": "\n".join(lines)}).kernel_log.text
    assert len(log) <= LOG_LETTERS
    assert "news number 19999" in log
    assert "health compromised" in log, "news do not wash errors away"
    assert "news number 12\n" not in log


def test_a_long_neighbour_table_is_read(tmp_path: Path) -> None:
    entries = [
        {"dst": f"10.{n >> 8}.{n & 255}.1", "dev": "hsn0", "lladdr": "02:00:00:00:00:01", "used": 1, "confirmed": 1,
         "updated": 7, "probes": 1, "state": ["PERMANENT" if n % 2 else "STALE"]}
        for n in range(5000)
    ]  # fmt: skip
    text = json.dumps(entries)
    assert len(text) > MOST_LETTERS
    said = below(tmp_path, {"ip-neigh": text}).command("ip-neigh")
    kept = json.loads(said.text)
    assert len(kept) == 2500
    assert kept[1] == {
        "dst": "10.0.2.1",
        "dev": "hsn0",
        "lladdr": "02:00:00:00:00:01",
        "state": ["STALE"],
        "updated": 7,
    }
    assert fewer_neighbours({"output": "[" * (MOST_LETTERS + 1), "status": 0})["status"] == 0
