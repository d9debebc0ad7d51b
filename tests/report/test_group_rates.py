"""Rates of all ranks together: text and page have those of the tool whose result was imported."""

from __future__ import annotations

from pathlib import Path

import pytest
from report_cases import readable
from table_cases import row

from fablint.report import console_summary
from fablint.report.group_rates import group_figures
from fablint.report.html.page import render
from fablint.workflows.analysis import diagnose
from fablint.workflows.run_formats import read

FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.mark.parametrize(
    ("file", "text", "page"),
    [
        (
            "nccl_tests/nccl-tests-2.13-all_reduce-synthetic.txt",
            "allreduce at 1 GiB: busbw 34.0 GB/s, algbw 22.7 GB/s, time 47.3 ms",
            ("busbw", "algbw", "14.0 GB/s", "9.33 GB/s", "busbw against message size"),
        ),
        (
            "osu/osu_mbw_mr-7.1-slingshot-64nodes.txt",
            "bandwidth at 4 MiB: total of 1,024 pairs 5.46 TB/s, per pair 5.33 GB/s",
            ("total of 1,024 pairs", "per pair", "5.56 TB/s", "5.43 GB/s"),
        ),
    ],
)
def test_figures_are_those_of_the_tool_and_nothing_is_judged(file: str, text: str, page: tuple[str, ...]) -> None:
    run = read(FIXTURES / file)
    diagnosis = diagnose(run)
    summary, source = console_summary(run, diagnosis, width=None), readable(render(run, diagnosis))
    assert text in summary
    assert all(f">{words}<" in source for words in page)
    assert summary.startswith("NOT JUDGED  figures only")
    for words in ("planned measurements", "hosts judged", "limits ", "mean of messages"):
        assert words not in summary + source


@pytest.mark.parametrize(
    ("kernel", "busbw", "algbw"),
    # 4 ranks, 1 MB each, 1 ms
    [("allreduce", "1.50", "1.00"), ("allgather", "3.00", "4.00"), ("bcast", "1.00", "1.00")],
)
def test_rates_of_a_collective_follow_the_definitions_of_nccl_tests(kernel: str, busbw: str, algbw: str) -> None:
    cells = {(rank, -1, 0): [1e-3] for rank in range(4)}
    of_nccl = row(kernel, "world", cells, ranks=4, sizes=(1_000_000,), transport="nccl")
    assert group_figures(of_nccl, 1_000_000, 1e-3) == {
        "busbw": f"{busbw} GB/s",
        "algbw": f"{algbw} GB/s",
        "time": "1.00 ms",
    }
    assert group_figures(row(kernel, "world", cells, ranks=4, sizes=(1_000_000,)), 1_000_000, 1e-3) == {}
