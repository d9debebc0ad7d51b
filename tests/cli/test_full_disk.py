"""A disk that is full at some moment of a run: one line, nothing half written, and `resume` goes on with space."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from fablint.errors import IncompleteError
from fablint.store import missing_rounds, read_run
from fablint.workflows import run_files
from fablint_command import Fablint
from pinned import pinned_by
from tested_mpis import built_engine, tested_mpis as installed_mpis

PINNED = pinned_by("cli.toml", __file__)

ROWS = (
    *("-r", "latency --pattern all-pairs --sizes 8 --samples 5"),
    *("-r", "bandwidth --pattern all-pairs --sizes 64K --samples 2 --histogram"),
)
LARGER = "size=8m"


@pytest.fixture
def fablint(fablint_in_process: Fablint) -> Fablint:
    return fablint_in_process


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """A file system of its own; called with mount options it is made, or made larger."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def sized(options: str) -> Path:
        again = ["-o", f"remount,{options}"] if folder.is_mount() else ["-t", "tmpfs", "-o", options, "tmpfs"]
        if subprocess.run(["mount", *again, str(folder)], capture_output=True, check=False).returncode:
            pytest.skip("mounting a small tmpfs needs root")
        return folder

    yield sized
    subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=False)


def chosen(mpicxx: Path | None) -> list[str]:
    return ["--mpicxx", str(mpicxx)] if mpicxx else []


def half_written(folder: Path) -> list[Path]:
    return [path for path in folder.rglob(".*") if path.is_file()]


def test_a_run_that_cannot_be_begun_leaves_nothing(fablint: Fablint, disk, mpicxx) -> None:
    folder = disk("size=4k")  # room for the folder, and for no file in it
    done = fablint("-q", "measure", "-n", "2", *ROWS, "-o", folder / "x.run", *chosen(mpicxx))
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert PINNED["cannot write folder /x.run/tables/zarr.json"].filled(folder=folder).begins(line)
    assert "nothing was measured" in line
    assert "resume" not in line
    assert list(folder.iterdir()) == []
    disk(LARGER)
    again = fablint("-q", "measure", "-n", "2", *ROWS, "-o", folder / "x.run", *chosen(mpicxx))
    assert again.returncode == 0, again.stderr


@pytest.mark.parametrize("kib", [190, *(pytest.param(kib, marks=pytest.mark.long) for kib in (148, 224))])
def test_a_run_on_a_full_disk_is_readable_and_resumed(fablint: Fablint, disk, mpicxx, kib: int) -> None:
    folder = disk(f"size={kib}k")
    done = fablint("-q", "measure", "-n", "4", *ROWS, "-o", folder / "x.run", *chosen(mpicxx))
    assert done.returncode == 3, done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"fablint: cannot write {folder}/x.run/")
    assert PINNED["measured rounds are kept"].filled(folder=folder).ends(line)
    assert line.count("No space left on device") == 1
    assert half_written(folder) == []
    assert fablint("analyse", folder / "x.run").returncode == 3
    disk(LARGER)
    resumed = fablint("-q", "resume", folder / "x.run", *chosen(mpicxx))
    assert (resumed.returncode, resumed.stderr) == (0, ""), resumed
    run = read_run(folder / "x.run")
    assert (run.state, len(run.rows)) == ("complete", 2)
    assert [missing_rounds(row) for row in run.rows] == [[], []]


def test_a_report_that_does_not_fit_is_one_line(fablint: Fablint, disk, mpicxx) -> None:
    folder = disk(LARGER)
    done = fablint("-q", "measure", "-n", "2", *ROWS, "-o", folder / "x.run", *chosen(mpicxx))
    assert done.returncode == 0, done.stderr
    with suppress(OSError), (folder / "ballast").open("wb", buffering=0) as ballast:
        while True:
            ballast.write(b"x" * 4096)
    page = folder / "x.run" / "report" / "index.html"
    report = fablint("-q", "report", folder / "x.run")
    said = f"fablint: cannot write the report {page}: No space left on device: free space, then fablint report\n"
    assert (report.returncode, report.stderr) == (3, said)
    assert half_written(folder) == []
    (folder / "ballast").unlink()
    assert fablint("-q", "report", folder / "x.run").returncode == 0
    assert page.exists()


def test_a_file_of_a_run_that_cannot_be_replaced_stays_as_it_was(disk) -> None:
    """As `resume` reads what an earlier launch kept: half a file would be refused."""
    folder = disk("size=64k")
    run_files.save_counters({"before": {}, "after": {}}, folder)
    before = (folder / run_files.COUNTERS).read_text()
    large = {"before": {f"h{at}": {"hsn0": {"rx": at}} for at in range(9000)}, "after": {}}
    with pytest.raises(IncompleteError, match=r"counters\.json: No space left on device: free space, then go on with"):
        run_files.save_counters(large, folder)
    assert (folder / run_files.COUNTERS).read_text() == before
    assert json.loads(before)["format"] == 1
    assert half_written(folder) == []


def test_a_check_on_a_full_disk_names_resume_and_judges_what_was_measured(fablint: Fablint, disk) -> None:
    folder = disk("size=192k")
    engine = chosen(built_engine(installed_mpis()[0]).mpicxx)
    done = fablint("-q", "check", "--local", "2", "-o", folder / "x.run", *engine)
    assert done.returncode == 3, done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"fablint: cannot write {folder}/x.run/")
    assert line.endswith(f"fablint resume {folder}/x.run")
    assert line.count("No space left on device") == line.count("free space") == 1
    assert done.stdout.startswith("INCOMPLETE")
    assert half_written(folder) == []
    disk(LARGER)
    resumed = fablint("-q", "resume", folder / "x.run", *engine)
    assert (resumed.returncode, resumed.stderr) == (0, ""), resumed
    assert read_run(folder / "x.run").state == "complete"
