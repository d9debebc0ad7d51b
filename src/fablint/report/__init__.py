"""Verdicts and figures, for people (`console_summary`, `write_html`, tables) and programs (`verdict_json`).

What draws on numpy is imported when it is asked for: what preflight prints does without, on every host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fablint.model.lazy_imports import lazy_names

if TYPE_CHECKING:
    from fablint.report.changes.changes_document import changes_facts, changes_text
    from fablint.report.changes.changes_page import write_changes_page
    from fablint.report.console import console_summary
    from fablint.report.html.page import write_html
    from fablint.report.preflight.preflight_text import fitness_json, fitness_table
    from fablint.report.summary import run_summary
    from fablint.report.tables import (
        TABLES,
        BenchTable,
        Options,
        Table,
        bench_table,
        benchmark_table,
        render_table,
    )
    from fablint.report.tables.connections import connection_facts
    from fablint.report.verdict_document import verdict_json, verdict_schema

__all__ = [
    "TABLES",
    "BenchTable",
    "Options",
    "Table",
    "bench_table",
    "benchmark_table",
    "changes_facts",
    "changes_text",
    "connection_facts",
    "console_summary",
    "fitness_json",
    "fitness_table",
    "render_table",
    "run_summary",
    "verdict_json",
    "verdict_schema",
    "write_changes_page",
    "write_html",
]

_MODULES = {
    "changes_facts": "changes.changes_document",
    "changes_text": "changes.changes_document",
    "connection_facts": "tables.connections",
    "console_summary": "console",
    "fitness_json": "preflight.preflight_text",
    "fitness_table": "preflight.preflight_text",
    "run_summary": "summary",
    "verdict_json": "verdict_document",
    "verdict_schema": "verdict_document",
    "write_changes_page": "changes.changes_page",
    "write_html": "html.page",
}

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__, dict.fromkeys(__all__, "tables") | _MODULES)
