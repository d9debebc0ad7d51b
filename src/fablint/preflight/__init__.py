"""Is every host fit to be measured? Pure functions over snapshots: nothing is asked here."""

from __future__ import annotations

from fablint.preflight.host import Fleet, Host, counters_of
from fablint.preflight.judging import judge
from fablint.preflight.reach import offsets, repeats, table, unanswered
from fablint.preflight.table import CHECKS

__all__ = ["CHECKS", "Fleet", "Host", "counters_of", "judge", "offsets", "repeats", "table", "unanswered"]
