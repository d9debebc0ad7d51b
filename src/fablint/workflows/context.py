"""What every workflow is given: the machine, the progress display and the choice of MPI."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fablint.measure import Compiler, Progress
    from fablint.system import System


@dataclass
class UsedLauncher:
    """The launcher that connected the ranks of the last launch, which is the first to be tried for the next one."""

    path: Path | None = None


@dataclass(frozen=True)
class Context:
    """Machine, progress display, and the `mpicxx` (None: the first one found) and launcher that the user chose."""

    system: System
    progress: Progress
    mpicxx: Path | None = None
    launcher: str = ""  # that starts the ranks; '': the first that connects them
    start_s: Callable[[], float] | None = None  # time limit for the start of ranks; None: the usual limit
    end_s: float | None = None  # time limit for the end of ranks after the last row; None: the usual limit
    stop_s: float | None = None  # time limit for the end of ranks after a signal; None: the usual limit
    on_size: Callable[[], None] | None = None  # called when another size of a row is in the run directory
    is_scratch: bool = False  # the run directory is deleted afterwards
    compiler: Compiler | None = None  # that the launches use; None: each launch finds it
    used_launcher: UsedLauncher = field(default_factory=UsedLauncher)  # shared by the launches of a verb
