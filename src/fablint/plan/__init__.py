"""plan: which rows the engine measures, and how long that takes. Pure: no file, no process, no clock."""

from __future__ import annotations

from fablint.plan.check.default_rows import check_plan
from fablint.plan.check.resume import resume_plan
from fablint.plan.rows.bench_rows import BenchRequest, bench_plan, bench_rows, every_row, measured_as, without_meaning
from fablint.plan.rows.benchmarks import Benchmark, find_benchmark, list_benchmarks, read_benchmarks
from fablint.plan.rows.host_lists import joined, parse_hosts, parse_rank_hosts, parse_slots
from fablint.plan.rows.plan_file import parse_plan, plan_of

__all__ = [
    "BenchRequest",
    "Benchmark",
    "bench_plan",
    "bench_rows",
    "check_plan",
    "every_row",
    "find_benchmark",
    "joined",
    "list_benchmarks",
    "measured_as",
    "parse_hosts",
    "parse_plan",
    "parse_rank_hosts",
    "parse_slots",
    "plan_of",
    "read_benchmarks",
    "resume_plan",
    "without_meaning",
]
