"""The engine of a check is built before the time of the check begins."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from fake_launches import FakeSystem, Notes

from fablint.errors import UsageError
from fablint.measure import BUILD_S, engine, list_engines
from fablint.model import Medium, Slots
from fablint.workflows import programs
from fablint.workflows.check import local_check
from fablint.workflows.check.check_run import CheckRun
from fablint.workflows.check.request import CheckRequest
from fablint.workflows.context import Context

MPICXX = """\
#!/bin/sh
case "$1" in --version) echo "fake 1.0"; exit 0 ;; -show) echo "g++"; exit 0 ;; esac
[ -e {folder}/broken ] && {{ echo "main.cpp:1: error: no mpi.h" >&2; exit 1; }}
while [ $# -gt 0 ]; do if [ "$1" = -o ]; then echo built > "$2"; chmod +x "$2"; fi; shift; done
"""

MPIEXEC = """\
#!/bin/sh
[ "$1" = --version ] && {{ echo "mpirun (Open MPI) 4.1.4"; exit 0; }}
echo "$$ $*" > {folder}/new; mv {folder}/new {folder}/started
exec sleep 600
"""


@pytest.fixture
def mpicxx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An MPI compiler wrapper that writes a text in place of each file, and an engine of one source."""
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "main.cpp").write_text("// engine\n")
    monkeypatch.setattr(engine, "find_sources", lambda: tmp_path / "engine")
    program = tmp_path / "mpicxx"
    program.write_text(MPICXX.format(folder=tmp_path))
    program.chmod(0o755)
    return program


def test_an_engine_for_a_job_is_built_here_or_given_time(staged, tmp_path, mpicxx):
    media = (Medium(),)
    context = Context(staged, Notes(), mpicxx)
    assert programs.build_before_job(context, media, is_dry=True) == 0.0
    assert list_engines(staged) == []
    assert programs.build_before_job(context, media, is_dry=False) == 0.0
    assert [built.mpicxx for built in list_engines(staged)] == [mpicxx]
    elsewhere = Context(staged, Notes(), Path("/opt/of/the/hosts/mpicxx"))
    assert programs.build_before_job(elsewhere, media, is_dry=False) == BUILD_S


def test_an_engine_that_cannot_be_built_is_not_left_to_the_job(staged, tmp_path, mpicxx):
    (tmp_path / "broken").touch()
    with pytest.raises(UsageError, match="cannot build the engine"):
        programs.build_before_job(Context(staged, Notes(), mpicxx), (Medium(),), is_dry=False)


def test_ranks_start_while_hosts_are_asked_where_the_engine_is_built(staged, tmp_path, mpicxx):
    launcher, started = tmp_path / "mpiexec", tmp_path / "started"
    launcher.write_text(MPIEXEC.format(folder=tmp_path))
    launcher.chmod(0o755)
    media, slots = (Medium(),), [Slots("a", 1), Slots("b", 1)]
    context = programs.with_programs(Context(staged, Notes(), mpicxx), media)
    with programs.starting(context, media, slots):  # hosts are asked before anything is built
        pass
    programs.build_first(context)
    with programs.starting(context, media, []):  # their number depends on what the hosts answer
        pass
    assert not started.exists()
    with programs.starting(context, media, slots, fewest_each=2) as with_launch:
        assert with_launch.served is not None
        while not started.exists():
            time.sleep(0.01)
        pid, *words = started.read_text().split()
    assert "a:2,b:2" in words
    assert words[-3:] == ["--serve", "--expect-ranks", "4"]
    assert not Path(f"/proc/{pid}").exists()


def test_the_build_is_not_part_of_the_budget(tmp_path, monkeypatch):
    system = FakeSystem(tmp_path / "home")
    begun: list[float] = []

    def build(context: Context) -> None:
        system.now_s += 200.0

    def check(self: CheckRun) -> None:
        begun.append(system.monotonic())  # the budget counts from here

    monkeypatch.setattr(programs, "with_programs", lambda context, media: context)
    monkeypatch.setattr(programs, "build_first", build)
    monkeypatch.setattr(CheckRun, "check", check)
    local_check.check_local(Context(system, Notes()), CheckRequest(ranks=4), tmp_path / "a.run")
    assert begun == [200.0]
