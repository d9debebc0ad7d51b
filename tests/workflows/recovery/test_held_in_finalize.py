"""A rank that stays in MPI_Finalize, with the real MPIs: the launch is ended, and the check goes on to its verdict."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fablint.measure import served_launch
from fablint.store import missing_rounds
from fablint.workflows.check import local_check
from fablint.workflows.check.request import CheckRequest
from fablint.workflows.context import Context

# Wraps MPI_Finalize: the rank waits for a signal that does not come.
HOLD = """
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int PMPI_Finalize(void) __attribute__((weak));
int MPI_Finalize(void) {
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (rank == NULL) rank = getenv("PMI_RANK");
    while (rank != NULL && strcmp(rank, getenv("HELD_RANK")) == 0) pause();
    return PMPI_Finalize();
}
"""
END_S = 1.0


@dataclass
class Notes:
    """Progress that keeps its messages."""

    said: list[str] = field(default_factory=list)

    def step(self, task: str, done: int, total: int, left_s: float | None = None) -> None:
        pass

    def note(self, text: str, event: str = "note", **values: object) -> None:
        self.said.append(text)


@pytest.fixture
def hold(tmp_path: Path) -> Path:
    """The wrapper, as a library to preload."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    (tmp_path / "hold.c").write_text(HOLD)
    library = tmp_path / "hold.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, tmp_path / "hold.c"], check=True)
    return library


@pytest.mark.parametrize("rank", [0, 1])
def test_a_check_goes_on_past_ranks_that_do_not_end(
    mpicxx, staged, hold: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rank: int
) -> None:
    monkeypatch.setattr(served_launch, "END_S", END_S)
    staged.variables = dict(os.environ) | {"LD_PRELOAD": str(hold), "HELD_RANK": str(rank)}  # the engine is built
    notes = Notes()
    context = Context(staged, notes, mpicxx)
    done = local_check.check_local(context, CheckRequest(ranks=2), tmp_path / "a.run")
    ended = "fablint: the run is complete, but the ranks do not end by themselves: they are terminated"
    assert ended in notes.said
    assert (done.error, done.run.state) == ("", "complete")
    assert all(not missing_rounds(row) for row in done.run.rows)
    assert (tmp_path / "a.run" / "report" / "verdict.json").exists()
    assert survivors(done.run.facts.rank_pid) == []


def survivors(pids: list[int]) -> list[int]:
    """Ranks that still run."""
    found = []
    for pid in pids:
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if b"fablint-engine" in command:
            found.append(pid)
    return found
