"""Pages of the benchmarks, and the options of OSU that have no equivalent."""

from __future__ import annotations

import re

import pytest

from fablint.cli import cli
from fablint.cli.bench_options import SECTIONS, SETTINGS
from fablint.cli.session import Session
from fablint.errors import UsageError


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("osu_bw -u 3", "-u of OSU is not available: -c checks every repetition"),
        ("osu_bw --validation-warmup 3", "--validation-warmup of OSU is not available: -c checks every repetition"),
        ("osu_bw -I", "-I of OSU is not available: the engine starts MPI with MPI_Init"),
        ("osu_bw -Gpng", "-G of OSU is not available: -o RUN keeps the figures"),
        ("osu_bw -D cont", "-D of OSU is not available: messages are contiguous bytes"),
        ("osu_bw -P x", "-P of OSU is not available: --counters reads"),
        ("osu_fop_latency -T mpi_char", "--type does not apply to osu_fop_latency: its numbers are MPI_UINT64_T"),
        ("osu_init -i 3", "--iterations does not apply to osu_init: it only starts the ranks"),
        ("linktest -v", "--version does not apply to linktest: it is for OSU"),
    ],
)
def test_options_of_osu_without_an_equivalent_say_why(line, error):
    with pytest.raises(UsageError, match=re.escape(error)):
        cli.main(["bench", *line.split()], standalone_mode=False, obj=Session())


def test_osu_s_type_and_version(fablint):
    done = fablint("bench", "osu_bw", "-T", "mpi_int")
    assert (done.returncode, "'mpi_int' is not mpi_char; MPI moves" in done.stderr) == (2, True)
    assert "protocol and format of OSU Micro-Benchmarks 7.4" in fablint("bench", "osu_bw", "-v").stdout


def test_help_with_a_name_is_a_page_of_that_benchmark(fablint):
    page = fablint("bench", "bw", "--help").stdout
    assert page.startswith("Usage: fablint bench osu_bw [OPTIONS]\n\n  A window of messages, acknowledged, measured")
    assert "  repetitions  100, above 8 KiB 20\n  warm-up      10, above 8 KiB 2\n  window       64\n" in page
    served = fablint("bench", "net_sanitizer", "--help").stdout
    assert [served.count(f"\nDefaults of row {row}:\n") for row in ("rpc_put", "rpc_get", "bandwidth")] == [1, 1, 1]


def test_help_with_a_name_shows_what_means_something_for_it(fablint):
    every = fablint("bench", "--help").stdout
    assert all(one.spelling in every for one in SETTINGS.values())
    assert all(f"\n{title}:\n" in every for title in SECTIONS)
    shown = fablint("bench", "osu_put_bw", "-n", "2", "--help").stdout.partition("\nOptions:\n")[2]
    has = {one.spelling for one in SETTINGS.values() if re.search(rf"{one.spelling}[ ,\n]", shown)}
    assert has == {one.spelling for one in SECTIONS["Options"]} | {
        *["--window", "--buffers", "--win", "--sync", "--version", "--type"]
    }
    assert "LinkTest options" not in shown
    assert "--num-multi-buf" in fablint("bench", "--help", "linktest").stdout
