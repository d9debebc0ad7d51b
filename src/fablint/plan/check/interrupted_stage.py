"""The stage that a run was to have: what a check that was ended early goes on with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fablint.model import Plan, PlanRow, Run, Slots
from fablint.model.arrays import RankPairs
from fablint.plan.check.stages import Stage
from fablint.plan.rows.patterns import parse_rounds
from fablint.plan.rows.plan_file import ReadFile
from fablint.plan.rows.run_rows import planned_specs


def begun_stage(run: Run, slots: tuple[Slots, ...], read_file: ReadFile) -> Stage:
    """The rows of rounds that a run is to have, each whole, as one stage for the ranks of the run.

    Parameters
    ----------
    run
        The run to finish.
    slots
        Where its ranks are.
    read_file
        Reads the rounds files that its rows name.
    """
    rows: list[PlanRow] = []
    rounds: dict[str, tuple[RankPairs, ...]] = {}
    for spec in planned_specs(run).values():
        if file := spec.rounds_file:
            if file not in rounds:
                rounds[file] = tuple(
                    np.array(pairs, np.int32) for pairs in parse_rounds(read_file(file), run.ranks, file)
                )
            rows.append(PlanRow(replace(spec, only_rounds=None), len(rounds[file]), 0.0))
    return Stage(Plan(run.ranks, tuple(rows), slots), rounds)
