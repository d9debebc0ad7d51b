"""Counters: growth, whatever their width."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from preflight_help import host, sample

from fablint.snapshot.counter_deltas import Delta, delta, saturated

IB = "/sys/class/infiniband/mlx5_0/ports/1/counters"
TELEMETRY = "/sys/class/cxi/cxi0/device/telemetry"


def telemetry(name: str) -> dict[str, str]:
    return dict(line.split(":", 1) for line in sample(f"slingshot/telemetry-grep-{name}.txt").splitlines())


def test_a_56_bit_counter_goes_on_from_0_and_its_own_moments_count() -> None:
    before, after = telemetry("before"), telemetry("after")
    found = {path: delta(path, before[path], after[path], 1.0) for path in before}
    assert found == {
        f"{TELEMETRY}/hni_rx_ok_opt": Delta(12000, 60.0),
        f"{TELEMETRY}/hni_tx_ok_opt": Delta(115702638, 60.0),
        "/sys/class/cxi/cxi1/device/telemetry/hni_rx_ok_opt": Delta(12000, 60.0),
        "/sys/class/cxi/cxi1/device/telemetry/hni_tx_ok_opt": Delta(115702638, 60.0),
    }


@pytest.mark.parametrize(
    ("name", "largest"),
    [("symbol_error", 65535), ("link_downed", 255), ("local_link_integrity_errors", 15), ("port_xmit_wait", 2**32 - 1)],
)
def test_a_counter_that_is_full_says_at_least(name: str, largest: int) -> None:
    path = f"{IB}/{name}"
    assert delta(path, "5", str(largest), 4.0) == Delta(largest - 5, 4.0, at_least=True)
    assert delta(path, "5", str(largest - 1), 4.0) == Delta(largest - 6, 4.0)
    assert saturated(path, str(largest)) and not saturated(path, str(largest - 1))


def test_a_wider_counter_of_the_same_name_is_not_full() -> None:
    assert not saturated(f"{IB}/symbol_error", "70000")
    assert not saturated("/sys/class/net/hsn0/statistics/rx_errors", "65535")
    assert not saturated(f"{IB}/port_rcv_data", str(2**32 - 1))  # 64 bits


def test_a_counter_that_was_reset_tells_nothing() -> None:
    assert delta(f"{IB}/symbol_error", "65535", "3", 4.0) is None
    assert delta("/sys/class/net/hsn0/statistics/rx_errors", "9", "3", 4.0) is None
    assert delta(f"{TELEMETRY}/hni_pcs_good_cw", "900@1.0", "3@5.0", 4.0) is None  # too far from its end to wrap


def test_64_bit_counters_grow_beyond_56_bits() -> None:
    path = "/sys/class/net/hsn0/statistics/rx_bytes"
    assert delta(path, str(2**60), str(2**60 + 7), 4.0) == Delta(7, 4.0)


def test_what_was_not_read_anew_tells_nothing() -> None:
    assert delta(f"{TELEMETRY}/hni_pcs_good_cw", "9@17.5", "9@17.5", 4.0) is None
    assert delta(f"{IB}/symbol_error", "9", "9", 0.0) is None


def test_of_aer_the_sum_counts() -> None:
    path = "/sys/class/cxi/cxi0/device/aer_dev_correctable"
    before, after = ("RxErr 0\nBadTLP 2\nTOTAL_ERR_COR 2", "RxErr 512\nBadTLP 2\nTOTAL_ERR_COR 514")
    assert delta(path, before, after, 4.0) == Delta(512, 4.0)
    assert delta(path, "", after, 4.0) is None


def test_a_reading_that_was_kept_goes_before_the_own_window() -> None:
    path = f"{IB}/symbol_error"
    one = host(files={path: "100"}, later={path: "101"})
    assert one.grown(path) == one.grown_now(path) == Delta(1, 4.0)
    tree: dict[str, object] = {"symbol_error": "1"}
    for folder in reversed(IB.strip("/").split("/")):
        tree = {folder: tree}
    one.before = {"time": one.snapshot.time - 7196.0, "counters": tree}
    assert one.grown(path) == Delta(100, 7200.0)
    assert one.grown_now(path) == Delta(1, 4.0)


def test_growth_is_said_with_its_time() -> None:
    words = [str(Delta(3, seconds)) for seconds in (4.0, 150.0, 7300.0, 200000.0)]
    assert words == ["3 in 4.0 s", "3 in 2 min", "3 in 2 h", "3 in 2 d"]
    assert str(Delta(65530, 4.0, at_least=True)) == "at least 65530 in 4.0 s"
    assert Delta(8, 4.0).rate == 2.0


@given(st.sampled_from([IB, TELEMETRY, "/sys/x/aer_dev_fatal"]), st.text(), st.text(), st.floats())
def test_no_text_breaks(folder: str, before: str, after: str, seconds: float) -> None:
    found = delta(f"{folder}/symbol_error", before, after, seconds)
    assert found is None or found.growth >= 0


@given(st.integers(0, 2**56 - 1), st.integers(0, 2**54))
def test_growth_is_right_across_the_wrap(first: int, growth: int) -> None:
    last = (first + growth) % 2**56
    assert delta(f"{TELEMETRY}/x", f"{first}@1.0", f"{last}@2.0", 9.0) == Delta(growth, 1.0)


def test_equal_texts_of_counters_of_different_kinds_are_judged_apart() -> None:
    folders = [IB, TELEMETRY, "/sys/class/net/hsn0/statistics"]
    assert [delta(f"{folder}/symbol_error", "5", "65535", 4.0) for folder in folders] == [
        Delta(65530, 4.0, at_least=True),
        Delta(65530, 4.0),
        Delta(65530, 4.0),
    ]
    wrapped = [delta(f"{folder}/x", str(2**56 - 1), "3", 4.0) for folder in folders]
    assert wrapped == [None, Delta(4, 4.0), None]
