"""The default plan: what it measures, in which order, and that it keeps to its budget."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from fablint.errors import UsageError
from fablint.model import RowSpec
from fablint.plan import check_plan


def rows(*args, **kwargs) -> list[RowSpec]:
    return [row.spec for row in check_plan(*args, **kwargs).rows]


def test_eight_local_ranks_take_twenty_seconds_one_pair_at_a_time():
    plan = check_plan(8, hosts=1, oversubscribed=True)
    assert 15 < plan.predicted_s <= 20
    latency, bandwidth = rows(8, hosts=1, oversubscribed=True)
    assert (latency.kernel, latency.sizes, bandwidth.kernel, bandwidth.sizes) == (
        "latency",
        (8,),
        "bandwidth",
        (1 << 20,),
    )
    assert {latency.pattern, bandwidth.pattern} == {"all-pairs"}
    assert {latency.order, bandwidth.order} == {"serial"}
    assert latency.repeats >= 2


@pytest.mark.parametrize(
    ("hosts", "oversubscribed", "order"), [(64, False, "parallel"), (64, True, "serial"), (1, False, "serial")]
)
def test_order(hosts, oversubscribed, order):
    assert {row.order for row in rows(64, hosts=hosts, oversubscribed=oversubscribed)} == {order}


@pytest.mark.parametrize("ranks", [2, 3, 16, 64])
@pytest.mark.parametrize("oversubscribed", [False, True])
def test_small_fabrics_are_measured_more_than_once(ranks, oversubscribed):
    assert all(row.repeats >= 2 for row in rows(ranks, hosts=ranks, oversubscribed=oversubscribed))


@pytest.mark.parametrize(("ranks", "seconds"), [(64, 120), (1024, 120), (10_000, 225)])
def test_a_cluster_takes_minutes(ranks, seconds):
    assert check_plan(ranks, hosts=ranks, oversubscribed=False).predicted_s <= seconds


@given(st.integers(2, 3000), st.booleans(), st.floats(1, 1e5))
def test_an_explicit_budget_is_kept(ranks, oversubscribed, budget_s):
    fewest = 4 * (ranks // 2 if oversubscribed else 1) * 0.01 * 2 * 1.1
    plan = check_plan(ranks, hosts=ranks, oversubscribed=oversubscribed, budget_s=budget_s)
    assert plan.predicted_s <= max(budget_s, fewest) * (1 + 1e-9)
    assert {row.pattern for row in (row.spec for row in plan.rows)} <= {"all-pairs", "random"}


def test_a_short_budget_draws_matchings_instead():
    assert {row.pattern for row in rows(1024, hosts=1024, oversubscribed=False, budget_s=10)} == {"random"}
    assert {row.pattern for row in rows(1024, hosts=1024, oversubscribed=False, budget_s=60)} == {"all-pairs"}


@pytest.mark.parametrize("budget_s", [0.0, -1.0, float("nan"), float("inf")])
def test_a_budget_must_be_positive(budget_s):
    with pytest.raises(UsageError, match="budget"):
        check_plan(8, hosts=1, oversubscribed=False, budget_s=budget_s)


def test_a_check_of_one_rank_is_refused():
    with pytest.raises(UsageError, match="at least 2 ranks"):
        check_plan(1, hosts=1, oversubscribed=False)
