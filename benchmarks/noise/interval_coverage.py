"""How often the 95 % interval of a FAULT contains the loss that the fault causes: one line per component and noise.

    python benchmarks/noise/interval_coverage.py [--seeds 100] [--first 1] [--processes 2] [--only 'host tx']

One component of a mesh of switches is slow; the run is judged before any follow-up measurement. The truth is the median
ratio of the times with and without the fault over the pairs that cross it, without noise and on hosts that are equal.
`named` counts the runs with a FAULT of the component, `covered` those whose interval contains the truth, `above` those
whose interval claims a larger loss, `width` the mean width of the interval, `error` the mean distance of the middle
from the truth, both relative to the time of a message. Hosts differ by 0.5 % in all cases. Noise: `normal` and `heavy`
(Student's t with 3 degrees of freedom) of each measurement; `launch`: a value per pair that both directions and all
sizes share; `load`: each switch slows what enters and leaves it by a slowly varying factor.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np

from fablint.analyse import diagnose
from fablint.model import Finding, Row, Run
from fablint.simulate import Fabric, Fault, Noise, SimulatedFabric, SimulatedRow, full_mesh
from fablint.simulate.fault_syntax import parse_fault
from fablint.simulate.rounds import all_rounds

FABRICS = {"16 hosts": (4, 4), "64 hosts": (8, 8)}
STREAM, ROUND_TRIP = SimulatedRow("bandwidth", (1 << 20,)), SimulatedRow("latency", (8,))
SIZES = SimulatedRow("bandwidth", (1 << 18, 1 << 20, 1 << 22))
COMPONENTS = {
    "host tx -20 %": ("host:{host}:tx:-20%", STREAM),
    "host tx -10 %": ("host:{host}:tx:-10%", STREAM),
    "host -20 %, 3 sizes": ("host:{host}:both:-20%", SIZES),
    "host +0.4 us": ("host:{host}:both:+0.4us", ROUND_TRIP),
    "cable -25 %": ("cable:s1=s2:-25%", STREAM),
    "switch -20 %": ("switch:s1:-20%", STREAM),
}
QUIET = {"spike_share": 0.0, "host_spread": 0.005}
NOISES = {
    "normal": Noise("normal", 0.013, **QUIET),
    "heavy": Noise("student3", 0.04, **QUIET),
    "launch": Noise("normal", 0.01, **QUIET),
    "load": Noise("normal", 0.01, **QUIET),
}
LAUNCH, LOAD, MEMORY = 0.025, 0.015, 0.1  # standard deviations of log times, share of a row after which load is new


@dataclass(frozen=True)
class Named:
    """What a run states of the faulty component, as log-effects on time."""

    low: float
    middle: float
    high: float
    truth: float


def log_effect(relative: float, row: Row) -> float:
    """Return the log-effect on time of a relative change of the quantity."""
    return -math.log1p(relative) if row.quantity == "bandwidth" else math.log1p(relative)


def disturb(row: Row, fabric: Fabric, name: str, rng: np.random.Generator) -> None:
    """Multiply the times of a row by what a launch or the load of others does."""
    partner, times = row.arrays["dst"], row.arrays["time_median"]
    hosts, rounds = partner.shape
    sender, receiver = np.broadcast_to(np.arange(hosts)[:, None], partner.shape), np.maximum(partner, 0)
    if name == "launch":
        values = np.triu(rng.standard_normal((hosts, hosts)), 1)
        factor = LAUNCH * (values + values.T)[sender, receiver]
    else:
        load = rng.standard_normal((len(fabric.topology.switches), rounds))
        memory = math.exp(-1 / (MEMORY * rounds))
        for at in range(1, rounds):
            load[:, at] = memory * load[:, at - 1] + math.sqrt(1 - memory**2) * load[:, at]
        switch, at = fabric.port_switch, np.arange(rounds)
        crosses = switch[sender] != switch[receiver]
        factor = LOAD * np.where(crosses, load[switch[sender], at] + load[switch[receiver], at], 0.0)
    times *= np.exp(factor)[..., None]


def drawn_fault(words: str, fabric: Fabric, seed: int) -> Fault:
    """Return the fault of a text, in which `{host}` stands for a host that the seed draws."""
    host = fabric.hosts[int(np.random.default_rng([seed, 17]).integers(len(fabric.hosts)))]
    return parse_fault(words.format(host=host))


def in_rounds(fabric: Fabric, fault: Fault, row: SimulatedRow, noise: Noise, seed: int) -> Run:
    """Return a run of all pairs in rounds, whose order the seed draws."""
    in_order = all_rounds(len(fabric.hosts))
    rounds = [in_order[at] for at in np.random.default_rng([seed, 13]).permutation(len(in_order))]
    return SimulatedFabric(fabric, (fault,), noise, seed=seed).measure(rounds, (row,))


def measured_run(fabric: Fabric, fault: Fault, row: SimulatedRow, noise: str, seed: int) -> Run:
    """Return a run of all pairs in rounds with one faulty component."""
    run = in_rounds(fabric, fault, row, NOISES[noise], seed)
    if noise in ("normal", "heavy"):
        return run
    [measured] = run.rows
    measured = replace(measured, arrays={name: np.array(values) for name, values in measured.arrays.items()})
    disturb(measured, fabric, noise, np.random.default_rng([seed, 11]))
    return replace(run, rows=(measured,))


def truth_of(fabric: Fabric, fault: Fault, row: SimulatedRow) -> float:
    """Return the log-effect of the fault on the median pair that crosses it, at the last size."""
    silent = Noise(scale=0.0, spike_share=0.0, host_spread=0.0, link_spread=0.0, message_scale=0.0)
    times = [
        SimulatedFabric(fabric, faults, silent).measure(None, (row,)).rows[0].arrays["time_median"][..., -1]
        for faults in ((), (fault,))
    ]
    ratio = np.log(times[1] / times[0])
    return float(np.median(ratio[ratio > 1e-6]))


def named_interval(fabric_name: str, component: str, noise: str, seed: int) -> Named | None:
    """Return the interval of the FAULT that names the component; None without one."""
    fabric = full_mesh(*FABRICS[fabric_name])
    words, row = COMPONENTS[component]
    fault = drawn_fault(words, fabric, seed)
    run = measured_run(fabric, fault, row, noise, seed)
    for finding in diagnose(run, fabric.topology).verdict.findings:
        if finding.state == "FAULT" and is_about(finding, fault) and finding.interval is not None:
            assert finding.effect is not None
            ends = sorted(log_effect(end, run.rows[0]) for end in finding.interval)
            return Named(ends[0], log_effect(finding.effect, run.rows[0]), ends[1], truth_of(fabric, fault, row))
    return None


def is_about(finding: Finding, fault: Fault) -> bool:
    """Return whether a finding names the faulty component."""
    return set(finding.components[0].nodes) == set(fault.component.nodes)


def line(name: str, seeds: int, results: Sequence[Named | None]) -> str:
    """Return one line of the table."""
    named = [result for result in results if result is not None]
    count = max(1, len(named))
    covered = sum(result.low <= result.truth <= result.high for result in named)
    above = sum(result.low > result.truth for result in named)
    width = sum(result.high - result.low for result in named) / count
    error = sum(abs(result.middle - result.truth) for result in named) / count
    bias = sum(result.middle - result.truth for result in named) / count
    return (
        f"{name:<40} {seeds:>5} {len(named):>5} {covered / count:>7.1%} {above / count:>6.1%} "
        f"{width:>6.2%} {error:>6.2%} {bias:>+7.2%}"
    )


def read_options(description: str | None, seeds: int) -> argparse.Namespace:
    """Return the options of a table of cases."""
    options = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", type=int, default=seeds)
    options.add_argument("--first", type=int, default=1, help="the first seed")
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--only", action="append", help="cases whose name contains this; may be given several times")
    return options.parse_args()


def chosen_cases(chosen: argparse.Namespace, parts: Iterable[str], noises: Iterable[str]) -> list[tuple[str, str, str]]:
    """Return fabric, component and noise of the cases that the options choose."""
    return [
        case
        for case in product(FABRICS, parts, noises)
        if not chosen.only or any(word in ", ".join(case) for word in chosen.only)
    ]


def main() -> None:
    """Print the table."""
    chosen = read_options(__doc__, 100)
    print(f"{'case':<40} seeds named covered  above  width  error    bias")
    everything: list[Named | None] = []
    seeds = range(chosen.first, chosen.first + chosen.seeds)
    with ProcessPoolExecutor(chosen.processes) as pool:
        for case in chosen_cases(chosen, COMPONENTS, NOISES):
            results = list(pool.map(partial(named_interval, *case), seeds, chunksize=4))
            everything += results
            print(line(", ".join(case), chosen.seeds, results), flush=True)
    print(line("all", len(everything), everything))


if __name__ == "__main__":
    main()
