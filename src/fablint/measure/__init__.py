"""measure: builds the engine, selects a launcher, starts the engine and follows it to its end.

Its names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fablint.model.lazy_imports import lazy_names

if TYPE_CHECKING:
    from fablint.measure.doctor import DoctorCheck, examine
    from fablint.measure.empty_launch import find_each_other
    from fablint.measure.engine import (
        BUILD_S,
        Compiler,
        Engine,
        build_engine,
        find_compiler,
        find_engine,
        find_mpicxx,
        kept_engine,
        list_engines,
    )
    from fablint.measure.engine_messages import failure_text
    from fablint.measure.json_lines import JsonLinesProgress, write_event
    from fablint.measure.launcher_choice import (
        Choice,
        connects_without_mpi,
        find_launchers,
        find_mpiexec,
        find_rendezvous,
    )
    from fablint.measure.launchers.launcher import Mpiexec
    from fablint.measure.loaded_library import LoadedLibrary, load_library
    from fablint.measure.progress import ConsoleProgress, NoProgress, Progress
    from fablint.measure.served_launch import ServedLaunch
    from fablint.measure.session import (
        EngineOptions,
        EngineOutcome,
        name_deaths,
        name_host,
        run_engine,
        run_on_first,
        start_early,
        start_limit_s,
    )

__all__ = [
    "BUILD_S",
    "Choice",
    "Compiler",
    "ConsoleProgress",
    "DoctorCheck",
    "Engine",
    "EngineOptions",
    "EngineOutcome",
    "JsonLinesProgress",
    "LoadedLibrary",
    "Mpiexec",
    "NoProgress",
    "Progress",
    "ServedLaunch",
    "build_engine",
    "connects_without_mpi",
    "examine",
    "failure_text",
    "find_compiler",
    "find_each_other",
    "find_engine",
    "find_launchers",
    "find_mpicxx",
    "find_mpiexec",
    "find_rendezvous",
    "kept_engine",
    "list_engines",
    "load_library",
    "name_deaths",
    "name_host",
    "run_engine",
    "run_on_first",
    "start_early",
    "start_limit_s",
    "write_event",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__,
        {
            "BUILD_S": "engine",
            "Choice": "launcher_choice",
            "Compiler": "engine",
            "DoctorCheck": "doctor",
            "Engine": "engine",
            "EngineOptions": "session",
            "EngineOutcome": "session",
            "LoadedLibrary": "loaded_library",
            "Mpiexec": "launchers.launcher",
            "Progress": "progress",
            "ServedLaunch": "served_launch",
            "ConsoleProgress": "progress",
            "JsonLinesProgress": "json_lines",
            "NoProgress": "progress",
            "build_engine": "engine",
            "connects_without_mpi": "launcher_choice",
            "examine": "doctor",
            "failure_text": "engine_messages",
            "find_compiler": "engine",
            "find_each_other": "empty_launch",
            "find_engine": "engine",
            "find_launchers": "launcher_choice",
            "find_mpicxx": "engine",
            "find_mpiexec": "launcher_choice",
            "find_rendezvous": "launcher_choice",
            "kept_engine": "engine",
            "list_engines": "engine",
            "load_library": "loaded_library",
            "name_deaths": "session",
            "name_host": "session",
            "run_engine": "session",
            "run_on_first": "session",
            "start_early": "session",
            "start_limit_s": "session",
            "write_event": "json_lines",
        },
    )
