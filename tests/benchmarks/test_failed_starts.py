"""The comparisons go on where a program refuses to start, and print its reason."""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from pinned import pinned_by

PINNED = pinned_by("benchmarks.toml", __file__)

ROOT = Path(__file__).parents[2]
REFUSAL = "MPI_Init_thread must return MPI_THREAD_MULTIPLE!"
PROGRAMS = {
    "osu_latency": "echo '# OSU MPI Latency Test'; echo '8   0.36'",
    "osu_latency_mt": f"echo '{REFUSAL}' >&2; exit 1",
    "osu_put_latency": "echo '# OSU MPI_Put Latency Test'",
    "osu_get_latency": "echo '8   abc'",
    "osu_bw": "echo '8   400.5'",
}


@pytest.fixture
def modules(monkeypatch):
    """Import a module of the benchmarks."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module


@pytest.fixture
def bench(modules, tmp_path, monkeypatch):
    """A launcher that runs one process, in place of an MPI, and an engine whose messages take 0.4 us."""
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    launching = modules("comparison.launching")
    kind = SimpleNamespace(environ=lambda **_: {}, arguments=lambda ranks, root: ["-n", str(ranks)])
    launcher = tmp_path / "mpiexec"
    launcher.write_text('#!/bin/sh\nshift 2\nexec "$@"\n')
    launcher.chmod(0o755)
    monkeypatch.setattr(launching.Bench, "engine_seconds", lambda *_, **__: 0.4e-6)
    system = SimpleNamespace(affinity=lambda: frozenset({0, 1}), is_root=lambda: False)
    return launching.Bench(system, Path("mpicxx"), SimpleNamespace(path=launcher, kind=kind), Path("engine"))


def test_a_peer_that_refuses_is_skipped_with_its_reason(modules, bench, tmp_path, capsys):
    peers = modules("peers")

    def lines(one):
        program = tmp_path / one.program
        if not program.exists():
            return None
        return (peers.compare(bench, one, program, size, 3, tmp_path) for size in (8,))

    modules("comparison.peer_table").print_installed(peers.COMPARISONS, "osu_", lines)
    printed = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert printed["osu_latency_mt"].split(maxsplit=1)[1] == f"skipped: {REFUSAL}"
    assert PINNED["skipped: no figure for 8"] in printed["osu_put_latency"]
    assert PINNED["skipped: no figure for 8 bytes"] in printed["osu_get_latency"]
    assert "skipped" not in printed["osu_latency"]
    assert "MB/s" in printed["osu_bw"]  # those after it are measured
    assert "osu_multi_lat" in printed["not"]  # not installed


def test_a_program_that_is_missing_or_does_not_end_is_a_failed_start(modules, tmp_path):
    failed_starts = modules("comparison.failed_starts")
    with pytest.raises(failed_starts.FailedStart, match="No such file"):
        failed_starts.output_of([str(tmp_path / "none")])
    with pytest.raises(failed_starts.FailedStart, match=r"sleep did not end within 0\.1 s"):
        failed_starts.output_of([str(shutil.which("sleep")), "30"], limit_s=0.1)
    with pytest.raises(failed_starts.FailedStart, match="exit status 4"):
        failed_starts.output_of(["/bin/sh", "-c", "exit 4"])


def test_a_server_that_does_not_listen_is_a_failed_start(modules, monkeypatch, capsys):
    transport_peers = modules("transport_peers")
    monkeypatch.setattr(transport_peers, "START_LIMIT_S", 0.05)

    def lines():
        transport_peers.wait_for_listener(1)
        yield "never"

    modules("comparison.peer_table").print_lines("tcp latency", lines())
    assert capsys.readouterr().out.split(maxsplit=2)[2] == "skipped: no server listens on port 1\n"
