"""The programs that a check starts: compiler, launcher, and the engine, which is built before anything is timed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from fablint.errors import FablintError
from fablint.model import Medium, Plan, PlanRow, RowSpec
from fablint.workflows.context import Context


def with_programs(context: Context, media: Iterable[Medium]) -> Context:
    """Look for the compiler and the launcher with which a check of these media starts its ranks; nothing is built.

    Returns the context with that compiler, so that launches do not ask for its version again.

    Raises
    ------
    UsageError
        One of those that the user chose does not exist or does not start such ranks, or no launcher was found.
    PreflightError
        No compiler was found.
    """
    from fablint.measure import find_compiler, find_launchers, find_rendezvous

    system, with_mpi = context.system, _needs_mpi(context, media)
    compiler = find_compiler(system, context.mpicxx, with_mpi=with_mpi)
    if with_mpi:
        find_launchers(system, compiler.path, compiler.library_paths, requested=context.launcher)
    else:
        find_rendezvous(system, context.launcher)
    return replace(context, compiler=compiler)


def _needs_mpi(context: Context, media: Iterable[Medium]) -> bool:
    """Return whether MPI connects the ranks of a check of these media. Raises UsageError as `connects_without_mpi`."""
    from fablint.measure import connects_without_mpi

    rows = (PlanRow(RowSpec("latency", transport=medium.transport), 1, 0.0) for medium in media)
    return not connects_without_mpi(context.launcher, Plan(2, tuple(rows)))


def build_first(context: Context) -> Path | None:
    """Build the engine for the compiler of `with_programs`, so that the build is not part of what is timed later.

    Returns the path of the engine, None without such a compiler. Raises UsageError where the build fails.
    """
    from fablint.measure import build_engine

    if context.compiler is None:
        return None
    with_mpi = context.compiler.with_mpi
    return build_engine(context.system, context.progress, with_mpi=with_mpi, known_compiler=context.compiler).path


def build_before_job(context: Context, media: Iterable[Medium], *, is_dry: bool) -> float:
    """Build the engine of a job on this machine, before the job is submitted.

    Parameters
    ----------
    context
        Machine, progress, MPI.
    media
        Transports and memories of the check.
    is_dry
        The job is not submitted, and nothing is built.

    Returns
    -------
    float
        Seconds that the job needs for the build: 0 unless this machine has no compiler for the engine.

    Raises
    ------
    UsageError
        The build fails.
    """
    from fablint.measure import BUILD_S, find_compiler

    with_mpi = _needs_mpi(context, media)
    try:
        compiler = find_compiler(context.system, context.mpicxx, with_mpi=with_mpi)
    except FablintError:
        return BUILD_S
    if not is_dry:
        build_first(replace(context, compiler=compiler))
    return 0.0
