"""Short launches without a run directory: whether ranks connect, and whether transports and memories work."""

from __future__ import annotations

from collections.abc import Sequence

from fablint.measure.engine import Engine
from fablint.measure.launch_watch import Watch
from fablint.measure.launchers.launcher import Mpiexec
from fablint.measure.progress import NoProgress
from fablint.model import Plan
from fablint.system import System

_POLL_S = 0.2
_EXCHANGE = "-q latency --sizes 8 --samples 3 --validate"


def find_each_other(system: System, mpiexec: Mpiexec, engine: Engine, plan: Plan, limit_s: float = 30.0) -> str:
    """Return why the ranks of a plan do not connect; '' if they connect.

    Takes as long as MPI needs to start and to end: every rank sends messages to others, then one prints its version.
    """
    return _failure(system, mpiexec, engine, plan, ["--version"], "fablint-engine ", limit_s)


def try_exchange(system: System, mpiexec: Mpiexec, engine: Engine, *options: str, limit_s: float = 30.0) -> str:
    """Return why two ranks of this host cannot exchange messages with these options of the row; '' if they can.

    The engine writes each message to its memory, and reads it from there and compares it after the exchange.
    """
    words = [*_EXCHANGE.split(), *options]
    return _failure(system, mpiexec, engine, Plan(2, ()), words, "# OSU MPI Latency Test", limit_s)


def _failure(
    system: System,
    mpiexec: Mpiexec,
    engine: Engine,
    plan: Plan,
    words: Sequence[str],
    success: str,
    limit_s: float,
) -> str:
    """Return why the engine does not print a line that begins with `success`; '' if it does."""
    command = [str(engine.path), "--expect-ranks", str(plan.ranks), *words]
    process = mpiexec.start(system, plan, command, mpiexec.kind.environ(oversubscribed=True, unbound=False), limit_s)
    watch = Watch([], plan.ranks)
    deadline = system.monotonic() + limit_s
    try:
        while system.monotonic() < deadline:
            line = process.read_line(_POLL_S)
            if line is not None and line.startswith(success):
                return ""
            if line is not None:
                watch.take(line, NoProgress(), system.monotonic())
    except EOFError:
        return next(iter(watch.errors), watch.launcher_message() or f"{mpiexec.path} fails")
    finally:
        process.kill()
    return f"no answer within {limit_s:.0f} s" + (f": {watch.launcher_message()}" if watch.launcher_message() else "")
