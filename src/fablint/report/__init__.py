"""Verdicts and figures, for people (`console_summary`, `write_html`, tables) and programs (`verdict_json`)."""

from fablint.report.console import console_summary
from fablint.report.fitness import fitness_table, junit_text, prometheus_text
from fablint.report.page import write_html
from fablint.report.show import run_summary
from fablint.report.tables import (
    TABLES,
    BenchTable,
    Options,
    Table,
    bench_table,
    benchmark_table,
    render_table,
)
from fablint.report.verdict import verdict_json, verdict_schema

__all__ = [
    "TABLES",
    "BenchTable",
    "Options",
    "Table",
    "bench_table",
    "benchmark_table",
    "console_summary",
    "fitness_table",
    "junit_text",
    "prometheus_text",
    "render_table",
    "run_summary",
    "verdict_json",
    "verdict_schema",
    "write_html",
]
