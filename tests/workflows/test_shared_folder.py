"""A run directory that the hosts do not share: said before the launch, or by a launch that wrote nothing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from test_retest_verb import HOST, a_run

from fablint.errors import IncompleteError, UsageError
from fablint.model import Slots
from fablint.workflows.shared_folder import explain_unshared, refuse_unshared
from fablint_command import Fablint
from pinned import pinned_by
from tested_mpis import built_engine, tested_mpis as installed_mpis

PINNED = pinned_by("workflows.toml", __file__)

# A fake of ssh: the host has the files of this machine, but other folders in the place of those called `unshared`.
FAKE_SSH = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do case $1 in -o|-l) shift;; esac; shift; done
if [ "$1" = silent ]; then exit 255; fi
shift
exec /bin/sh -c "$(echo "$*" | sed s:/unshared/:/on-the-host/:g)"
"""


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hosts that are reached by the fake, outside of any job."""
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(FAKE_SSH)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    for name in ("SLURM_JOB_ID", "PBS_NODEFILE"):
        monkeypatch.delenv(name, raising=False)


def folders(tmp_path: Path) -> tuple[Path, Path]:
    both = tmp_path / "unshared", tmp_path / "shared"
    for folder in both:
        folder.mkdir()
    return both


def slots(*hosts: str) -> list[Slots]:
    return [Slots(host, 1) for host in hosts]


@pytest.mark.usefixtures("ssh")
def test_a_folder_that_the_host_of_rank_0_does_not_see_is_refused(staged, tmp_path: Path) -> None:
    staged.variables["PATH"] = os.environ["PATH"]
    unshared, shared = folders(tmp_path)
    said = f"n1 does not see {unshared} of this machine, and its rank writes the run: give -o in a folder that all"
    with pytest.raises(UsageError, match=said):
        refuse_unshared(staged, unshared, slots("n1", "n2"))
    with pytest.raises(IncompleteError, match=said):
        explain_unshared(staged, unshared, unshared / "fablint-engine", slots("n1", "n2"))
    assert list(unshared.iterdir()) == []
    for folder, hosts in (
        (shared, ("n1", "n2")),
        (unshared, ("silent", "n2")),
        (unshared, (os.uname().nodename, "n2")),
        (unshared, ()),
        (unshared / "none", ("n1",)),
    ):
        refuse_unshared(staged, folder, slots(*hosts))


@pytest.mark.usefixtures("ssh")
def test_an_engine_that_hosts_do_not_see_explains_a_launch_with_their_names(staged, tmp_path: Path) -> None:
    staged.variables["PATH"] = os.environ["PATH"]
    unshared, shared = folders(tmp_path)
    for folder in (unshared, shared):
        (folder / "fablint-engine").touch()
    seen, unseen = shared / "fablint-engine", unshared / "fablint-engine"
    here = os.uname().nodename
    advice = f"set FABLINT_HOME to a folder that all hosts share \\(it is {staged.home}\\)"
    sentence = f"not see {unseen} of this machine, the engine that ranks execute: {advice}"
    with pytest.raises(UsageError, match=rf"^n\[1-2\] do {sentence}$"):
        explain_unshared(staged, shared, unseen, slots("n1", "n2", "n1"))
    with pytest.raises(UsageError, match=rf"^n1 does {sentence}, or exclude n1 with -x$"):
        explain_unshared(staged, shared, unseen, slots(here, "n1", "silent"))
    for engine, hosts in ((seen, ("n1", "n2")), (unseen, (here,)), (unseen, ("silent",))):
        explain_unshared(staged, shared, engine, slots(*hosts))


@pytest.mark.usefixtures("ssh")
def test_a_check_whose_hosts_do_not_see_the_engine_names_them(fablint: Fablint, tmp_path: Path) -> None:
    unshared, shared = folders(tmp_path)
    engine = built_engine(installed_mpis()[0])
    kept = unshared / "engines" / engine.key
    shutil.copytree(engine.path.parent, kept)
    done = fablint(
        *("-q", "check", "-w", "198.51.100.2,198.51.100.3", "--include-unfit", "-o", shared / "y.run"),
        *(("--mpicxx", str(engine.mpicxx)) if engine.mpicxx else ()),
        FABLINT_HOME=str(unshared),
    )
    assert done.returncode == 2, done.stderr
    assert PINNED["198.51.100. 2-3 do not see"].filled(kept=kept) in done.stderr
    assert not (shared / "y.run").exists()


@pytest.mark.usefixtures("ssh")
def test_verbs_refuse_it_before_they_launch(fablint: Fablint, tmp_path: Path) -> None:
    unshared, _ = folders(tmp_path)
    a_run(tmp_path / "x.run", HOST)
    for words in (
        ("retest", "x.run", "-o", unshared / "y.run"),
        ("bench", "osu_latency", "--hosts", "h00,h01", "-o", unshared / "y.run"),
        ("check", "-w", "198.51.100.2,198.51.100.3", "--include-unfit", "-o", unshared / "y.run"),
    ):
        done = fablint(*words)
        assert done.returncode == 2, done.stderr
        assert PINNED["does not see unshared"].filled(unshared=unshared) in done.stderr
        assert len([line for line in done.stderr.splitlines() if "does not see" in line]) == 1
        assert list(unshared.iterdir()) == []
