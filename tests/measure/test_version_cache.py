"""A launcher is asked for its kind once per MPI. The launcher here is a program that counts its calls."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fablint.errors import UsageError
from fablint.measure import find_launchers

SOURCE = """
#include <cstdio>
int main() {{
    if (FILE *log = std::fopen("{log}", "a")) {{ std::fputs("asked\\n", log); std::fclose(log); }}
    std::puts("mpirun (Open MPI) {version}");
    return {status};
}}
"""


def compiled(path: Path, version: str, status: int = 0) -> None:
    """A binary that prints a version and notes that it was run."""
    source = path.with_suffix(".cpp")
    source.write_text(SOURCE.format(log=path.parent / "log", version=version, status=status))
    subprocess.run([shutil.which("g++") or "c++", source, "-o", path], check=True)


class Mpi:
    """An MPI of three files: `mpiexec`, `mpicxx` and a library."""

    def __init__(self, folder: Path, system) -> None:
        folder.mkdir()
        self.system = system
        self.mpiexec, self.mpicxx, self.library = (folder / name for name in ("mpiexec", "mpicxx", "libmpi.so"))
        for path in (self.mpicxx, self.library):
            path.write_text("x")
        compiled(self.mpiexec, "4.1.4")

    def version(self, **options) -> str:
        (found,) = find_launchers(self.system, self.mpicxx, [str(self.library)], **options).launchers
        assert found.kind.name == "Open MPI"
        return found.version

    @property
    def asked(self) -> int:
        return len((self.mpiexec.parent / "log").read_text().splitlines())

    @property
    def kept(self) -> Path:
        (path,) = (self.system.home / "versions").iterdir()
        return path


@pytest.fixture
def mpi(tmp_path, staged) -> Mpi:
    staged.variables.pop("SLURM_JOB_ID", None)
    return Mpi(tmp_path / "mpi", staged)


def test_a_launcher_is_asked_once(mpi):
    assert [mpi.version() for _ in range(3)] == ["mpirun (Open MPI) 4.1.4"] * 3
    assert mpi.asked == 1
    assert mpi.kept.stat().st_mode & 0o777 == 0o600


def touch(path: Path) -> None:
    facts = path.stat()
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns + 1))


def replace(path: Path) -> None:
    """Another file of the same size and age."""
    facts = path.stat()
    shutil.copy2(path, path.with_suffix(".new"))
    os.utime(path.with_suffix(".new"), ns=(facts.st_atime_ns, facts.st_mtime_ns))
    path.with_suffix(".new").replace(path)


@pytest.mark.parametrize("change", [touch, replace])
@pytest.mark.parametrize("name", ["mpiexec", "mpicxx", "library"])
def test_it_is_asked_again_after_a_file_has_changed(mpi, name, change):
    mpi.version()
    change(getattr(mpi, name))
    mpi.version()
    assert mpi.asked == 2
    mpi.version()
    assert mpi.asked == 2


def test_an_upgrade_is_seen(mpi):
    mpi.version()
    compiled(mpi.mpiexec, "5.0.7")
    assert mpi.version() == "mpirun (Open MPI) 5.0.7"


@pytest.mark.parametrize("name", ["PATH", "LD_LIBRARY_PATH", "OMPI_MCA_btl", "LOADEDMODULES"])
def test_it_is_asked_again_in_another_environment(mpi, name):
    mpi.version()
    mpi.system.variables[name] = "/somewhere/else"
    mpi.version()
    assert mpi.asked == 2


def test_a_link_that_leads_elsewhere_is_another_launcher(mpi, tmp_path):
    first, second = mpi.mpiexec.rename(tmp_path / "first"), tmp_path / "second"
    mpi.mpiexec.symlink_to(first)
    mpi.version()
    compiled(second, "5.0.7")
    mpi.mpiexec.unlink()
    mpi.mpiexec.symlink_to(second)
    assert mpi.version() == "mpirun (Open MPI) 5.0.7"


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"key": 1, "text": "x"}', "[" * 50_000, "\x00\xff"])
def test_a_damaged_answer_is_ignored_and_replaced(mpi, content):
    mpi.version()
    mpi.kept.write_text(content, encoding="latin-1")
    assert mpi.version() == mpi.version() == "mpirun (Open MPI) 4.1.4"
    assert mpi.asked == 2


@pytest.mark.parametrize("text", ["Some MPI 1.0", "", None, ["mpirun (Open MPI) 4.1.4"]])
def test_an_answer_of_no_known_launcher_is_ignored(mpi, text):
    mpi.version()
    mpi.kept.write_text(json.dumps({**json.loads(mpi.kept.read_text()), "text": text}))
    assert mpi.version() == "mpirun (Open MPI) 4.1.4"
    assert mpi.asked == 2


def writable_by_others(path: Path) -> None:
    path.chmod(0o622)


def a_link(path: Path) -> None:
    path.rename(path.with_suffix(".other"))
    path.symlink_to(path.with_suffix(".other"))


def of_another_user(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    os.chown(path, 12345, 12345)


@pytest.mark.parametrize("make", [writable_by_others, a_link, of_another_user])
def test_an_answer_that_another_may_have_written_is_not_believed(mpi, make):
    mpi.version()
    kept = mpi.kept
    kept.write_text(kept.read_text().replace("4.1.4", "6.6.6"))
    assert mpi.version() == "mpirun (Open MPI) 6.6.6"  # ours is believed
    make(kept)
    assert mpi.version() == "mpirun (Open MPI) 4.1.4"
    assert mpi.asked == 2


def test_a_home_that_cannot_be_written_is_harmless(mpi):
    mpi.system.home.write_text("a file")
    assert mpi.version() == mpi.version() == "mpirun (Open MPI) 4.1.4"
    assert mpi.asked == 2


def test_a_script_is_asked_every_time(mpi):
    mpi.mpiexec.unlink()
    mpi.mpiexec.write_text(f"#!/bin/sh\necho asked >> {mpi.mpiexec.parent / 'log'}\necho 'mpirun (Open MPI) 4.1.4'\n")
    mpi.mpiexec.chmod(0o755)
    assert mpi.version() == mpi.version() == "mpirun (Open MPI) 4.1.4"
    assert mpi.asked == 2


def test_a_failure_is_not_kept(mpi):
    compiled(mpi.mpiexec, "4.1.4", status=1)
    mpi.version()
    mpi.version()
    assert mpi.asked == 2
    compiled(mpi.mpiexec, "3", status=0)
    mpi.mpiexec.with_name("mpiexec").write_bytes(mpi.mpiexec.read_bytes().replace(b"Open MPI", b"Odd MPI!"))
    with pytest.raises(UsageError, match="unknown kind"):
        mpi.version()


def test_the_doctor_looks_for_itself(mpi):
    mpi.version()
    mpi.version(cached=False)
    assert mpi.asked == 2
