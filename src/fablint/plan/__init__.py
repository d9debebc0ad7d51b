"""plan: which rows the engine measures, and how long that takes. Pure: no file, no process, no clock."""

from __future__ import annotations

from fablint.plan.bench import bench_row
from fablint.plan.check import check_plan
from fablint.plan.parse import parse_plan
from fablint.plan.resume import resume_plan
from fablint.plan.values import fold_indices, parse_indices, parse_sizes

__all__ = [
    "bench_row",
    "check_plan",
    "fold_indices",
    "parse_indices",
    "parse_plan",
    "parse_sizes",
    "resume_plan",
]
