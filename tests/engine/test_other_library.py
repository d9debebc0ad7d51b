"""An MPI library that is not the one of the engine's mpi.h, at link time and at run time, with real libraries."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fablint.errors import UsageError
from fablint.measure import NoProgress, build_engine, engine, load_library
from fablint.measure.engine import describe_compiler
from fablint.system import System

ENGINE = Path(__file__).parents[2] / "engine"
LIBRARIES = {"openmpi": "Open MPI v", "mpich": "MPICH Version: "}
COMPILED_FOR = {"openmpi": "Open MPI v", "mpich": "MPICH "}
# What the engine needs to compare the libraries, so that the test compiles two files.
MAIN = """
#include <cstdio>
#include "ranks/mpi_control.hpp"
#include "base/errors.hpp"
int main(int argc, char** argv) {
    const auto error = fablint::attempt([&] {
        if (argc > 1) std::puts(fablint::loaded_mpi().c_str());
        else fablint::start_mpi(argc, argv, false);
    });
    if (error) std::fprintf(stderr, "fablint-engine: error: %s\\n", error->what());
    return error ? static_cast<int>(error->status()) : 0;
}
"""


def library_of(mpi: str) -> Path:
    """Path of Debian's library, links resolved."""
    wrapper = shutil.which(f"mpicxx.{mpi}")
    if wrapper is None:
        pytest.skip(f"mpicxx.{mpi} is not installed")
    return Path(describe_compiler(System(), Path(wrapper), "PATH").library_paths[-1])


def other_than(mpi: str) -> str:
    return next(name for name in LIBRARIES if name != mpi)


def assert_names_both(text: str, compiled: str, loaded: str, library: Path) -> None:
    line = next(line for line in text.splitlines() if "is compiled for" in line)
    assert f"compiled for {COMPILED_FOR[compiled]}" in line
    assert f"but loads {LIBRARIES[loaded]}" in line
    assert f"({library})" in line


def test_a_library_that_is_preloaded_is_refused_before_mpi_starts(mpi):
    if mpi.name not in LIBRARIES:
        pytest.skip("an MPI library of another name")
    other = other_than(mpi.name)
    library = library_of(other)
    environ = os.environ | {"LD_PRELOAD": str(library)}
    for words in (["latency", "--sizes", "8"], ["--mpi-library"], ["osu_latency_mt"]):
        done = subprocess.run([mpi.engine, *words], capture_output=True, text=True, timeout=60, env=environ)
        assert done.returncode == UsageError.exit_code
        assert_names_both(done.stderr, mpi.name, other, library)


def test_the_own_library_is_named_with_its_path(mpi):
    if mpi.name not in LIBRARIES:
        pytest.skip("an MPI library of another name")
    loaded = load_library(System(), mpi.engine)
    assert not loaded.problem
    assert loaded.text.startswith(LIBRARIES[mpi.name])
    assert f"({library_of(mpi.name)})" in loaded.text


@pytest.fixture
def few_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of the engine that start MPI, with a main program of their own."""
    folder = tmp_path / "engine"
    for part in ("base", "ranks"):
        shutil.copytree(ENGINE / part, folder / part, ignore=shutil.ignore_patterns("*.cpp"))
    for name in ("mpi_control.cpp", "mpi_abi.cpp"):
        shutil.copy(ENGINE / "ranks" / name, folder / "ranks" / name)
    (folder / "main.cpp").write_text(MAIN)
    monkeypatch.setattr(engine, "find_sources", lambda: folder)
    return folder


def wrapper_of_two(folder: Path, headers: str, library: Path) -> Path:
    """An mpicxx with the headers of one MPI and the library of another."""
    show = subprocess.run([f"mpicxx.{headers}", "-show"], capture_output=True, text=True, check=True).stdout.split()
    includes = " ".join(word for word in show if word.startswith("-I"))
    wrapper = folder / "mpicxx"
    link = f"{library} -Wl,-rpath,{library.parent}"
    wrapper.write_text(f'#!/bin/sh\ncase "$*" in *" -c "*) link= ;; *) link="{link}" ;; esac\n')
    with wrapper.open("a") as file:
        file.write(f'[ "$1" = -show ] && echo "g++ {includes}" && exit\nexec g++ {includes} "$@" $link\n')
    wrapper.chmod(0o755)
    return wrapper


@pytest.mark.long  # it needs two MPI libraries
@pytest.mark.parametrize("headers", LIBRARIES)
def test_an_engine_that_is_linked_with_the_other_library_is_not_built(staged, tmp_path, few_sources, headers):
    other = other_than(headers)
    library = library_of(other)
    wrapper = wrapper_of_two(tmp_path, headers, library)
    with pytest.raises(UsageError) as failure:
        build_engine(staged, NoProgress(), mpicxx=wrapper)
    if headers == "mpich":  # its handles are numbers: the linker finds all symbols
        assert_names_both(str(failure.value), headers, other, library)
    else:
        assert "the MPI library is not that of mpi.h" in str(failure.value)
    right = build_engine(staged, NoProgress(), mpicxx=Path(shutil.which(f"mpicxx.{headers}")))
    assert load_library(staged, right.path).text.startswith(LIBRARIES[headers])


@pytest.mark.long
@pytest.mark.parametrize("headers", LIBRARIES)
def test_a_library_of_the_same_file_name_is_refused(staged, tmp_path, few_sources, headers):
    library_of(headers)
    built = build_engine(staged, NoProgress(), mpicxx=Path(shutil.which(f"mpicxx.{headers}")))
    other = other_than(headers)
    library = library_of(other)
    name = "libmpi.so.40" if headers == "openmpi" else "libmpich.so.12"
    (folder := tmp_path / "modules").mkdir()
    (folder / name).symlink_to(library)
    staged.variables["LD_LIBRARY_PATH"] = str(folder)
    loaded = load_library(staged, built.path)
    assert loaded.is_other
    assert str(library) in loaded.problem
    assert staged.run([str(built.path)]).status in (UsageError.exit_code, 127)  # 127: refused by the loader
