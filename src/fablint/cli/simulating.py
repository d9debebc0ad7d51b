"""The verb `simulate`: a run of a fabric that does not exist, with faults that are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fablint.cli.common import Session, output_option, verb
from fablint.errors import UsageError

if TYPE_CHECKING:
    from fablint.model import Run
    from fablint.simulate import Fabric, SimulatedFabric, SimulatedRow, TrueFault
    from fablint.simulate.rounds import Pairs

KINDS = ("fat-tree", "dragonfly", "torus", "mesh")  # those of fablint.simulate.fabrics.KINDS, which brings numpy
ROUTINGS = ("d-mod-k", "ecmp", "adaptive", "shortest", "tables")
KERNELS = ("latency", "bandwidth", "bibandwidth", "exchange")
NOISES = ("normal", "student3", "lognormal", "replay")
HOSTS, ROUNDS = 64, 24
STREAM_BYTES, MESSAGE_BYTES = 1 << 20, 8
SHARES = {"edge": 0.25, "local": 0.375, "global": 0.375}  # of the rounds: same switch, same group, far
MOST_HISTOGRAM_CELLS = 1 << 22
MOST_CELLS = 1 << 29  # of a full matrix


@dataclass(frozen=True)
class Wanted:
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
    sizes: str | None
    rounds: int | None
    full: bool
    histogram: bool
    serial: bool
    contention: bool
    seed: int

    @property
    def ranks_each(self) -> int:
        """Ranks on a host."""
        return self.ranks_per_host or self.rails


OPTIONS = (
    click.option("--topology", "kind", type=click.Choice(KINDS), default="fat-tree", show_default=True, help="Fabric."),
    click.option("--hosts", type=int, metavar="N", help="Number of hosts, in a shape that fits [64]."),
    click.option("--shape", metavar="AxB", help="ARITYxLEVELS, GROUPSxROUTERSxHOSTS, AxBxCxHOSTS, SWITCHESxHOSTS."),
    click.option("--routing", type=click.Choice(ROUTINGS), help="How messages choose their way [the topology's own]."),
    click.option("--minimal-share", type=float, metavar="X", help="Messages on a shortest way, adaptive routing."),
    click.option("--rails", type=click.IntRange(1, 16), default=1, show_default=True, help="NICs of a host."),
    click.option("--ranks-per-host", type=click.IntRange(1, 256), metavar="N", help="Ranks on a host [one per NIC]."),
    click.option("--fault", "faults", multiple=True, metavar="FAULT", help="PART:NAME[:tx|:rx]:WHAT, or random:K."),
    click.option("--noise", type=click.Choice(NOISES), default="normal", show_default=True, help="How times scatter."),
    click.option("--kernel", "kernels", type=click.Choice(KERNELS), multiple=True, help="[latency, bandwidth]"),
    click.option("--sizes", metavar="LIST", help="Message sizes [8, and 1M of streams]."),
    click.option("--rounds", type=click.IntRange(1, 1000), metavar="R", help="Rounds to measure [24]."),
    click.option("--full", is_flag=True, help="Measure every pair."),
    click.option("--histogram", is_flag=True, help="Store every pair's messages; always in rounds if adaptive."),
    click.option("--serial", is_flag=True, help="One pair at a time."),
    click.option("--contention", is_flag=True, help="Pairs that share a link at a time share its bandwidth."),
    click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Same seed, same run."),
)


def wanted_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """All of them, in that order."""
    for option in reversed(OPTIONS):
        verb = option(verb)
    return verb


@verb(short_help="A run of a simulated fabric with known faults.")
@wanted_options
@output_option
def simulate(session: Session, output: Path | None, **given: Any) -> None:
    """Write the run of a simulated fabric, with topology.yaml and truth.json in it.

    WHAT is -20% (bandwidth), +2us (latency), duplex-20% (while both ways are in use), retry2% (messages sent again),
    flap30% (sick in so many rounds, with another WHAT), noisy3, on=SWITCH (mis-cabled host).

    \b
    Examples:
      fablint simulate --hosts 4096 --fault host:h0012:tx:-20% --fault random:5 -o x.run
      fablint simulate --topology dragonfly --shape 9x4x2 --fault 'link:g0r0>g0r1:-30%' -o y.run
      fablint analyse x.run
    """
    from fablint.workflows import flow

    path = flow.free_output(session.machine(), output)
    wanted = Wanted(**given)
    fabric = _fabric(wanted)
    rounds = _rounds(fabric, wanted)
    simulated = _broken(fabric, rounds, wanted)
    rows = _rows(simulated, wanted)
    session.say(f"simulating {fabric.topology.source}: {len(fabric.hosts):,} hosts, {fabric.links:,} directed links")
    run = simulated.measure(rounds, rows)
    truth = simulated.truth(run)
    _write(path, run, fabric, truth)
    _tell(session, path, simulated, run, truth)


def _fabric(wanted: Wanted) -> Fabric:
    from fablint.simulate import multi_rail
    from fablint.simulate.fabrics.kinds import build, rerouted

    hosts = HOSTS if wanted.hosts is None and wanted.shape is None else wanted.hosts
    built = build(wanted.kind, hosts, wanted.shape)
    return multi_rail(rerouted(wanted.kind, built, wanted.routing, wanted.minimal_share), wanted.rails)


def _rounds(fabric: Fabric, wanted: Wanted) -> list[Pairs] | None:
    """The rounds to measure, None for all pairs: those that a check would take."""
    from fablint.model import Scope
    from fablint.plan.schedule.seats import seats_of
    from fablint.plan.schedule.stratified import stratified_rounds

    if wanted.full:
        if wanted.rounds is not None:
            raise UsageError(
                "--full measures every pair: --rounds belongs to runs that do not", "leave one of them out"
            )
        return None
    each = wanted.ranks_each
    hosts = [host for host in fabric.hosts for _ in range(each)]
    nics = [fabric.nics[rank % each % fabric.rails] for rank in range(len(hosts))]
    number = wanted.rounds or ROUNDS
    counts = {scope: round(number * SHARES[scope]) for scope in (Scope.EDGE, Scope.LOCAL)}
    counts[Scope.GLOBAL] = number - sum(counts.values())
    return stratified_rounds(seats_of(hosts, fabric.topology, nics), wanted.seed, counts)


def _broken(fabric: Fabric, rounds: list[Pairs] | None, wanted: Wanted) -> SimulatedFabric:
    """With the faults that were named, and those drawn by chance, in parts that none of the others is in."""
    import numpy as np

    from fablint.simulate import Noise, SimulatedFabric, random_faults
    from fablint.simulate.fault_syntax import parse_fault, random_count

    named = [parse_fault(text) for text in wanted.faults if random_count(text) is None]
    for fault in named:
        fault.links(fabric)
    count = sum(random_count(text) or 0 for text in wanted.faults)
    random, each = np.random.default_rng(wanted.seed), wanted.ranks_each
    drawn = random_faults(fabric, count, random, beside=named, rounds=rounds, ranks_per_host=each)
    noise = Noise(wanted.noise)  # type: ignore[arg-type]
    return SimulatedFabric(fabric, (*named, *drawn), noise, wanted.seed, each, wanted.contention)


def _rows(simulated: SimulatedFabric, wanted: Wanted) -> list[SimulatedRow]:
    from fablint.plan import parse_sizes
    from fablint.simulate import SimulatedRow
    from fablint.simulate.message_times import STATISTICS
    from fablint.simulate.simulated_rows import STREAMS

    cells = simulated.ranks * (simulated.ranks if wanted.full else wanted.rounds or ROUNDS)
    histogram = wanted.histogram or (simulated.nature.adaptive and not wanted.full)
    if cells > MOST_CELLS or (histogram and cells > MOST_HISTOGRAM_CELLS):
        kept = "histograms of " if histogram else ""
        less = "leave --full out" if wanted.full else "take fewer hosts or rounds"
        raise UsageError(f"{kept}{cells:,} measurements do not fit into memory", less)
    sizes = parse_sizes(wanted.sizes) if wanted.sizes else None
    return [
        SimulatedRow(
            kernel,  # type: ignore[arg-type]
            sizes or ((STREAM_BYTES if kernel in STREAMS else MESSAGE_BYTES),),
            "serial" if wanted.serial else "parallel",
            histogram,
            STATISTICS if histogram or not wanted.full else ("median",),
        )
        for kernel in wanted.kernels or KERNELS[:2]
    ]


def _write(path: Path, run: Run, fabric: Fabric, truth: Sequence[TrueFault]) -> None:
    from fablint.simulate import write_truth
    from fablint.store import write_run
    from fablint.workflows import flow

    write_run(path, run)
    write_truth(path, truth)
    flow.keep_topology(fabric.topology, path)


def _tell(session: Session, path: Path, simulated: SimulatedFabric, run: Run, truth: Sequence[TrueFault]) -> None:
    from fablint.workflows.run_files import TOPOLOGY

    fabric = simulated.fabric
    lines = [
        f"{path}: {fabric.topology.source}, {len(fabric.hosts):,} hosts, {fabric.links:,} directed links",
        *(f"  {row.name}: {int(row.attributes['rounds']):,} rounds, {row.pattern}" for row in run.rows),
        *(_line(fault) for fault in truth),
        *(["  no fault"] if not truth else []),
        f"Judge it: fablint analyse {path}",
    ]
    facts = {
        "format": 1,
        "run": str(path),
        "topology": str(path / TOPOLOGY),
        "hosts": len(fabric.hosts),
        "links": fabric.links,
        "rounds": {row.name: int(row.attributes["rounds"]) for row in run.rows},
        "faults": [fault.facts() for fault in truth],
    }
    session.result("\n".join(lines), facts)


def _line(fault: TrueFault) -> str:
    what = [fault.component, fault.name, fault.direction or "", fault.kind]
    what += [f"{fault.effect:+.1%}"] if fault.effect is not None else []
    what += [f"+{fault.added_latency_s * 1e6:g} us"] if fault.added_latency_s else []
    unseen = "" if fault.visible or fault.kind == "noise" else " (nothing that was measured suffers from it)"
    return f"  fault: {' '.join(word for word in what if word)}{unseen}"
