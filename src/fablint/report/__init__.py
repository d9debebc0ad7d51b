"""Verdicts and figures, for people (`console_summary`, `write_html`, `run_summary`) and programs (`verdict_json`)."""

from fablint.report.console import console_summary
from fablint.report.page import write_html
from fablint.report.show import run_summary
from fablint.report.table import BenchTable, bench_table
from fablint.report.verdict import verdict_json, verdict_schema

__all__ = [
    "BenchTable",
    "bench_table",
    "console_summary",
    "run_summary",
    "verdict_json",
    "verdict_schema",
    "write_html",
]
