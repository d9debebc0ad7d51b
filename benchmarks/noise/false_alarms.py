"""Rates of false findings on healthy fabrics and of named faults: one line per fabric, noise and fault.

    python benchmarks/noise/false_alarms.py [--seeds 20] [--hosts 64,1024] [--processes 2] [--only healthy]

`exact` counts the seeds in which the FAULT findings are the truth and nothing else; `false` those in which some
FAULT finding is not the truth; `other` those with SUSPECT or CONFOUNDED findings.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

from fablint.analyse import diagnose
from fablint.model import ComponentRef, Finding, State, Verdict
from fablint.simulate import Fabric, Fault, Noise, full_mesh, simulate

NOISES = ("normal", "student3", "lognormal")


@dataclass(frozen=True)
class Scenario:
    """Faults by fabric, and the (component, name, direction) that must be named for them."""

    name: str
    faults: Callable[[Fabric], list[Fault]]

    def truth(self, fabric: Fabric) -> set[tuple[str, str, str | None]]:
        """What the FAULT findings should be. A directed link carries its direction in its name."""
        return {
            (fault.component.kind, fault.component.label, None if fault.component.kind == "link" else fault.direction)
            for fault in self.faults(fabric)
        }


def _host(fabric: Fabric, direction: str = "both", factor: float = 0.8) -> Fault:
    return Fault(ComponentRef.of("host", fabric.hosts[5]), direction, bandwidth_factor=factor)  # type: ignore[arg-type]


def _cable(fabric: Fabric, position: int = 3) -> tuple[str, str]:
    cable = fabric.topology.cables[position]
    return cable.a, cable.b


SCENARIOS = (
    Scenario("healthy", lambda _: []),
    Scenario("host -20 %", lambda f: [_host(f)]),
    Scenario("host tx -20 %", lambda f: [_host(f, "tx")]),
    Scenario("host rx -20 %", lambda f: [_host(f, "rx")]),
    Scenario("host -12 %", lambda f: [_host(f, factor=0.88)]),
    Scenario("cable -40 %", lambda f: [Fault(ComponentRef.of("cable", *_cable(f)), bandwidth_factor=0.6)]),
    Scenario("link -40 %", lambda f: [Fault(ComponentRef.of("link", *reversed(_cable(f))), bandwidth_factor=0.6)]),
    Scenario(
        "switch -20 %",
        lambda f: [Fault(ComponentRef.of("switch", next(iter(f.topology.switches))), bandwidth_factor=0.8)],
    ),
    Scenario(
        "host -30 % and its link -40 %",
        lambda f: [_host(f, factor=0.7), Fault(ComponentRef.of("link", *_cable(f, 0)), bandwidth_factor=0.6)],
    ),
)


def named(verdict: Verdict, state: State = State.FAULT) -> set[tuple[str, str, str | None]]:
    """Component, name and direction of the findings in this state."""

    def key(finding: Finding) -> tuple[str, str, str | None]:
        return finding.component, finding.name, finding.direction

    return {key(finding) for finding in verdict.findings if finding.state is state}


def trial(scenario: int, hosts: int, noise: str, seed: int) -> tuple[bool, bool, bool]:
    """One simulated run judged: exactly the truth, something false, something else than FAULT and OK."""
    fabric = mesh(hosts)
    run = simulate(fabric, faults=SCENARIOS[scenario].faults(fabric), noise=Noise(noise), seed=seed)  # type: ignore[arg-type]
    verdict = diagnose(run, fabric.topology).verdict
    result, truth = named(verdict), SCENARIOS[scenario].truth(fabric)
    other = named(verdict, State.SUSPECT) | named(verdict, State.CONFOUNDED)
    return result == truth, bool(result - truth), bool(other)


def mesh(hosts: int) -> Fabric:
    """A full mesh with about as many switches as hosts on each."""
    per_switch = 1 << (hosts.bit_length() // 2)
    return full_mesh(hosts // per_switch, per_switch)


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", type=int, default=20)
    options.add_argument("--hosts", default="64,1024")
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--only", default="", help="scenarios whose name contains this")
    chosen = options.parse_args()
    print(f"{'fault':<30} {'hosts':>5} {'noise':<10} {'seeds':>5} {'exact':>5} {'false':>5} {'other':>5} {'s/run':>6}")
    with ProcessPoolExecutor(chosen.processes) as pool:
        for number, scenario in enumerate(SCENARIOS):
            if chosen.only not in scenario.name:
                continue
            for hosts in map(int, chosen.hosts.split(",")):
                for noise in NOISES:
                    started = time.perf_counter()
                    results = list(pool.map(partial(trial, number, hosts, noise), range(1, chosen.seeds + 1)))
                    seconds = (time.perf_counter() - started) * chosen.processes / chosen.seeds
                    exact, false, other = (sum(result[column] for result in results) for column in range(3))
                    print(
                        f"{scenario.name:<30} {hosts:>5} {noise:<10} {chosen.seeds:>5} "
                        f"{exact:>5} {false:>5} {other:>5} {seconds:>6.2f}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
