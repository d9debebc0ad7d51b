"""`fablint check` of virtual clusters in which a few of a kind have to do: one case.

benchmarks/cluster_shapes.py goes through all shapes and cases, healthy ones too; CI has no time for more than this one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from checked_cluster import sentence
from cluster_shapes import SHAPES, Knowledge, check_case, cluster_of

pytestmark = [pytest.mark.alone, pytest.mark.long]

CASES = [
    ("3x1x6", "slow cable, one way", "presumed"),
]


@pytest.mark.parametrize(("shape_name", "case_name", "known"), CASES)
def test_a_fault_is_named_and_nothing_else(shape_name: str, case_name: str, known: Knowledge, tmp_path: Path) -> None:
    shape = next(shape for shape in SHAPES if shape.name == shape_name)
    case = next(case for case in shape.cases() if case.name == case_name)
    with cluster_of(shape) as bed:
        outcome = check_case(bed, shape, case, known, tmp_path, "--budget", "40s")
    assert outcome.wrong(case.faulty) == [], [*map(sentence, outcome.reported), outcome.notes]
