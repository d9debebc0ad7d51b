"""The stage that a run was to have: what a check that was ended early goes on with."""

from __future__ import annotations

import numpy as np

from fablint.model import Plan, PlanRow, Run, Slots
from fablint.plan.check.stages import Stage
from fablint.plan.rows.grammar import split_row, write_row
from fablint.plan.rows.patterns import parse_rounds
from fablint.plan.rows.plan_file import ReadFile
from fablint.plan.schedule.seats import Pairs


def begun_stage(run: Run, slots: tuple[Slots, ...], read_file: ReadFile) -> Stage:
    """The rows of rounds that a run is to have, each whole, as one stage for the ranks of the run.

    Args:
        run: the run to finish.
        slots: where its ranks are.
        read_file: reads the rounds files that its rows name.
    """
    known = {row.name: str(row.attributes["options"]) for row in run.rows}
    planned = zip(run.attributes["rows"], run.attributes.get("plan", []), strict=False)
    rows: list[PlanRow] = []
    rounds: dict[str, tuple[Pairs, ...]] = {}
    for name, line in planned:
        kernel, texts = split_row(known.get(name, line).split())
        file = str(texts.get("rounds-file", ""))
        if file:
            if file not in rounds:
                rounds[file] = tuple(
                    np.array(pairs, np.int32) for pairs in parse_rounds(read_file(file), run.ranks, file)
                )
            texts.pop("only-rounds", None)
            rows.append(PlanRow(write_row(kernel, {**texts, "name": name}), len(rounds[file]), 0.0))
    return Stage(Plan(run.ranks, tuple(rows), slots), rounds)
