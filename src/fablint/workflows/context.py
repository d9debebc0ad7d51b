"""What every workflow is given: the machine, the progress display and the choice of MPI, which each run keeps.

`resume` and `retest` start the ranks with the choices of the run. The fields of `KeptLaunch` are their record: whatever
is added to it is written, read, and given to later launches.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fablint.errors import UsageError
from fablint.workflows.run_files import CHECK, ROUNDS, errors_of, save_text

if TYPE_CHECKING:
    from fablint.measure import Compiler, Progress, ServedLaunch
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
    served: ServedLaunch | None = None  # ranks that stay for further launches of a check; None: each starts its own
    used_launcher: UsedLauncher = field(default_factory=UsedLauncher)  # shared by the launches of a verb


LAUNCH = f"{ROUNDS}/launch.json"  # in the folder of the rounds, the only one that may exist before the run does


@dataclass(frozen=True)
class KeptLaunch:
    """What the user chose for the launches of a run."""

    mpicxx: str = ""  # path, or a name to look up in PATH; '': the first one found
    launcher: str = ""
    options: tuple[str, ...] = ()  # run options of the engine

    @classmethod
    def of(cls, context: Context, options: Sequence[str]) -> KeptLaunch:
        """Return the record of a launch."""
        mpicxx, launcher = (from_any_folder(Path(one)) if one else "" for one in (context.mpicxx, context.launcher))
        return cls(mpicxx, launcher, tuple(options))


def from_any_folder(program: Path) -> str:
    """Return a name of a program that is valid in another folder; a name without a folder is looked up in PATH."""
    return str(program.absolute()) if program.parent != Path() else str(program)


def save_launch(launch: KeptLaunch, run: Path) -> None:
    """Write the record into a run directory. Raises IncompleteError where it cannot be written."""
    save_text(run / LAUNCH, json.dumps({"format": 1, **asdict(launch)}, indent=1))


def remove_launch(run: Path) -> None:
    """Remove the record of a launch that measured nothing, unless its check can be resumed."""
    if not (run / CHECK).exists():
        with suppress(OSError):
            (run / LAUNCH).unlink(missing_ok=True)
            (run / ROUNDS).rmdir()


def load_launch(run: Path) -> KeptLaunch:
    """Read the record of a run; an empty one where it has none. Raises BrokenRunError."""
    path = run / LAUNCH
    if not path.exists():
        return KeptLaunch()
    with errors_of(path, "the record of a launch", "remove it, and give --mpicxx and --launcher again"):
        document = json.loads(path.read_text(encoding="utf-8"))
        kept: dict[str, Any] = {one.name: document[one.name] for one in fields(KeptLaunch)}
        return KeptLaunch(**{**kept, "options": tuple(map(str, kept["options"]))})


def with_kept_launch(context: Context, kept: KeptLaunch, run: Path, *, is_resumed: bool) -> Context:
    """Return the context with the compiler and the launcher of a run, unless the user chose others now.

    Parameters
    ----------
    context
        Machine, progress display, choices of this call.
    kept
        What the user chose for the run.
    run
        Run directory.
    is_resumed
        Figures of this launch are added to those of the run: they need the same MPI library.

    Raises
    ------
    UsageError
        Another compiler was chosen for the same run.
    """
    chosen = KeptLaunch.of(context, ())
    if is_resumed and kept.mpicxx and chosen.mpicxx not in ("", kept.mpicxx):
        raise UsageError(
            f"--mpicxx {chosen.mpicxx}: {run} is measured with {kept.mpicxx}, and a run has figures of one MPI library",
            "resume it without --mpicxx, or measure a new run",
        )
    for option in ("mpicxx", "launcher"):
        before, now = getattr(kept, option), getattr(chosen, option)
        if before and now not in ("", before):
            context.progress.note(f"fablint: --{option} {now} replaces {before} of {run}")
    mpicxx = context.mpicxx or (Path(kept.mpicxx) if kept.mpicxx else None)
    return replace(context, mpicxx=mpicxx, launcher=context.launcher or kept.launcher)
