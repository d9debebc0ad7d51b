"""Cables that run at less than their like, and rates that are a design."""

from __future__ import annotations

from fablint.snapshot.cable_speeds import TrainedCable, slow_cables
from fablint.snapshot.parsers.infiniband_tools import bytes_per_second


def to_hosts(leaf: str, stem: str, rates: dict[str, int], first: int = 1) -> list[TrainedCable]:
    """Cables of a leaf to hosts of a class, so many at each rate."""
    found: list[TrainedCable] = []
    for rate, count in rates.items():
        for _ in range(count):
            number = first + len(found)
            found.append(
                TrainedCable(leaf, f"{stem}{number:03d}/mlx5_0", rate, bytes_per_second(rate), str(number), "1", True)
            )
    return found


def slow(*cables: list[TrainedCable]) -> list[tuple[str, str, bool]]:
    found = slow_cables([one for several in cables for one in several])
    return [(one.cable.rate, one.others, one.is_certain) for one in found]


def test_half_the_width_of_a_class_of_hosts_is_a_design_and_one_lane_is_the_fault() -> None:
    mixed = {"4xHDR": 20, "2xHDR": 12, "1xHDR": 1}
    assert slow(to_hosts("leaf1", "n", mixed)) == [("1xHDR", "20 other cables of leaf1 at 4xHDR", True)]
    even = {"4xHDR": 8, "2xHDR": 8, "1xHDR": 1}
    assert [rate for rate, _, sure in slow(to_hosts("leaf1", "n", even)) if sure] == ["1xHDR"]


def test_a_fault_is_compared_with_its_own_class() -> None:
    cpu, gpu = to_hosts("leaf1", "cpu", {"2xHDR": 11, "1xHDR": 1}), to_hosts("leaf1", "gpu", {"4xHDR": 11, "2xHDR": 1})
    assert slow(cpu, gpu) == [
        ("1xHDR", "11 other cables of leaf1 at 2xHDR", True),
        ("2xHDR", "11 other cables of leaf1 at 4xHDR", True),
    ]


def test_a_few_hosts_that_are_a_class_of_their_own() -> None:
    assert slow(to_hosts("leaf1", "n", {"4xHDR": 30}), to_hosts("leaf1", "login", {"2xHDR": 2})) == []
    assert len(slow(to_hosts("leaf1", "n", {"4xHDR": 30, "2xHDR": 2}))) == 2


def test_splitters_on_one_leaf_of_many() -> None:
    leaves = [to_hosts(f"leaf{n}", "n", {"4xHDR": 32}, 100 * n) for n in range(1, 30)]
    assert slow(*leaves, to_hosts("leaf30", "n", {"4xHDR": 20, "2xHDR": 12}, 3000)) == []


def test_cables_that_lost_lanes_are_no_design_however_many() -> None:
    assert [rate for rate, _, _ in slow(to_hosts("leaf1", "n", {"4xHDR": 12, "1xHDR": 4}))] == ["1xHDR"] * 4


def test_between_switches_a_narrow_cable_is_slow_beside_many_narrow_ones() -> None:
    rates = ["4xHDR"] * 8 + ["2xHDR"] * 4
    cables = [TrainedCable("leaf1", f"spine{n}", rate, bytes_per_second(rate), str(n)) for n, rate in enumerate(rates)]
    assert [rate for rate, _, _ in slow(cables)] == ["2xHDR"] * 4
