"""Why a run ended, from the reports of the ranks: which rank failed, or between which two ranks something did."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fablint.measure import failure_text
from fablint.model.facts.failed_rank import FailedRank
from pinned import pinned_by

PINNED = pinned_by("measure.toml", __file__)


def test_what_one_end_knows_of_a_cut_is_reported_with_both_hosts():
    ends = [
        FailedRank(1, "b", 6, 0, "failed (no message for 20 s)"),
        FailedRank(0, "a", 6, 1, "failed (no TCP connection to 10.0.0.1 for 16 s)"),
    ]
    assert failure_text(ends, ["a", "b"]) == PINNED["rank 1 on b and rank 0"]


@pytest.mark.parametrize(
    "why", ["no message for 60 s", "no TCP connection to it for 20 s", "did not come to the next round for 60 s"]
)
def test_where_one_end_of_a_pair_reports_neither_is_the_failed_one(why):
    failed = FailedRank(1, "b", 6, 0, f"failed ({why})")
    assert failure_text([failed], ["a", "b"]) == PINNED["rank 0 on a received nothing"].filled(why=why)
    assert failure_text([replace(failed, host="a")], ["a", "a"]) == PINNED["rank 0 on a received nothing from"].filled(
        why=why
    )
    assert failure_text([replace(failed, partner=None)], ["a", "b"]).endswith(" in round 6")


def test_a_rank_that_several_report_or_whose_end_is_known_is_the_failed_one():
    failed = FailedRank(1, "b", 6, 0, "failed (no message for 60 s)")
    by_two = [failed, replace(failed, partner=2)]
    assert failure_text(by_two, ["a", "b", "c"]) == PINNED["rank 1 on b failed (no message"]
    ended = replace(failed, reason="failed (its TCP connection was closed)")
    assert failure_text([ended], ["a", "b"]) == PINNED["rank 1 on b failed (its TCP"]
