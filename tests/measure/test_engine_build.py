"""Finding mpicxx, building and keeping engines. The MPI here is a fake that compiles nothing and counts its calls."""

from __future__ import annotations

import json
import re
import stat
import threading
from pathlib import Path

import pytest

from fablint.errors import PreflightError, UsageError
from fablint.measure import NoProgress, build_engine, engine, find_compiler, find_engine, find_mpicxx, list_engines
from fablint.system import Completed
from pinned import pinned_by

PINNED = pinned_by("measure.toml", __file__)

FAKE_MPICXX = """\
#!/bin/sh
echo "$*" >> {log}
case "$1" in
    --version) echo "fake {version}"; exit 0 ;;
    -show) echo "g++ -I/x -L{folder} -lmpi"; exit 0 ;;
esac
{body}
for last; do :; done
while [ $# -gt 0 ]; do
    if [ "$1" = -o ]; then cp {folder}/program "$2"; chmod +x "$2"; fi
    shift
done
"""


@pytest.fixture
def sources(tmp_path, monkeypatch) -> Path:
    folder = tmp_path / "engine"
    for name in (
        "main.cpp",
        "output/store.cpp",
        "output/store.hpp",
        "registry/benchmarks.inc",
        "kernels/latency.cpp",
        "patterns/stars.cpp",
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"// {name}\n")
    monkeypatch.setattr(engine, "find_sources", lambda: folder)
    return folder


def fake_mpicxx(folder: Path, *, version: str = "1.0", body: str = "", engine_text: str = "built\n") -> Path:
    """An mpicxx that copies `engine_text` in place of a compiled engine."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "program").write_text(engine_text)
    (folder / "libmpi.so").write_text("library")
    program = folder / "mpicxx"
    program.write_text(FAKE_MPICXX.format(log=folder / "log", version=version, folder=folder, body=body))
    program.chmod(0o755)
    return program


def compilations(mpicxx: Path) -> int:
    return sum(" -c " in f" {line} " for line in mpicxx.with_name("log").read_text().splitlines())


def build(staged, mpicxx: Path, **options):
    return build_engine(staged, NoProgress(), mpicxx=mpicxx, **options)


def test_an_engine_is_built_once_and_kept(staged, tmp_path, sources):
    mpicxx = fake_mpicxx(tmp_path / "bin")
    built = build(staged, mpicxx)
    assert built.path.parent.parent == staged.home / "engines"
    assert built.path.stat().st_mode & stat.S_IXUSR
    assert compilations(mpicxx) == 4
    assert build(staged, mpicxx) == built == find_engine(staged, mpicxx)
    assert compilations(mpicxx) == 4
    assert list_engines(staged) == [built]
    assert built.libraries == (str(tmp_path / "bin" / "libmpi.so"),)


def test_a_known_compiler_is_not_asked_for_its_version_again(staged, tmp_path, sources):
    mpicxx = fake_mpicxx(tmp_path / "bin")
    known = find_compiler(staged, mpicxx, with_mpi=True)
    log = mpicxx.with_name("log")
    log.write_text("")
    built = build(staged, mpicxx, known_compiler=known)
    assert compilations(mpicxx) == 4
    assert [line for line in log.read_text().splitlines() if line in ("--version", "-show")] == []
    assert build(staged, mpicxx) == built


def test_force_builds_again_in_place(staged, tmp_path, sources):
    mpicxx = fake_mpicxx(tmp_path / "bin")
    first = build(staged, mpicxx)
    assert build(staged, mpicxx, force=True).path == first.path
    assert compilations(mpicxx) == 8


@pytest.mark.parametrize("changed", ["a header", "the registry", "the library", "the compiler"])
def test_what_the_engine_depends_on_makes_it_another_one(staged, tmp_path, sources, changed):
    mpicxx = fake_mpicxx(tmp_path / "bin")
    before = build(staged, mpicxx)
    match changed:
        case "a header":
            (sources / "output" / "store.hpp").write_text("// other\n")
        case "the registry":
            (sources / "registry" / "benchmarks.inc").write_text("// other\n")
        case "the library":
            mpicxx.with_name("libmpi.so").write_text("another release")
        case "the compiler":
            fake_mpicxx(tmp_path / "bin", version="2.0")
    assert build(staged, mpicxx).key != before.key
    assert len(list_engines(staged)) == 2


def test_the_engine_s_own_tests_are_no_part_of_it(staged, tmp_path, sources):
    (sources / "tests").mkdir()
    (sources / "tests" / "unit_main.cpp").write_text("int main() {}\n")
    mpicxx = fake_mpicxx(tmp_path / "bin")
    build(staged, mpicxx)
    assert compilations(mpicxx) == 4


def test_two_builders_at_once_leave_one_whole_engine(staged, tmp_path, sources):
    mpicxx = fake_mpicxx(tmp_path / "bin", body="sleep 0.05")
    found: list[engine.Engine] = []
    threads = [threading.Thread(target=lambda: found.append(build(staged, mpicxx))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({one.path for one in found}) == 1
    assert found[0].path.read_text() == "built\n"
    assert [entry.name for entry in (staged.home / "engines").iterdir()] == [found[0].key]


def test_a_compiler_that_fails_is_quoted_and_its_output_kept(staged, tmp_path, sources):
    body = 'echo "In file included from x:"; echo "main.cpp:7:1: error: no <mpi.h>" >&2; exit 1'
    mpicxx = fake_mpicxx(tmp_path / "bin", body=body)
    with pytest.raises(UsageError) as failure:
        build(staged, mpicxx)
    log = staged.home / "logs" / "engine-build.log"
    assert str(failure.value) == PINNED["mpicxx cannot build the engine"].filled(mpicxx=mpicxx, log=log)
    assert "In file included from x:" in log.read_text()
    assert list((staged.home / "engines").iterdir()) == []


OTHER = "the engine is compiled for Open MPI v4.1.4, but loads MPICH Version: 4.0.2 (/opt/mpich/libmpi.so.12): advice"
REFUSING = f"#!/bin/sh\necho 'fablint-engine: error: {OTHER}' >&2\nexit 2\n"
UNRESOLVED = """#!/bin/sh
echo "$0: symbol lookup error: $0: undefined symbol: ompi_mpi_comm_world" >&2
exit 127
"""
LACKING = """#!/bin/sh
echo "$0: error while loading shared libraries: libcuda.so.1: cannot open shared object file" >&2
exit 127
"""


@pytest.mark.parametrize(
    ("engine_text", "reason"),
    [(REFUSING, OTHER), (UNRESOLVED, "undefined symbol: ompi_mpi_comm_world: load the MPI module")],
)
def test_an_engine_that_loads_another_mpi_library_is_not_kept(staged, tmp_path, sources, engine_text, reason):
    mpicxx = fake_mpicxx(tmp_path / "bin", engine_text=engine_text)
    with pytest.raises(UsageError, match=re.escape(f"{mpicxx} builds an engine that cannot run: ")) as failure:
        build(staged, mpicxx)
    assert reason in str(failure.value)
    assert list_engines(staged) == []


def test_an_engine_that_lacks_another_library_on_this_host_is_kept(staged, tmp_path, sources):
    notes: list[str] = []
    progress = NoProgress()
    progress.note = notes.append
    built = build_engine(staged, progress, mpicxx=fake_mpicxx(tmp_path / "bin", engine_text=LACKING))
    assert list_engines(staged) == [built]
    assert "does not start on this host: " in notes[0]
    assert "libcuda.so.1" in notes[0]


def test_a_linker_without_the_library_s_symbols_names_the_cause(staged, tmp_path, sources):
    body = "echo \"main.o: undefined reference to 'ompi_mpi_comm_world'\" >&2; exit 1"
    with pytest.raises(UsageError, match=r"the MPI library is not that of mpi\.h: load one MPI module only"):
        build(staged, fake_mpicxx(tmp_path / "bin", body=body))


def test_a_compiler_that_cannot_even_say_its_version(staged, tmp_path, sources):
    broken = tmp_path / "mpicxx"
    broken.write_text("#!/bin/sh\necho 'libopen-pal.so: cannot open shared object file' >&2\nexit 127\n")
    broken.chmod(0o755)
    with pytest.raises(
        PreflightError, match=r"--version fails: libopen-pal\.so: cannot open shared object file: choose"
    ):
        build(staged, broken)


def test_a_message_between_rulers_is_quoted_and_not_the_ruler():
    ruler = "-" * 74
    said = "The Open MPI wrapper compiler was unable to find the specified compiler\ng++ in your PATH.\n\nNote\n"
    problem = "The Open MPI wrapper compiler was unable to find the specified compiler g++ in your PATH"
    assert engine.first_error(Completed((), 1, "", f"{ruler}\n{said}{ruler}\n")) == problem


def test_a_home_that_cannot_be_written(staged, tmp_path, sources):
    (tmp_path / "file").write_text("")
    staged.variables["FABLINT_HOME"] = str(tmp_path / "file" / "home")
    with pytest.raises(UsageError, match=r"cannot write .*: Not a directory: set FABLINT_HOME"):
        build(staged, fake_mpicxx(tmp_path / "bin"))


def test_a_damaged_cache_entry_is_built_again(staged, tmp_path, sources):
    mpicxx = fake_mpicxx(tmp_path / "bin")
    built = build(staged, mpicxx)
    (built.path.parent / "engine.json").write_text(json.dumps({"key": 1}))
    assert list_engines(staged) == []
    assert build(staged, mpicxx).path == built.path
    assert compilations(mpicxx) == 8


def test_no_engine_yet(staged, tmp_path, sources):
    with pytest.raises(UsageError, match=r"no engine is built for .*mpicxx: fablint engine build"):
        find_engine(staged, fake_mpicxx(tmp_path / "bin"))


def test_where_mpicxx_is_looked_for(staged, tmp_path):
    given, chosen, on_path = (fake_mpicxx(tmp_path / name) for name in ("given", "chosen", "path"))
    staged.variables |= {"PATH": str(on_path.parent), "FABLINT_MPICXX": str(chosen)}
    assert find_mpicxx(staged, given) == (given, "--mpicxx")
    assert find_mpicxx(staged) == (chosen, "$FABLINT_MPICXX")
    del staged.variables["FABLINT_MPICXX"]
    assert find_mpicxx(staged) == (on_path, "PATH")
    cray = on_path.rename(tmp_path / "path" / "CC")
    staged.variables["CRAYPE_VERSION"] = "2.7.30"
    assert find_mpicxx(staged) == (cray, "Cray CC")
    staged.variables["PATH"] = "/nowhere"
    staged.interpreter = given.with_name("python3")
    assert find_mpicxx(staged) == (given, "mpich wheel")
    staged.interpreter = Path("/nowhere/python3")
    with pytest.raises(PreflightError, match=r"no mpicxx found: load an MPI module, .* pip install 'fablint\[mpich\]'"):
        find_mpicxx(staged)


@pytest.mark.parametrize("origin", ["--mpicxx", "$FABLINT_MPICXX"])
def test_a_wrong_name_is_not_passed_over(staged, origin):
    staged.variables["FABLINT_MPICXX"] = "/nowhere/mpicxx"
    given = Path("/nowhere/mpicxx") if origin == "--mpicxx" else None
    with pytest.raises(UsageError) as refusal:
        find_mpicxx(staged, given)
    assert PINNED["origin names /nowhere/mpicxx"].filled(origin=origin).begins(str(refusal.value))


def test_an_engine_without_mpi_needs_a_plain_compiler_only(staged, tmp_path, sources):
    compiler = fake_mpicxx(tmp_path / "bin").rename(tmp_path / "bin" / "g++")
    staged.variables.update(PATH=f"{tmp_path / 'bin'}:/usr/bin:/bin", CXX="")
    with pytest.raises(UsageError, match="no engine is built without MPI"):
        find_engine(staged, with_mpi=False)
    built = build_engine(staged, NoProgress(), with_mpi=False)
    assert built == find_engine(staged, with_mpi=False)
    assert (built.mpicxx, built.libraries) == (compiler, ())
    log = compiler.with_name("log").read_text()
    assert log.count(" -DFABLINT_WITHOUT_MPI ") == log.count(" -c ") + 1  # and to link
    with pytest.raises(UsageError, match="an engine without MPI is not built with an mpicxx"):
        build_engine(staged, NoProgress(), mpicxx=compiler, with_mpi=False)
