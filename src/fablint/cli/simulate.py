"""The verb `simulate`: a run of a simulated fabric with known faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fablint.cli.options import output_option, with_options
from fablint.cli.param_types import Sizes
from fablint.cli.session import Session, verb
from fablint.errors import UsageError
from fablint.text.units import percent

if TYPE_CHECKING:
    from fablint.model import Run
    from fablint.model.arrays import RankPairs
    from fablint.simulate import Fabric, SimulatedFabric, SimulatedRow, TrueFault

KINDS = ("fat-tree", "dragonfly", "torus", "mesh")  # those of fablint.simulate.fabrics.KINDS, which imports numpy
ROUTINGS = ("d-mod-k", "ecmp", "adaptive", "shortest", "tables")
KERNELS = ("latency", "bandwidth", "bibandwidth", "exchange")
NOISES = ("normal", "student3", "lognormal", "replay")
HOSTS, ROUNDS = 64, 24
STREAM_BYTES, MESSAGE_BYTES = 1 << 20, 8
SHARES = {"edge": 0.25, "local": 0.375, "global": 0.375}  # of the rounds: same switch, same group, far
MOST_HISTOGRAM_CELLS = 1 << 22
MOST_CELLS = 1 << 29  # of a full matrix


@dataclass(frozen=True)
class SimulationRequest:
    """The options."""

    kind: str
    hosts: int | None
    shape: str | None
    routing: str | None
    minimal_share: float | None
    rails: int
    ranks_per_host: int | None
    faults: tuple[str, ...]
    noise: str
    kernels: tuple[str, ...]
    sizes: tuple[int, ...] | None
    rounds: int | None
    full: bool
    histogram: bool
    serial: bool
    contention: bool
    seed: int

    @property
    def ranks_each(self) -> int:
        """Number of ranks on each host."""
        return self.ranks_per_host or self.rails


_options = with_options(
    click.option("--fabric", "kind", type=click.Choice(KINDS), default="fat-tree", show_default=True, help="Fabric."),
    click.option(
        "--host-count", "hosts", type=click.IntRange(1), metavar="N", help="Number of hosts, in a shape that fits [64]."
    ),
    click.option("--shape", metavar="AxB", help="ARITYxLEVELS, GROUPSxROUTERSxHOSTS, AxBxCxHOSTS, SWITCHESxHOSTS."),
    click.option("--routing", type=click.Choice(ROUTINGS), help="How messages choose their path [the topology's own]."),
    click.option(
        "--minimal-share", type=float, metavar="X", help="Share of messages on shortest paths (adaptive routing)."
    ),
    click.option("--rails", type=click.IntRange(1, 16), default=1, show_default=True, help="NICs of a host."),
    click.option("--ranks-per-host", type=click.IntRange(1, 256), metavar="N", help="Ranks on a host [one per NIC]."),
    click.option(
        "--fault", "faults", multiple=True, metavar="FAULT", help="COMPONENT:NAME[:tx|:rx]:EFFECT or random:K."
    ),
    click.option("--noise", type=click.Choice(NOISES), default="normal", show_default=True, help="Noise of the times."),
    click.option("--kernel", "kernels", type=click.Choice(KERNELS), multiple=True, help="[latency, bandwidth]"),
    click.option("--sizes", type=Sizes(), metavar="LIST", help="Message sizes [8 B for latency, 1 MiB for bandwidth]."),
    click.option("--rounds", type=click.IntRange(1, 1000), metavar="R", help="Rounds to measure [24]."),
    click.option("--full", is_flag=True, help="Measure every pair."),
    click.option("--histogram", is_flag=True, help="Store every pair's messages; adaptive: always."),
    click.option("--serial", is_flag=True, help="One pair at a time."),
    click.option("--contention", is_flag=True, help="Pairs that use a link at the same time share its bandwidth."),
    click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Same seed, same run."),
)


@verb(short_help="Simulate a fabric with known faults.")
@_options
@output_option
def simulate(session: Session, output: Path | None, **given: Any) -> None:
    """Write the run of a simulated fabric, with topology.yaml and truth.json in it.

    EFFECT is -20% (bandwidth), +2us (latency), duplex-20% (while both directions are in use), retry2% (messages
    retransmitted), flap30% (share of faulty rounds, with another EFFECT), noisy3, on=SWITCH (mis-cabled host).

    \b
    Examples:
      fablint simulate --host-count 4096 --fault host:h0012:tx:-20% --fault random:5 -o x.run
      fablint simulate --fabric dragonfly --shape 9x4x2 --fault 'link:g0r0>g0r1:-30%' -o y.run
      fablint analyse x.run
    """
    from fablint.workflows import measurement

    path = measurement.free_output(session.machine(), output)
    request = SimulationRequest(**given)
    fabric = _fabric(request)
    rounds = _rounds(fabric, request)
    simulated = _broken(fabric, rounds, request)
    rows = _rows(simulated, request)
    session.say(f"simulating {fabric.topology.source}: {len(fabric.hosts):,} hosts, {fabric.links:,} directed links")
    run = simulated.measure(rounds, rows)
    truth = simulated.truth(run)
    _write(path, run, fabric, truth)
    _print(session, path, simulated, run, truth)


def _fabric(request: SimulationRequest) -> Fabric:
    from fablint.simulate import multi_rail
    from fablint.simulate.fabrics.kinds import build, rerouted

    hosts = HOSTS if request.hosts is None and request.shape is None else request.hosts
    built = build(request.kind, hosts, request.shape)
    return multi_rail(rerouted(request.kind, built, request.routing, request.minimal_share), request.rails)


def _rounds(fabric: Fabric, request: SimulationRequest) -> list[RankPairs] | None:
    """Return the rounds that a check would measure, None for all pairs."""
    from fablint.model import Scope
    from fablint.plan.schedule.stratified import stratified_rounds
    from fablint.topology.routed_placement import RoutedPlacement

    if request.full:
        if request.rounds is not None:
            raise UsageError("--full measures every pair: --rounds belongs to runs that do not", "omit one of them")
        return None
    each = request.ranks_each
    hosts = [host for host in fabric.hosts for _ in range(each)]
    nics = [fabric.nics[rank % each % fabric.rails] for rank in range(len(hosts))]
    number = request.rounds or ROUNDS
    counts = {scope: round(number * SHARES[scope]) for scope in (Scope.EDGE, Scope.LOCAL)}
    counts[Scope.GLOBAL] = number - sum(counts.values())
    return stratified_rounds(RoutedPlacement.on_routes(hosts, fabric.topology, nics), request.seed, counts)


def _broken(fabric: Fabric, rounds: list[RankPairs] | None, request: SimulationRequest) -> SimulatedFabric:
    """Return the fabric with the named faults and random faults, each in components that no other fault is in."""
    import numpy as np

    from fablint.simulate import Noise, SimulatedFabric, random_faults
    from fablint.simulate.fault_syntax import parse_fault, random_count

    named = [parse_fault(text) for text in request.faults if random_count(text) is None]
    for fault in named:
        fault.links(fabric)
    count = sum(random_count(text) or 0 for text in request.faults)
    random, each = np.random.default_rng(request.seed), request.ranks_each
    drawn = random_faults(fabric, count, random, existing=named, rounds=rounds, ranks_per_host=each)
    noise = Noise(request.noise)  # type: ignore[arg-type]
    return SimulatedFabric(fabric, (*named, *drawn), noise, request.seed, each, request.contention)


def _rows(simulated: SimulatedFabric, request: SimulationRequest) -> list[SimulatedRow]:
    from fablint.simulate import SimulatedRow
    from fablint.simulate.messages.times import STATISTICS
    from fablint.simulate.simulated_rows import STREAMS

    cells = simulated.ranks * (simulated.ranks if request.full else request.rounds or ROUNDS)
    histogram = request.histogram or (
        simulated.actual_routing.adaptive and not (request.full and cells > MOST_HISTOGRAM_CELLS)
    )
    if cells > MOST_CELLS or (histogram and cells > MOST_HISTOGRAM_CELLS):
        prefix = "histograms of " if histogram else ""
        less = "omit --full" if request.full else "use fewer hosts or rounds"
        raise UsageError(f"{prefix}{cells:,} measurements do not fit into memory", less)
    return [
        SimulatedRow(
            kernel,  # type: ignore[arg-type]
            request.sizes or ((STREAM_BYTES if kernel in STREAMS else MESSAGE_BYTES),),
            "serial" if request.serial else "parallel",
            histogram,
            STATISTICS if histogram or not request.full else ("median",),
        )
        for kernel in request.kernels or KERNELS[:2]
    ]


def _write(path: Path, run: Run, fabric: Fabric, truth: Sequence[TrueFault]) -> None:
    from fablint.simulate import write_truth
    from fablint.store import write_run
    from fablint.workflows import run_files

    write_run(path, run)
    write_truth(path, truth)
    run_files.save_topology(fabric.topology, path)


def _print(session: Session, path: Path, simulated: SimulatedFabric, run: Run, truth: Sequence[TrueFault]) -> None:
    from fablint.workflows.run_files import TOPOLOGY

    fabric = simulated.fabric
    lines = [
        f"{path}: {fabric.topology.source}, {len(fabric.hosts):,} hosts, {fabric.links:,} directed links",
        *(f"  {row.name}: {row.facts.schedule.rounds:,} rounds, {row.pattern}" for row in run.rows),
        *(_line(fault) for fault in truth),
        *(["  no fault"] if not truth else []),
        f"Analyse it: fablint analyse {path}",
    ]
    facts = {
        "run": str(path),
        "topology": str(path / TOPOLOGY),
        "hosts": len(fabric.hosts),
        "links": fabric.links,
        "rounds": {row.name: row.facts.schedule.rounds for row in run.rows},
        "faults": [fault.model_dump(mode="json") for fault in truth],
    }
    session.result("\n".join(lines), facts)


def _line(fault: TrueFault) -> str:
    description = [fault.component.text, fault.direction or "", fault.kind]
    description += [percent(fault.effect)] if fault.effect is not None else []
    description += [f"+{fault.added_latency_s * 1e6:g} us"] if fault.added_latency_s else []
    unseen = "" if fault.visible or fault.kind == "noise" else " (no measured pair is affected)"
    return f"  fault: {' '.join(word for word in description if word)}{unseen}"
