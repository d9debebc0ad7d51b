"""What is recorded of hosts: facts that separate kinds of hosts from each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fablint.analyse.null_model.host_populations import Populations
from fablint.model import EvidenceRecord, Placement, Run
from fablint.model.facts.run_attributes import HostNic
from fablint.text import evidence as seen

Facts = Mapping[str, Sequence[str]]  # what is recorded of each host, by the name of the fact
HostFacts = Mapping[str, Mapping[str, str]]  # by host and by name of the fact
NIC_SPEED = "NIC speed"
MOST_VALUES = 3  # of a fact that a finding spells out


def facts_of(run: Run, placement: Placement, host_facts: HostFacts) -> Facts:
    """Return what the run records of its hosts: one word per host, empty where it says nothing; the place of a host
    last.
    """
    lists, list_of = run.facts.nic_lists

    def of_nics(word: Callable[[HostNic], str]) -> list[str]:
        words = ["/".join(sorted({word(nic) for nic in nics})) for nics in lists]
        return [words[number] for number in list_of]

    cores = dict(zip(run.rank_host, run.facts.rank_cores, strict=False))
    facts = {
        NIC_SPEED: of_nics(_speed),
        "NIC type": of_nics(lambda nic: nic.kind),
        "MTU": of_nics(lambda nic: "" if nic.mtu is None else str(nic.mtu)),
        "CPUs of a rank": [str(cores.get(host, "")) for host in placement.hosts],
        **_of_snapshots(host_facts, placement),
        "group": ["/".join(names) for names in placement.host_groups],
        "switch": ["/".join(names) for names in placement.host_switches],
    }
    return {name: values for name, values in facts.items() if any(values)}


def _of_snapshots(host_facts: HostFacts, placement: Placement) -> Facts:
    """Return the same of what the hosts said before they were measured: firmware, driver, CPU model, image."""
    names = dict.fromkeys(name for facts in host_facts.values() for name in facts)
    return {name: [host_facts.get(host, {}).get(name, "") for host in placement.hosts] for name in names}


def _speed(nic: HostNic) -> str:
    return f"{nic.speed_mbps} Mbit/s" if nic.speed_mbps else ""


@dataclass(frozen=True)
class Separation:
    """A fact whose values never occur in two populations."""

    name: str
    values: tuple[tuple[str, ...], ...]  # of each population

    @property
    def evidence(self) -> EvidenceRecord:
        """The fact, and its values where these are few."""
        if any(len(values) > MOST_VALUES for values in self.values[1:]):
            return seen.separating_fact_many(self.name)
        return seen.separating_fact(self.name, " and ".join(", ".join(values) for values in self.values[1:]))


def separating(populations: Populations, facts: Facts) -> Separation | None:
    """The first fact whose values never occur in two populations, and that has fewer values than hosts."""
    for name, values in facts.items():
        recorded = np.array(values)
        each = [sorted(set(recorded[populations.members(number)].tolist())) for number in range(populations.count)]
        distinct = set().union(*map(set, each))
        if sum(map(len, each)) == len(distinct) and "" not in distinct and len(distinct) <= recorded.size / 2:
            return Separation(name, tuple(map(tuple, each)))
    return None


def are_slow_by_themselves(populations: Populations, facts: Facts, most: float) -> bool:
    """Return whether the hosts of the slower populations are slow one by one, and not as a kind.

    So they are if no recorded fact separates them, although it is recorded that all NICs are equally fast, if they are
    at most half of the hosts, and if they lose more than `most`, a log-effect.
    """
    speeds = set(facts.get(NIC_SPEED, ("",)))
    slower, hosts = (int(np.count_nonzero(populations.label >= least)) for least in (1, 0))
    is_recorded = len(speeds) == 1 and "" not in speeds
    return (
        is_recorded
        and not populations.is_within(most)
        and 2 * slower <= hosts
        and separating(populations, facts) is None
    )
