"""fablint preflight --learn and --site as a user calls them, and a check of a cluster with a site file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fablint.measure import NoProgress
from fablint.model import Allocation
from fablint.snapshot import CollectedSnapshots, snapshot_of
from fablint.system import System
from fablint.workflows import fabric_discovery, host_preflight, run_files
from fablint.workflows.check.check_record import CheckRecord
from fablint.workflows.check.cluster_check import UnfitError, check_cluster
from fablint.workflows.check.level_runs import LevelRuns
from fablint.workflows.check.request import CheckRequest
from fablint.workflows.context import Context
from finding_cases import texts
from pinned import pinned_by
from snapshot_trees import nested

PINNED = pinned_by("workflows.toml", __file__)

NIC = {"address": "02:11:22:33:44:55", "mtu": "9000", "speed": "200000", "type": "1", "flags": "0x1003", "carrier": "1"}
SUPPRESS = """format = 1

[[suppress]]
check = "net.link.mtu"
hosts = "n[1-6]"
until = 9999-12-31
reason = "ticket 4711"
"""


def machine(folder: Path, mtu: str = "9000") -> Path:
    """A folder that stands for a host, with one NIC of the fabric."""
    nic = folder / "sys/class/net/hsn0"
    nic.mkdir(parents=True)
    for name, text in {**NIC, "mtu": mtu, "operstate": "up"}.items():
        (nic / name).write_text(text + "\n")
    (folder / "etc").mkdir()
    (folder / "etc/hostname").write_text("nid001013\n")
    return folder


def test_what_was_learned_of_a_host_is_quiet_on_it_and_finds_what_changed(fablint, tmp_path):
    healthy = machine(tmp_path / "healthy")
    done = fablint("preflight", "--sysroot", healthy, "--learn", "-o", "site.toml")
    assert done.returncode == 0
    assert done.stderr.startswith("fablint: site.toml: ") and "values of 1 class of hosts\n" in done.stderr
    text = (tmp_path / "site.toml").read_text()
    assert text.startswith("# Learned on 20") and '"net.link.mtu" = 9000\n' in text and 'hosts = "nid001013"' in text
    again = fablint("preflight", "--sysroot", healthy, "--site", "site.toml")
    assert (again.returncode, again.stderr) == (0, "")
    changed = machine(tmp_path / "changed", "1500")
    alone = fablint("preflight", "--sysroot", changed)
    beside = fablint("preflight", "--sysroot", changed, "--site", "site.toml")
    assert (alone.returncode, beside.returncode) == (0, 1)
    assert PINNED["FAIL net.link.mtu nid001013"] in beside.stdout
    with (tmp_path / "site.toml").open("a") as file:
        file.write('\n[severity]\n"net.link.mtu" = "warn"\n')
    assert fablint("preflight", "--sysroot", changed, "--site", "site.toml").returncode == 0


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--learn"], "--learn requires -o: name the file with -o, such as -o site.toml"),
        (["-o", "x.toml"], "-o requires --learn: give --learn as well; --save keeps snapshots"),
        (["--learn", "-o", "x.toml", "--site", "s.toml"], "--learn and --site contradict each other: give one of them"),
        (["--learn", "-o", "there.toml"], "there.toml exists: give another name with -o"),
        (["--learn", "-o", "no/where.toml"], "cannot write no/where.toml: name a file in a folder that you can write"),
        (["--site", "nope.toml"], "cannot read nope.toml: No such file or directory: give a site file (TOML)"),
        (["--site", "there.toml"], "there.toml: unknown key 'supress': did you mean suppress"),
        (["--site", "slow.toml"], "slow.toml: threshold 1: unknown scope 'egde': did you mean edge"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(fablint, tmp_path, words, line):
    (tmp_path / "there.toml").write_text("format = 1\n[[supress]]\n")
    (tmp_path / "slow.toml").write_text(
        'format = 1\n[[threshold]]\nscope = "egde"\nkernel = "latency"\nsize = 8\nvalue = "1 us"\n'
    )
    done = fablint("preflight", "--sysroot", machine(tmp_path / "m"), *words)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"fablint: {line}\n")


def test_one_file_holds_for_measurements_and_hosts(tmp_path):
    """A file that preflight wrote is a file of thresholds without thresholds, and vice versa."""
    from fablint.plan.check.site_thresholds import parse_thresholds

    assert parse_thresholds(SUPPRESS, "site.toml") == ()
    path = tmp_path / "site.toml"
    path.write_text('format = 1\n[[threshold]]\nscope = "edge"\nkernel = "latency"\nsize = 8\nvalue = "1 us"\n')
    site = run_files.load_site(path, System())
    assert site is not None and not site.classes and len(run_files.load_thresholds(path)) == 1


# ------------------------------------------------------------------------------------------------ check


def document(number: int) -> dict[str, Any]:
    """The snapshot of a host; the first has another MTU than all others."""
    nic = {
        **NIC,
        "address": f"02:11:22:33:44:{number:02x}",
        "mtu": "1500" if number == 1 else "9000",
        "operstate": "up",
    }
    tree = nested({f"/sys/class/net/hsn0/{name}": text for name, text in nic.items()})
    return {"fablint_snapshot": 1, "host": f"n{number}", "time": 1.7e9, "files": tree, "counters": tree}


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> Context:
    """Six hosts that answer, do not ping each other, and are not measured."""
    documents = {f"n{number}": document(number) for number in range(1, 7)}
    collected = CollectedSnapshots(documents, {name: snapshot_of(one) for name, one in documents.items()})
    monkeypatch.setattr(fabric_discovery, "usable_hosts", lambda *_, **__: (Allocation(tuple(documents), "test"), []))
    monkeypatch.setattr(fabric_discovery, "collect_snapshots", lambda *_: collected)
    monkeypatch.setattr(host_preflight, "ping_each_other", lambda _, __, found, ___: found)
    monkeypatch.setattr(LevelRuns, "check", lambda self: self)
    return Context(System(), NoProgress())


def test_a_check_suppresses_what_the_site_file_suppresses(context: Context, tmp_path: Path) -> None:
    wanted = CheckRequest("n[1-6]", blocks=3)
    with pytest.raises(UnfitError, match="n1 is not fit to be measured"):
        check_cluster(context, wanted, tmp_path / "a.run")
    path = tmp_path / "site.toml"
    path.write_text(SUPPRESS)
    wanted = CheckRequest("n[1-6]", blocks=3, site=path)
    done: Any = check_cluster(context, wanted, tmp_path / "b.run")
    note = "preflight: net.link.mtu: n1/hsn0: MTU 1500, 5 others 9000 (FAIL, suppressed until 9999-12-31: ticket 4711)"
    assert note in texts(done.preflight_notes)
    kept: CheckRecord = done.record
    assert kept.site == SUPPRESS and note in texts(kept.notes)
    assert json.dumps([one.name for one in done.known]) == "[]"
    assert done.recount.__self__.site.suppressions  # counters that grow are judged by the same file
