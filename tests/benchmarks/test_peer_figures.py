"""benchmarks/peers.py reads what the originals print, and the ratio that it prints is one of medians."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from fablint.plan import read_benchmarks

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures"


@pytest.fixture
def peers(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("peers")


@pytest.mark.parametrize(
    ("file", "name", "size", "value", "step"),
    [
        ("osu/osu_latency-7.4-openmpi4.1.4-np2-quiet.txt", "osu_latency", 8, None, 0.01),
        ("osu/osu_put_bw-7.4-openmpi4.1.4-np2.txt", "osu_put_bw", 1 << 20, None, 0.01),
        ("osu/osu_mbw_mr-7.4-openmpi4.1.4-np2-quiet.txt", "osu_mbw_mr", 8, None, 0.01),
        ("osu/osu_cas_latency-7.4-openmpi4.1.4-np2.txt", "osu_cas_latency", 8, None, 0.01),
        ("imb/imb-mpi1-2021.11-pingpong-uniband-openmpi4.1.4-np2.txt", "IMB PingPong", 1024, 0.24, 0.01),
        ("mpigraph/mpigraph-1.5-np4.txt", "mpiGraph", 1024, 219.140362 * 1.048576, 1.048576e-6),
    ],
)
def test_the_figure_of_an_original_is_read_with_its_step(peers, file, name, size, value, step):
    one = next(comparison for comparison in peers.COMPARISONS if comparison.name == name)
    text = (FIXTURES / file).read_text()
    printed = one.read(text, size)
    assert printed.step == pytest.approx(step)
    if value is None:  # the figure of the line of that size
        lines = [line.split() for line in text.splitlines() if line[:1].isdigit()]
        value = float(next((words[1] for words in lines if int(words[0]) == size), lines[0][1]))
    assert printed.value == pytest.approx(value)


def test_every_benchmark_of_osu_with_a_time_of_a_message_is_compared(peers):
    known = {one.name for one in peers.COMPARISONS}
    registry = read_benchmarks((ROOT / "engine" / "registry" / "benchmarks.inc").read_text(), "benchmarks.inc")
    osu = [benchmark for benchmark in registry.values() if benchmark.family == "OSU"]
    two_ended = {benchmark.name for benchmark in osu if benchmark.row.split()[0] not in ("barrier", "ibarrier")}
    # Fans need several hosts; osu_latency_mp forks, which the libraries here allow at the user's own risk.
    assert two_ended - known == {"osu_bw_fan_in", "osu_bw_fan_out", "osu_latency_mp"}


def test_programs_of_osu_are_looked_for_in_osu_home_and_others_on_the_path(peers, tmp_path, monkeypatch):
    program = tmp_path / "libexec" / "osu-micro-benchmarks" / "mpi" / "pt2pt" / "standard" / "osu_bw"
    program.parent.mkdir(parents=True)
    program.write_text("")
    assert peers.find_program("osu_bw", {"OSU_HOME": str(tmp_path)}, Path("mpicxx")) is None  # not executable
    program.chmod(0o755)
    assert peers.find_program("osu_bw", {"OSU_HOME": str(tmp_path)}, Path("mpicxx")) == program
    monkeypatch.setenv("PATH", str(program.parent))
    assert peers.find_program("osu_bw", {}, Path("mpicxx")) == program
    assert peers.find_program("IMB-MPI1", {}, Path("mpicxx")) is None


def test_a_ratio_is_one_of_medians_inside_its_interval(peers):
    alternating = importlib.import_module("comparison.alternating")
    ratio = alternating.ratio_of_medians([2.0, 2.2, 1.8, 50.0, 2.0], [1.0, 1.1, 0.9, 1.0, 1.0])
    assert ratio.value == pytest.approx(2.0)
    assert ratio.low < ratio.value <= ratio.high


def test_programs_take_turns_equally_often(peers):
    alternating = importlib.import_module("comparison.alternating")
    started: list[str] = []
    programs = {name: lambda name=name: float(len(started.append(name) or started)) for name in "abc"}
    figures = alternating.alternate(programs, 4)
    assert {name: len(values) for name, values in figures.items()} == {"a": 4, "b": 4, "c": 4}
    assert all(sorted(started[at : at + 3]) == ["a", "b", "c"] for at in range(0, 12, 3))
