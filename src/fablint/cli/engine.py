"""The verb `engine`: the built engines."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fablint.cli.options import mpicxx_option
from fablint.cli.session import Session, common_options, verb
from fablint.errors import UsageError

if TYPE_CHECKING:
    from fablint.measure import Engine


without_mpi_option = click.option(
    "--without-mpi", is_flag=True, help="The engine that needs no MPI; $CXX or g++ compiles it."
)


@click.group(short_help="Build, list and find the measuring engine.")
@common_options
def engine() -> None:
    """Build the measuring engine, or list and find the built ones.

    An engine is built at first use for the MPI of this machine and cached below FABLINT_HOME; this verb is optional.

    \b
    Example:
      fablint engine build
    """


@verb()
@mpicxx_option
@without_mpi_option
@click.option("--force", is_flag=True, help="Build it even if it exists.")
def build(session: Session, mpicxx: Path | None, without_mpi: bool, force: bool) -> None:
    """Build the engine with this site's mpicxx and print where it is.

    The engine is started once, and the MPI library that it loads is named. An engine without MPI needs a C++ compiler
    only. It runs with --launcher ssh, srun or direct, for all transports but mpi.

    \b
    Examples:
      fablint engine build --mpicxx /opt/mpi/bin/mpicxx
      fablint engine build --without-mpi
    """
    from fablint.measure import build_engine, load_library

    with session.context(mpicxx) as context:
        built = build_engine(context.system, context.progress, mpicxx=mpicxx, force=force, with_mpi=not without_mpi)
    loaded = load_library(context.system, built.path)
    if loaded.problem:
        raise UsageError(f"{built.path} does not start: {loaded.problem}")
    session.say(f"MPI library: {loaded.text}")
    session.result(str(built.path), {**_facts(built), "mpi_library": loaded.text})


@verb(name="list")
def list_verb(session: Session) -> None:
    """List the built engines, latest first.

    \b
    Example:
      fablint engine list
    """
    from fablint.measure import list_engines

    engines = list_engines(session.machine())
    lines = [f"{engine.key}  {engine.built}  {engine.mpicxx}  {engine.compiler}" for engine in engines]
    session.result("\n".join(lines) or "none built yet", {"engines": [_facts(engine) for engine in engines]})


@verb()
@mpicxx_option
@without_mpi_option
def path(session: Session, mpicxx: Path | None, without_mpi: bool) -> None:
    """Print the path of the engine for this site's mpicxx, or without MPI. Builds no engine.

    \b
    Example:
      mpiexec -n 2 $(fablint engine path) latency
    """
    from fablint.measure import find_engine

    engine = find_engine(session.machine(), mpicxx, with_mpi=not without_mpi)
    session.result(str(engine.path), _facts(engine))


for _command in (build, list_verb, path):
    engine.add_command(_command)


def _facts(built: Engine) -> dict[str, object]:
    return {name: str(value) if isinstance(value, Path) else value for name, value in asdict(built).items()}
