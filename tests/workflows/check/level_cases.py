"""The fabric that levels are checked on, and what a check of it is called with."""

from __future__ import annotations

from collections.abc import Callable

from fake_launches import (
    fabric,
)

from fablint.workflows.check.check_run import CheckOutcome
from fablint.workflows.check.level_runs import LevelRuns

FABRIC = fabric()
HOSTS = list(FABRIC.host_switch)
CHECK = Callable[..., tuple[CheckOutcome, LevelRuns]]
