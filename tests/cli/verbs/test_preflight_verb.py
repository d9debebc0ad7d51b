"""fablint preflight as a user calls it, on folders that stand for a machine, and on this one."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import stat
from pathlib import Path
from xml.etree import ElementTree

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pinned import pinned_by

PINNED = pinned_by("cli.toml", __file__)

NIC = {"address": "02:11:22:33:44:55", "mtu": "9000", "speed": "200000", "type": "1", "flags": "0x1003"}


def machine(folder: Path, state: str = "up") -> Path:
    """A folder that stands for a host, with one NIC of the fabric."""
    nic = folder / "sys/class/net/hsn0"
    nic.mkdir(parents=True)
    for name, text in {**NIC, "operstate": state, "carrier": "1" if state == "up" else "0"}.items():
        (nic / name).write_text(text + "\n")
    (folder / "etc").mkdir()
    (folder / "etc/hostname").write_text("nid001013\n")
    return folder


@pytest.fixture
def healthy(tmp_path: Path) -> Path:
    return machine(tmp_path / "healthy")


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    return machine(tmp_path / "faulty", "down")


def test_a_healthy_host_has_two_lines(fablint, healthy):
    done = fablint("preflight", "--sysroot", healthy)
    assert (done.returncode, done.stderr) == (0, "")
    first, second = done.stdout.splitlines()
    assert first.startswith("1 host: 1 fit; ")
    assert second.startswith("skipped: ")


def test_the_nics_can_be_named(fablint, healthy):
    assert fablint("preflight", "--sysroot", healthy, "--nic", "hsn0").returncode == 0
    done = fablint("preflight", "--sysroot", healthy, "--nic", "hsn0,ens9")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == PINNED["--nic ens9: no host has such"]


def test_a_faulty_host_is_named(fablint, faulty):
    done = fablint("preflight", "--sysroot", faulty)
    assert done.returncode == 1
    assert "FAIL   net.link.up  " in done.stdout
    assert " hsn0: link down\n" in done.stdout
    assert "1 host: 0 fit, 1 unfit (" in done.stdout


def test_as_json(fablint, faulty):
    done = fablint("preflight", "--sysroot", faulty, "--json")
    facts = json.loads(done.stdout)
    assert (done.returncode, facts["exit_code"]) == (1, 1)
    assert facts["format"] == 1
    assert facts["unfit"] == {facts["hosts"][0]: "net.link.up hsn0 link down"}
    assert {"FAIL", "SKIP"} <= {one["outcome"] for one in facts["results"]}


def test_files_for_ci_and_for_prometheus(fablint, faulty, tmp_path):
    (tmp_path / "out").mkdir()
    done = fablint("preflight", "--sysroot", faulty, "--junit", "out/x.xml", "--prometheus", "out/x.prom")
    assert done.returncode == 1
    left = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert left == ["x.prom", "x.xml"]  # no part of a file
    root = ElementTree.parse(tmp_path / "out/x.xml").getroot()
    assert root.get("failures") == "1"
    families = {one.name: one for one in text_string_to_metric_families((tmp_path / "out/x.prom").read_text())}
    assert [one.value for one in families["fablint_preflight_unfit"].samples] == [1]
    assert families["fablint_preflight_last_run_timestamp_seconds"].samples[0].value > 1.7e9


def test_a_file_is_replaced_in_one_step(fablint, healthy, tmp_path):
    """The collector may read at any moment: what it has opened stays whole."""
    path = tmp_path / "x.prom"
    path.write_text("old\n")
    with path.open() as reader:
        assert fablint("preflight", "--sysroot", healthy, "--prometheus", path).returncode == 0
        assert reader.read() == "old\n"
    assert "fablint_preflight_unfit" in path.read_text()


def test_what_is_no_plain_file_is_written_into(fablint_program, healthy, tmp_path):
    (tmp_path / "stdout").symlink_to("/proc/self/fd/1")
    done = fablint_program("preflight", "--sysroot", healthy, "-q", "--prometheus", "stdout")
    assert done.returncode == 0
    assert "# TYPE fablint_preflight_unfit gauge" in done.stdout
    assert (tmp_path / "stdout").is_symlink()


def test_a_link_to_a_file_stays_one(fablint, healthy, tmp_path):
    (tmp_path / "real").touch()
    (tmp_path / "x.prom").symlink_to("real")
    assert fablint("preflight", "--sysroot", healthy, "--prometheus", "x.prom").returncode == 0
    assert (tmp_path / "x.prom").is_symlink()
    assert "fablint_preflight_unfit" in (tmp_path / "real").read_text()


@pytest.mark.parametrize("name", ["x.json", "x.json.gz"])
def test_a_snapshot_that_was_saved_tells_the_same(fablint, faulty, tmp_path, name):
    seen = fablint("preflight", "--sysroot", faulty, "--save", name)
    text = (tmp_path / name).read_bytes()
    document = json.loads(gzip.decompress(text) if name.endswith(".gz") else text)
    assert document["fablint_snapshot"] == 1
    again = fablint("preflight", "--snapshot", name)
    assert (again.returncode, again.stdout) == (seen.returncode, seen.stdout)


@pytest.mark.parametrize("option", ["--save", "--junit", "--prometheus"])
def test_a_file_that_cannot_be_written_is_refused_before_anybody_is_asked(fablint, tmp_path, option):
    done = fablint("preflight", "--sysroot", tmp_path / "nowhere", option, tmp_path / "no" / "file")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == PINNED["cannot write tmp_path /no/file"].filled(tmp_path=tmp_path)


def test_sources_that_contradict_each_other_are_refused(fablint, tmp_path):
    done = fablint("preflight", "-w", "n1", "--snapshot", "x.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == PINNED["--hosts and --snapshot contradict"]


def test_hosts_to_leave_out_of_nothing_are_refused(fablint):
    done = fablint("preflight", "-x", "n1")
    assert (done.returncode, done.stdout) == (2, "")


def test_act_reads_what_it_prints(fablint, faulty, tmp_path):
    (tmp_path / "found.json").write_text(fablint("preflight", "--sysroot", faulty, "--json").stdout)
    done = fablint("act", "found.json", "--drain", "--scheduler", "slurm")
    assert PINNED["Reason= net.link.up hsn0"] in done.stdout


def programs(folder: Path, ran: Path) -> str:
    """A PATH on which Slurm's and ssh's programs leave a trace."""
    folder.mkdir()
    for name in ("srun", "scontrol", "sinfo", "squeue", "ssh"):
        (folder / name).write_text(f"#!/bin/sh\necho {name} >> {ran}\n")
        (folder / name).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


@pytest.mark.parametrize("context", ["prolog_slurmd", "epilog_slurmd"])
def test_a_prolog_looks_at_its_own_host_and_asks_slurm_nothing(fablint, tmp_path, context):
    """A step cannot be started there, and the other hosts have prologs of their own."""
    environ = {"SLURM_SCRIPT_CONTEXT": context, "SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-2]"}
    environ |= {"PATH": programs(tmp_path / "bin", tmp_path / "ran"), "FABLINT_HOME": str(tmp_path / "home")}
    done = fablint("preflight", "--json", **environ)
    assert json.loads(done.stdout)["hosts"] == [os.uname().nodename]
    assert not (tmp_path / "ran").exists()


def test_a_drained_host_is_looked_at(fablint, tmp_path):
    """Whether it is fit to come back is what an administrator wants to know."""
    environ = {"PATH": programs(tmp_path / "bin", tmp_path / "ran"), "FABLINT_HOME": str(tmp_path / "home")}
    done = fablint("preflight", "-w", "localhost", "--json", **environ)
    assert json.loads(done.stdout)["hosts"] == ["localhost"]
    assert not (tmp_path / "ran").exists()


def test_what_root_collects_is_for_root_only(fablint, tmp_path):
    """What was saved for a bug report, and the counters that the next preflight compares with."""
    if os.geteuid() != 0:
        pytest.skip("only root sees what others must not")
    before = os.umask(0)
    try:
        done = fablint("preflight", "--save", "x.json.gz", FABLINT_HOME=str(tmp_path / "home"))
    finally:
        os.umask(before)
    assert done.returncode in (0, 1, 3), done.stderr
    kept = tmp_path / "home" / "preflight"
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "x.json.gz", kept, *kept.iterdir())}
    assert len(modes) == 5  # the last reading, and those of this hour and day
    assert {name for name, mode in modes.items() if mode & 0o077} == set()


@pytest.mark.parametrize("kind", ["device", "link out of the tree", "pipe", "huge", "folder"])
def test_a_tree_with_a_hostile_hostname_is_judged(fablint, healthy, tmp_path, kind):
    """The file is read by the collector alone, which reads the beginning of regular files below the folder."""
    tree, secret = tmp_path / "tree", tmp_path / "secret"
    shutil.copytree(healthy, tree, symlinks=True)
    name = tree / "etc/hostname"
    name.parent.mkdir(exist_ok=True)
    name.unlink(missing_ok=True)
    secret.write_text("secret\n")
    if kind == "pipe":
        os.mkfifo(name)
    elif kind == "folder":
        name.mkdir()
    elif kind == "huge":
        with name.open("wb") as stream:
            stream.write(b"n77\n")
            stream.truncate(1 << 40)
    else:
        name.symlink_to("/dev/zero" if kind == "device" else secret)
    done = fablint("preflight", "--sysroot", tree, "--json")
    assert done.returncode in (0, 1), done.stderr
    assert json.loads(done.stdout)["hosts"] == ["n77" if kind == "huge" else os.uname().nodename]
