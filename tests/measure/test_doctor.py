"""The doctor, on machines with something missing."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from fablint.measure import Engine, doctor, examine
from fablint.measure.doctor import DoctorCheck
from pinned import pinned_by

PINNED = pinned_by("measure.toml", __file__)

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def checks(system) -> dict[str, tuple[bool, str]]:
    return {check.name: (check.ok, check.remedy) for check in examine(system)}


def test_a_machine_without_mpi(staged):
    staged.variables["PATH"] = "/nowhere"
    staged.variables.pop("FABLINT_MPICXX", None)
    staged.interpreter = Path("/nowhere/python3")
    found = checks(staged)
    assert found["mpicxx"] == (False, PINNED["load an MPI module, set"])
    assert "mpiexec" not in found
    assert found["python"][0]


def test_a_home_that_cannot_be_written(staged, tmp_path):
    (tmp_path / "file").write_text("")
    staged.variables["FABLINT_HOME"] = str(tmp_path / "file" / "home")
    assert checks(staged)["FABLINT_HOME"] == (False, PINNED["set FABLINT_HOME to a directory"])
    staged.variables["FABLINT_HOME"] = str(tmp_path / "not" / "yet")
    assert checks(staged)["FABLINT_HOME"] == (True, "")
    assert not (tmp_path / "not").exists()


def test_a_shell_bound_to_one_cpu_is_reported(staged, monkeypatch):
    staged.cpus = frozenset({3})
    monkeypatch.setattr(type(staged), "cpu_count", lambda self: 8)
    assert checks(staged)["CPUs"][0] is False
    staged.cpus = frozenset({3, 4})
    assert checks(staged)["CPUs"][0] is True


def test_a_missing_library_is_in_the_extra_that_its_remedy_installs(staged, monkeypatch):
    staged.variables["PATH"] = "/nowhere"
    monkeypatch.setattr(doctor, "find_spec", lambda package: None)
    extras = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    named = [(check.state.split()[0], check.remedy) for check in examine(staged) if check.name == "extra"]
    assert {package for package, _ in named} == {"h5netcdf", "pyarrow", "reportlab", "xarray"}
    for package, remedy in named:
        extra = re.fullmatch(r"pip install 'fablint\[(\w+)\]'", remedy)[1]
        assert any(requirement.startswith(package) for requirement in extras[extra])


def test_an_engine_that_loads_another_mpi_library_is_not_ok(staged, monkeypatch, tmp_path):
    problem = "the engine is compiled for MPICH 4.0.2, but loads Open MPI v4.1.4 (/usr/lib/libmpi.so.40): advice"
    program = tmp_path / "fablint-engine"
    program.write_text(f"#!/bin/sh\necho 'fablint-engine: error: {problem}' >&2\nexit 2\n")
    program.chmod(0o755)
    used = Engine("0", program, Path("/opt/mpicxx"), "g++", (), "2026-01-01", "0")
    other = replace(used, key="1", mpicxx=Path("/opt/other/mpicxx"))  # of a module that is not loaded
    monkeypatch.setattr(doctor, "list_engines", lambda system: [used, other])
    monkeypatch.setattr(doctor, "find_engine", lambda system: used)
    engines = [check for check in examine(staged) if check.name == "engine"]
    refused = next(check for check in engines if not check.ok)
    assert (refused.needed, refused.state) == (True, f"{program}, for /opt/mpicxx: {problem}")
    assert [check.state for check in engines if check.ok] == [f"{program}, for /opt/other/mpicxx"]
    assert not [check for check in examine(staged) if check.name == "transport"]


ABSENT = DoctorCheck("transport", False, "verbs: this host has no device", "", False, False, "verbs")


def test_a_mark_says_what_a_problem_stops():
    marks = {
        DoctorCheck("mpicxx", True, "here"): "ok",
        DoctorCheck("mpicxx", False, "none"): "FAIL",
        DoctorCheck("CPUs", False, "1 of 8", needed=False): "warn",
        ABSENT: "-",
    }
    assert [check.mark for check in marks] == [*marks.values()]


def test_the_summary_says_what_the_machine_can_do():
    able = [
        DoctorCheck("transport", True, "mpi: exchanged", "", True, True, "mpi"),
        ABSENT,
        DoctorCheck("memory", True, "host-numa:0: read", "", False, True, "host-numa"),
    ]
    assert doctor.summary(able) == PINNED["this machine can: measure"]
    assert doctor.summary([]) == PINNED["this machine can: measure over"]
    assert doctor.summary([*able, DoctorCheck("mpicxx", False, "none")]) == "this machine cannot measure: mpicxx"


def test_a_line_comes_before_the_next_part_is_examined(staged, monkeypatch):
    monkeypatch.setattr(doctor, "_mpi", lambda system: pytest.fail("examined before it was asked for"))
    lines = examine(staged)
    assert [next(lines).name, next(lines).name] == ["python", "FABLINT_HOME"]


@pytest.mark.parametrize(
    ("failure", "is_here"),
    [
        ("this host has no InfiniBand or RoCE device: load the driver", False),
        ("libcuda.so.1: cannot open shared object file: No such file or directory", False),
        ("--memory host-huge: no huge pages for a message buffer of 64 bytes", False),
        ("no answer within 30 s", True),
    ],
)
def test_what_a_machine_need_not_have_is_no_warning(failure, is_here):
    assert doctor._is_here(failure) is is_here
