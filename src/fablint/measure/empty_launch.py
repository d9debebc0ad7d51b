"""A launch that measures nothing: do ranks in these places start and reach each other?"""

from __future__ import annotations

from fablint.measure.engine import Engine
from fablint.measure.launch_watch import Watch
from fablint.measure.launchers.launcher import Mpiexec
from fablint.measure.progress import Silent
from fablint.model import Plan
from fablint.system import System

_GLANCE_S = 0.2


def find_each_other(system: System, mpiexec: Mpiexec, engine: Engine, plan: Plan, limit_s: float = 30.0) -> str:
    """Why the ranks of a plan do not find each other; empty where they do.

    Takes as long as MPI needs to start and to end: every rank sends messages to others, then one says its version.
    """
    argv = mpiexec.argv(system, plan, [str(engine.path), "--expect-ranks", str(plan.ranks), "--version"])
    process = system.spawn(argv, environ=mpiexec.kind.environ(oversubscribed=True, unbound=False))
    watch = Watch([], plan.ranks)
    deadline = system.monotonic() + limit_s
    try:
        while system.monotonic() < deadline:
            line = process.read_line(_GLANCE_S)
            if line is not None and line.startswith("fablint-engine "):
                return ""
            if line is not None:
                watch.take(line, Silent())
    except EOFError:
        return next(iter(watch.errors), watch.said() or f"{mpiexec.path} fails")
    finally:
        process.kill()
    return f"no answer within {limit_s:.0f} s" + (f": {watch.said()}" if watch.said() else "")
