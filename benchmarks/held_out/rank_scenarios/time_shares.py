"""Components that are slow, late or lossy for a share of the time."""

from __future__ import annotations

from collections.abc import Iterator

from held_out.noise import bursts, lognormal
from held_out.rank_runs.incidence import of_messages, of_rounds, of_stretches
from held_out.rank_runs.rank_scenario import RankScenario
from held_out.rank_scenarios.drawn import all_measurements, component, hosts, in_period, leaves6, nic, two_rails

LATE, STREAMS = ("latency",), ("bandwidth",)


def _slow() -> Iterator[RankScenario]:
    """Less bandwidth for a share of the time."""
    more = {"expected": "faulty"}
    cases = {
        "host -40 % in 10 % of the rounds": hosts(1, 0.4, incidence=of_rounds(0.1)),
        "host tx -50 % in 20 % of the rounds": hosts(1, 0.5, direction="tx", incidence=of_rounds(0.2)),
        "host -40 % in 6 stretches, 30 % of the time": hosts(1, 0.4, incidence=of_stretches(0.3, 6)),
        "host -30 % in half of the rounds": hosts(1, 0.3, incidence=of_rounds(0.5)),
        "two hosts -40 % in 20 % of the rounds": hosts(2, 0.4, incidence=of_rounds(0.2)),
        "cable -50 % in 20 % of the rounds": component("cable", "leaf3=spine2", loss=0.5, incidence=of_rounds(0.2)),
        "uplink one way -40 % in half of the rounds": component(
            "link", "leaf5>spine1", loss=0.4, incidence=of_rounds(0.5)
        ),
        "leaf -30 % in 8 stretches, 15 % of the time": component(
            "switch", "leaf4", loss=0.3, incidence=of_stretches(0.15, 8)
        ),
        "spine -40 % in 30 % of the rounds": component("switch", "spine3", loss=0.4, incidence=of_rounds(0.3)),
    }
    for name, faults in cases.items():
        yield RankScenario(f"share: {name}", leaves6, faults, quantities=STREAMS, **more)
    yield RankScenario("share: host -50 % in 5 % of the rounds, 3 repeats", leaves6,
                       hosts(1, 0.5, incidence=of_rounds(0.05)), quantities=STREAMS, repeats=3, **more)  # fmt: skip
    yield RankScenario("share: one of two NICs -50 % in 20 % of the rounds", two_rails,
                       nic(1, loss=0.5, incidence=of_rounds(0.2)), pattern="rails", quantities=STREAMS,
                       **more)  # fmt: skip


def _late() -> Iterator[RankScenario]:
    """More latency for a share of the time, or of the messages."""
    more = {"expected": "faulty", "quantities": LATE}
    cases = {
        "5 % of the messages of a host 20 us late": hosts(1, 0.0, added=2e-5, incidence=of_messages(0.05)),
        "2 % of the messages over a cable sent again, 1 ms late": component(
            "cable", "leaf3=spine2", added=1e-3, incidence=of_messages(0.02)
        ),
        "2 % of the messages of a leaf sent again, 0.2 ms late": component(
            "switch", "leaf4", added=1e-4, incidence=of_messages(0.02)
        ),
        "host +1 us in 20 % of the rounds": hosts(1, 0.0, added=1e-6, incidence=of_rounds(0.2)),
        "cable +2 us in 30 % of the rounds": component("cable", "leaf3=spine2", added=2e-6, incidence=of_rounds(0.3)),
        "spine +1 us in half of the rounds": component("switch", "spine2", added=0.5e-6, incidence=of_rounds(0.5)),
    }
    for name, faults in cases.items():
        yield RankScenario(f"share: {name}", leaves6, faults, **more)
    yield RankScenario("share: 10 % of the messages of one of two NICs 20 us late", two_rails,
                       nic(0, added=2e-5, incidence=of_messages(0.1)), pattern="rails", **more)  # fmt: skip


def _healthy() -> Iterator[RankScenario]:
    """Nothing is wrong: all hosts share what is slow now and then."""
    base = lognormal(0.006)
    tails = lognormal(0.02)
    period = in_period(all_measurements, 0.4, 0.1, 0.4)
    yield RankScenario("share: rounds in which all are slow, 8 %", leaves6, effects=lambda _: (base, bursts(0.08)),
                       passes=True)  # fmt: skip
    yield RankScenario("share: noise of 2 %, nothing slow", leaves6, effects=lambda _: (tails,), passes=True)
    yield RankScenario("share: a period in which all are 40 % slower", leaves6, effects=lambda _: (base, period),
                       passes=True)  # fmt: skip


TIME_SHARES = (*_slow(), *_late(), *_healthy())
