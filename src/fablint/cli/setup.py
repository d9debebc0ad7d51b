"""The verbs about fablint itself: engine and doctor."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fablint.cli.common import Session, common_options, mpicxx_option, verb

if TYPE_CHECKING:
    from fablint.measure import Engine


@click.group(short_help="Build, list and find the measuring engine.")
@common_options
def engine() -> None:
    """Build the measuring engine, or list and find the built ones.

    An engine is built at first use for the MPI at hand and kept below FABLINT_HOME, so there is no need to call this.

    \b
    Example:
      fablint engine build
    """


@verb()
@mpicxx_option
@click.option("--force", is_flag=True, help="Build it even if it is there.")
def build(session: Session, mpicxx: Path | None, force: bool) -> None:
    """Build the engine with this site's mpicxx and print where it is.

    \b
    Example:
      fablint engine build --mpicxx /opt/mpi/bin/mpicxx
    """
    from fablint.measure import build_engine

    with session.surroundings(mpicxx) as around:
        built = build_engine(around.system, around.progress, mpicxx=mpicxx, force=force)
    session.result(str(built.path), {"format": 1, **_facts(built)})


@verb(name="list")
def list_verb(session: Session) -> None:
    """List the engines that are built, the latest first.

    \b
    Example:
      fablint engine list
    """
    from fablint.measure import list_engines

    engines = list_engines(session.machine())
    lines = [f"{one.key}  {one.built}  {one.mpicxx}  {one.compiler}" for one in engines]
    session.result("\n".join(lines) or "none built yet", {"format": 1, "engines": [_facts(one) for one in engines]})


@verb()
@mpicxx_option
def path(session: Session, mpicxx: Path | None) -> None:
    """Print where the engine for this site's mpicxx is; builds none.

    \b
    Example:
      mpiexec -n 2 $(fablint engine path) latency
    """
    from fablint.measure import find_engine

    found = find_engine(session.machine(), mpicxx)
    session.result(str(found.path), {"format": 1, **_facts(found)})


for _command in (build, list_verb, path):
    engine.add_command(_command)


def _facts(built: Engine) -> dict[str, object]:
    return {name: str(value) if isinstance(value, Path) else value for name, value in asdict(built).items()}


@verb(short_help="Is this machine ready to measure?")
def doctor(session: Session) -> int:
    """Look at this machine: is everything there that fablint needs, and if not, how to mend it.

    Exits with 4 when something that a measurement needs is missing.

    \b
    Example:
      fablint doctor
    """
    from fablint.measure import examine

    checks = examine(session.machine())
    lines = [f"{'ok' if one.ok else 'warn':<5}{one.name:<14}{one.found}" for one in checks]
    lines = [line + (f": {one.mend}" if one.mend else "") for line, one in zip(lines, checks, strict=True)]
    code = 4 if any(not one.ok and one.needed for one in checks) else 0
    session.result("\n".join(lines), {"format": 1, "exit_code": code, "checks": [asdict(one) for one in checks]})
    return code
