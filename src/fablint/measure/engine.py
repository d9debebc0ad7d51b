"""The engine: found as sources, built with the site's `mpicxx`, cached per MPI library and compiler.

An engine lives in `FABLINT_HOME/engines/KEY/`, or in the user's cache where FABLINT_HOME is read-only. KEY is a hash of
the sources, of the output of `mpicxx` and of the MPI library that it links (path, age, size): each MPI module has its
own engine, and switching back needs no build.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from fablint.errors import InternalError, PreflightError, UsageError
from fablint.measure.loaded_library import load_library
from fablint.measure.progress import Progress
from fablint.system import Completed, System
from fablint.version import __version__

PROGRAM = "fablint-engine"
FACTS = "engine.json"
BUILD_S = 300.0  # of a job that has to build the engine: two cores take 90 to 300 s
FLAGS = ("-std=c++17", "-O2", "-pthread")
LIBRARIES = ("-ldl",)
_MPI_SYMBOL = re.compile(r"undefined (?:reference to|symbol:) .?(?:ompi|opal|P?MPI|MPIR)_", re.ASCII)  # of a linker
_RULER = re.compile(r"[-=*#_]{8,}")
_TESTS = "tests"  # folder of the sources that is not part of the engine
_INCLUDED = (".h", ".hpp", ".inc")
_NO_MPI = "-DFABLINT_WITHOUT_MPI"
_PLAIN_COMPILERS = ("g++", "c++", "clang++")


@dataclass(frozen=True)
class Compiler:
    """An `mpicxx`, or the C++ compiler of an engine without MPI: how it was found, its version and command line."""

    path: Path
    found: str  # `--mpicxx`, `$FABLINT_MPICXX`, `PATH`, `Cray CC`, `mpich wheel`; `$CXX`
    show: str  # command line of the underlying compiler
    version: str
    libraries: tuple[str, ...]  # the MPI libraries it links: path, size, age
    flags: tuple[str, ...] = FLAGS

    @property
    def library_paths(self) -> tuple[str, ...]:
        """Paths of the MPI libraries."""
        return tuple(line.rsplit(maxsplit=2)[0] for line in self.libraries)

    @property
    def with_mpi(self) -> bool:
        """True if its engine has MPI."""
        return _NO_MPI not in self.flags


@dataclass(frozen=True)
class Engine:
    """A built engine."""

    key: str
    path: Path
    mpicxx: Path  # a plain C++ compiler if the engine has no MPI
    compiler: str
    libraries: tuple[str, ...]
    built: str  # ISO 8601
    fablint: str  # version that built it


def find_mpicxx(system: System, requested: Path | None = None) -> tuple[Path, str]:
    """Return the `mpicxx` to use.

    Returns
    -------
    tuple of (Path, str)
        The compiler wrapper, and where it was found, in words.

    Raises
    ------
    UsageError
        `requested` or `$FABLINT_MPICXX` is not a program.
    PreflightError
        This machine has none.
    """
    if requested is not None:
        return _must_run(system, str(requested), "--mpicxx"), "--mpicxx"
    if chosen := system.environ.get("FABLINT_MPICXX"):
        return _must_run(system, chosen, "$FABLINT_MPICXX"), "$FABLINT_MPICXX"
    if path := system.which("mpicxx"):
        return path, "PATH"
    if "CRAYPE_VERSION" in system.environ and (path := system.which("CC")):
        return path, "Cray CC"
    wheel = system.python.parent / "mpicxx"
    if wheel.exists():
        return wheel, "mpich wheel"
    raise PreflightError("no mpicxx found", "load an MPI module, set FABLINT_MPICXX, or pip install 'fablint[mpich]'")


def _plain_compiler(system: System) -> Compiler:
    """C++ compiler for an engine without MPI. Raises PreflightError if there is none."""
    if chosen := system.environ.get("CXX"):
        paths = _must_run(system, chosen, "$CXX"), "$CXX"
    else:
        path = next(filter(None, map(system.which, _PLAIN_COMPILERS)), None)
        if path is None:
            raise PreflightError("no C++ compiler found", "install g++, or set CXX")
        paths = path, "PATH"
    return replace(describe_compiler(system, *paths), flags=(*FLAGS, _NO_MPI), libraries=())


def find_compiler(system: System, mpicxx: Path | None, *, with_mpi: bool) -> Compiler:
    """Return the compiler of the engine.

    Parameters
    ----------
    system
        This machine.
    mpicxx
        The compiler wrapper; None: the first one that is found.
    with_mpi
        Whether the engine is linked with MPI.

    Raises
    ------
    UsageError
        `mpicxx` is not for such an engine.
    PreflightError
        This machine has no compiler.
    """
    if with_mpi:
        return describe_compiler(system, *find_mpicxx(system, mpicxx))
    if mpicxx is not None:
        raise UsageError("an engine without MPI is not built with an mpicxx", "omit --mpicxx; CXX names the compiler")
    return _plain_compiler(system)


def _must_run(system: System, name: str, origin: str) -> Path:
    path = system.which(name)
    if path is None:
        raise UsageError(f"{origin} names {name}, which is not a program", "give the path of an MPI C++ compiler")
    return path.absolute()


def describe_compiler(system: System, path: Path, result: str) -> Compiler:
    """Get the command line and version of an `mpicxx`. Raises PreflightError when it fails."""
    version = system.run([str(path), "--version"])
    if version.status != 0:
        raise PreflightError(
            f"{path} --version fails: {first_error(version)}", "choose another with --mpicxx or FABLINT_MPICXX"
        )
    show = system.run([str(path), "-show"])  # Cray's CC does not accept it, and needs no -I and -L
    line = show.output.strip() if show.status == 0 else ""
    return Compiler(path, result, line, version.output.splitlines()[0].strip(), tuple(_mpi_libraries(path, line)))


def _mpi_libraries(mpicxx: Path, show: str) -> list[str]:
    """Path, size and age of the MPI libraries in a compiler's command line, links resolved."""
    words = show.split()
    folders = [Path(word[2:]) for word in words if word.startswith("-L")]
    folders += [mpicxx.parent.parent / "lib", mpicxx.parent.parent / "lib64"]
    names = [word[2:] for word in words if word.startswith("-lmpi") or word.startswith("-lmpich")]
    libraries: dict[str, None] = {}
    for name in names:
        library = next((folder / f"lib{name}.so" for folder in folders if (folder / f"lib{name}.so").exists()), None)
        if library is not None:
            facts = library.resolve().stat()
            libraries[f"{library.resolve()} {facts.st_size} {facts.st_mtime_ns}"] = None
    return list(libraries)


def find_sources() -> Path:
    """The folder of the engine's sources: inside the wheel, else in the checkout.

    Raises
    ------
    InternalError
        The installation has no sources of the engine.
    """
    package = Path(__file__).parents[1]
    for folder in (package / "engine_sources", package.parents[1] / "engine"):
        if (folder / "main.cpp").is_file():
            return folder
    raise InternalError(f"the engine's sources are missing from {package}", "reinstall fablint")


def translation_units(sources: Path) -> list[Path]:
    """Return the C++ source files below `sources`, without headers."""
    return _source_files(sources, (".cpp",))


def _source_files(sources: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """Files of the engine with one of the suffixes, sorted by path; its tests are excluded."""
    files = (path for path in sources.rglob("*") if path.suffix in suffixes)
    return sorted(path for path in files if path.relative_to(sources).parts[0] != _TESTS)


def engine_key(sources: Path, compiler: Compiler) -> str:
    """Key of a build, 16 hexadecimal digits: builds with equal keys are interchangeable."""
    digest = sha256(
        "\0".join((*compiler.flags, *LIBRARIES, str(compiler.path), compiler.show, compiler.version)).encode()
    )
    digest.update("\0".join(compiler.libraries).encode())
    for path in _source_files(sources, (".cpp", *_INCLUDED)):
        digest.update(f"{path.relative_to(sources)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def find_engine(system: System, mpicxx: Path | None = None, *, with_mpi: bool = True) -> Engine:
    """Return the engine that is built for a compiler.

    Parameters
    ----------
    system
        This machine.
    mpicxx
        The compiler wrapper; None: the first one that is found.
    with_mpi
        Whether the engine is linked with MPI.

    Raises
    ------
    UsageError
        It is not built.
    """
    compiler = find_compiler(system, mpicxx, with_mpi=with_mpi)
    engine = kept_engine(system, compiler)
    if engine is None:
        built = f"for {compiler.path}" if with_mpi else "without MPI"
        raise UsageError(f"no engine is built {built}", f"fablint engine build{'' if with_mpi else ' --without-mpi'}")
    return engine


def kept_engine(system: System, compiler: Compiler) -> Engine | None:
    """Return the engine that is built for a compiler; None where it is not built."""
    return _engine_at(system, engine_key(find_sources(), compiler))


def build_engine(
    system: System,
    progress: Progress,
    *,
    mpicxx: Path | None = None,
    force: bool = False,
    with_mpi: bool = True,
    known_compiler: Compiler | None = None,
) -> Engine:
    """Return the engine for a compiler, built if it is missing.

    Safe when several processes build at once: each builds in a separate folder and moves the finished file into place.

    Parameters
    ----------
    system
        This machine.
    progress
        Shows each file that is compiled.
    mpicxx
        The compiler wrapper; None: the first one that is found.
    force
        Build it also if it is there.
    with_mpi
        Whether the engine is linked with MPI.
    known_compiler
        A compiler that was asked for its version before; used if it is for such an engine.

    Raises
    ------
    UsageError
        There is no compiler, the build fails, the engine loads another MPI library than it is compiled for, or
        FABLINT_HOME cannot be written.
    """
    if known_compiler is not None and known_compiler.with_mpi == with_mpi:
        compiler = known_compiler
    else:
        compiler = find_compiler(system, mpicxx, with_mpi=with_mpi)
    sources = find_sources()
    key = engine_key(sources, compiler)
    ready = _engine_at(system, key)
    if ready is not None and not force:
        return ready
    with system.temporary_folder(system.home_folder("engines")) as work:
        _compile(system, progress, compiler, sources, work)
        _try_start(system, progress, compiler, work / PROGRAM)
        built = system.now().isoformat(timespec="seconds")
        folder = system.home_folder("engines") / key
        folder.mkdir(exist_ok=True)
        program = folder / PROGRAM
        engine = Engine(key, program, compiler.path, compiler.version, compiler.library_paths, built, __version__)
        (work / FACTS).write_text(json.dumps(asdict(engine), default=str, indent=1))
        (work / FACTS).replace(folder / FACTS)
        (work / PROGRAM).replace(program)
    return engine


def _compile(system: System, progress: Progress, compiler: Compiler, sources: Path, work: Path) -> None:
    """Compile the translation units side by side and link them to `work/fablint-engine`."""
    from concurrent.futures import ThreadPoolExecutor, as_completed

    units = translation_units(sources)
    with ThreadPoolExecutor(max_workers=len(system.affinity())) as pool:
        jobs = []
        for number, unit in enumerate(units):
            argv = [
                str(compiler.path),
                *compiler.flags,
                f"-I{sources}",
                "-c",
                str(unit),
                "-o",
                str(work / f"{number}.o"),
            ]
            jobs.append(pool.submit(system.run, argv, timeout_s=600))
        for done, job in enumerate(as_completed(jobs), 1):
            if job.result().status != 0:
                pool.shutdown(cancel_futures=True)
                raise _failure(system, compiler, job.result())
            progress.step("building the engine", done, len(units) + 1)
    objects = [str(work / f"{number}.o") for number in range(len(units))]
    argv = [str(compiler.path), *compiler.flags, *objects, "-o", str(work / PROGRAM), *LIBRARIES]
    linked = system.run(argv, timeout_s=600)
    if linked.status != 0:
        raise _failure(system, compiler, linked)
    progress.step("building the engine", len(units) + 1, len(units) + 1)


def _try_start(system: System, progress: Progress, compiler: Compiler, program: Path) -> None:
    """Start a new engine once. Raises UsageError where it loads another MPI library than it is compiled for."""
    loaded = load_library(system, program)
    if loaded.is_other:
        raise UsageError(f"{compiler.path} builds an engine that cannot run: {loaded.problem}")
    if loaded.problem:  # a login host may lack libraries of the hosts that are measured
        progress.note(f"fablint: the engine does not start on this host: {loaded.problem}")


def _failure(system: System, compiler: Compiler, result: Completed) -> UsageError:
    log = system.home_folder("logs") / "engine-build.log"
    log.write_text(" ".join(result.argv) + f"\n\n{result.output}{result.errors}")
    is_other = _MPI_SYMBOL.search(result.errors + result.output)
    advice = (
        "the MPI library is not that of mpi.h: load one MPI module only, and check LIBRARY_PATH; " if is_other else ""
    )
    return UsageError(f"{compiler.path} cannot build the engine: {first_error(result)}", f"{advice}see {log}")


def first_error(result: Completed) -> str:
    """First line of a compiler's output that reports an error, else its first line, else its status.

    Open MPI prints a message between rulers: it is the first paragraph.
    """
    lines = [line.strip() for line in (result.errors + result.output).splitlines()]
    if _RULER.fullmatch(next(filter(None, lines), "")):
        after = lines[lines.index(next(filter(None, lines))) + 1 :]
        return " ".join(itertools.takewhile(lambda line: line and not _RULER.fullmatch(line), after)).rstrip(".")
    lines = [line for line in lines if line]
    errors = (line for line in lines if "error" in line.lower() or "cannot find" in line or "undefined" in line)
    return next(errors, lines[0] if lines else f"exit status {result.status}")


def _read_engine(folder: Path) -> Engine | None:
    """Engine in a folder of the cache; None if it is unfinished or damaged."""
    if not os.access(folder / PROGRAM, os.X_OK):
        return None
    try:
        facts: dict[str, Any] = json.loads((folder / FACTS).read_text())
        facts |= {"key": folder.name, "path": folder / PROGRAM, "mpicxx": Path(facts["mpicxx"])}
        return Engine(**{**facts, "libraries": tuple(facts["libraries"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _engine_folders(system: System) -> tuple[Path, ...]:
    """Folders with engines, those of this user first: FABLINT_HOME may be one of the site, which is read only."""
    return tuple(dict.fromkeys((system.own_path("engines"), system.home / "engines")))


def _engine_at(system: System, key: str) -> Engine | None:
    """Engine with this key; None if it is not built."""
    return next(filter(None, (_read_engine(folder / key) for folder in _engine_folders(system))), None)


def list_engines(system: System) -> list[Engine]:
    """All engines in the cache, latest first."""
    folders = sorted(path for folder in _engine_folders(system) for path in folder.glob("[0-9a-f]*"))
    return sorted(filter(None, map(_read_engine, folders)), key=lambda engine: engine.built, reverse=True)
