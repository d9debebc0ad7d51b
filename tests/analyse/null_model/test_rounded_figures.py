"""Tools print few digits: what rounding adds to the differences between hosts is no fault, and hides no larger one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fablint.analyse import diagnose
from fablint.analyse.observations.resolution import find_step
from fablint.model import Row, Run, State
from fact_cases import row_facts, run_facts

HOSTS, SLOW, SIZE = 32, 5, 65536
Rounding = Callable[[np.ndarray], np.ndarray]
US, MB = 1e-6, 1e6


def digits(number: int) -> Rounding:
    """Rounding to significant digits."""
    return np.vectorize(lambda value: float(f"{value:.{number}g}"))


def decimals(number: int) -> Rounding:
    """Rounding to digits behind the point."""
    return lambda values: np.round(values, number)


def run_of(
    quantity: str,
    usual: float,
    rounding: Rounding,
    *,
    layout: str,
    seed: int,
    slow: float = 1.0,
) -> Run:
    """Times in us, or rates in MB/s, of hosts that differ by 2.5 %, printed with few digits; 1 % outliers."""
    rng = np.random.default_rng(seed)
    host = 0.025 * rng.standard_normal(HOSTS)
    log = host[:, None] + host[None, :] + 0.01 * rng.standard_normal((HOSTS, HOSTS))
    log += np.where(rng.random(log.shape) < 0.01, rng.exponential(0.7, log.shape), 0.0)
    log[SLOW] += np.log(slow)
    log[:, SLOW] += np.log(slow)
    if quantity == "latency":
        times = rounding(usual * np.exp(log)) * US
    else:
        times = SIZE / (rounding(usual * np.exp(-log)) * MB)
    np.fill_diagonal(times, np.nan)
    arrays: dict[str, np.ndarray] = {"size": np.array([SIZE])}
    if layout == "matrix":
        times = times[None, :, :, None]
    else:
        partner = np.array([[rank ^ number for number in range(1, HOSTS)] for rank in range(HOSTS)], np.int32)
        arrays["dst"], times = partner, np.take_along_axis(times, partner, axis=1)[..., None]
    arrays |= {"time_median": times.astype(np.float32), "count": np.where(np.isnan(times), 0, 3).astype(np.uint32)}
    attributes = {
        "kernel": quantity,
        "transport": "mpi",
        "memory": "host",
        "options": "x",
        "state": "complete",
        "windows": [1],
        "payload": "both" if quantity == "latency" else "src",
        "quantity": quantity,
        "directions": "both",
        "order": "serial",
        "layout": layout,
        "pattern": "all-pairs" if layout == "matrix" else "rounds",
        "rounds": HOSTS - 1,
        "cells_per_round": HOSTS,
        "repeats": 1,
    }
    names = [f"h{number:02}" for number in range(HOSTS)]
    root = {"format": 1, "state": "complete", "rows": [quantity], "ranks": HOSTS, "hosts": names}
    return Run(
        None, run_facts({**root, "rank_host": list(range(HOSTS))}), (Row(quantity, row_facts(attributes), arrays),)
    )


def faults(run: Run) -> list[str]:
    return [finding.name for finding in diagnose(run).verdict.findings if finding.state is State.FAULT]


PRINTED = [
    ("latency", 1.3, decimals(1)),
    ("latency", 1.27, decimals(2)),
    ("latency", 2.7, decimals(1)),
    ("latency", 11.8, decimals(0)),
    ("latency", 1.02, digits(3)),
    ("bandwidth", 5.6, decimals(1)),
    ("bandwidth", 21.0, decimals(0)),
]


@pytest.mark.parametrize("layout", ["matrix", "list"])
@pytest.mark.parametrize(("quantity", "usual", "rounding"), PRINTED)
def test_healthy_hosts_have_no_fault_by_rounding(quantity: str, usual: float, rounding: Rounding, layout: str) -> None:
    assert [faults(run_of(quantity, usual, rounding, layout=layout, seed=seed)) for seed in range(8)] == [[]] * 8


@pytest.mark.parametrize("layout", ["matrix", "list"])
@pytest.mark.parametrize(("quantity", "usual", "rounding"), PRINTED)
def test_a_slow_host_is_at_fault_in_spite_of_rounding(
    quantity: str, usual: float, rounding: Rounding, layout: str
) -> None:
    assert faults(run_of(quantity, usual, rounding, layout=layout, seed=1, slow=1.4)) == ["h05"]


# ------------------------------------------------------------------------------------------------ the step


def scattered(usual: float, count: int = 500, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = usual * np.exp(0.05 * rng.standard_normal(count))
    values[rng.random(count) < 0.02] *= 3.37  # outliers: the steps of their logarithms are smaller
    return values


@pytest.mark.parametrize("count", [40, 500])
@pytest.mark.parametrize(
    ("usual", "step"), [(1.3, 0.1), (1.3, 0.01), (2.7, 0.1), (2.7, 1.0), (11.8, 0.1), (11.8, 1.0), (1.3, 0.04167)]
)
def test_the_step_of_times_is_that_of_their_digits_over_the_median(usual: float, step: float, count: int) -> None:
    times = np.round(scattered(usual, count) / step) * step * US
    assert find_step(np.log(times).astype(np.float32)) == pytest.approx(step / (np.median(times) / US), rel=1e-3)


@pytest.mark.parametrize(("usual", "step"), [(5.6, 0.1), (47.0, 1.0), (1234.0, 100.0), (12.4 / 8, 0.1 / 8)])
def test_the_step_of_rates_is_visible_in_times(usual: float, step: float) -> None:
    rates = np.round(scattered(usual) / step) * step
    assert find_step(np.log(SIZE / (rates * MB)).astype(np.float32)) == pytest.approx(step / np.median(rates), rel=1e-3)


@pytest.mark.parametrize(
    "values", [[1.3] * 50, [1.3] * 50 + [5.0], [1.3] * 50 + [2.6] * 50, [1.3] * 50 + [1.4, 1.5]], ids=str
)
def test_few_distinct_times_have_the_step_of_their_decimal_digits(values: list[float]) -> None:
    step = find_step(np.log(np.array(values) * US).astype(np.float32))
    assert step == pytest.approx(0.1 / np.median(values), rel=1e-3)


def test_times_that_are_not_rounded_have_no_step() -> None:
    assert [find_step(np.log(scattered(1.3, 300, seed)).astype(np.float32)) for seed in range(50)] == [0.0] * 50
