"""The programs that a check starts: compiler, launcher, and the engine, which is built before anything is timed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from fablint.errors import FablintError
from fablint.model import Medium, Plan, PlanRow, RowSpec, Slots
from fablint.workflows import measurement
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

    return not connects_without_mpi(context.launcher, Plan(2, _rows(media)))


def _rows(media: Iterable[Medium]) -> tuple[PlanRow, ...]:
    return tuple(PlanRow(RowSpec("latency", transport=medium.transport), 1, 0.0) for medium in media)


@contextmanager
def starting(
    context: Context, media: Iterable[Medium], slots: Sequence[Slots], fewest_each: int = 1
) -> Iterator[Context]:
    """Start the ranks of a check, so that they start while its hosts are asked; end them with the `with` block.

    Parameters
    ----------
    context
        Of `with_programs`.
    media
        Transports and memories of the check.
    slots
        The hosts, with the ranks that most plans need; none: the ranks start with the first plan.
    fewest_each
        Number of ranks on each host that some plan needs.

    Returns
    -------
    context manager of Context
        The context, with the launch that plans follow to.
    """
    from fablint.measure import ServedLaunch

    served = ServedLaunch(fewest_each)
    context = replace(context, served=served)
    try:
        if slots:
            plan = Plan(sum(slot.ranks for slot in slots), _rows(media), tuple(slots))
            measurement.start_early(context, plan)
        yield context
    finally:
        served.close()


def build_first(context: Context) -> None:
    """Build the engine for the compiler of `with_programs`, so that the build is not part of what is timed later.

    Nothing is built without such a compiler. Raises UsageError where the build fails.
    """
    from fablint.measure import build_engine

    if context.compiler is not None:
        with_mpi = context.compiler.with_mpi
        build_engine(context.system, context.progress, with_mpi=with_mpi, known_compiler=context.compiler)


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
