"""A note on NICs of the fabric that are up and carried no message of the run.

To measure one NIC of each host is a decision of the user, and no reason for a verdict other than pass.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from fablint.analyse.observations.counter_steps import count_steps
from fablint.analyse.settings import Settings
from fablint.model import Note, Run
from fablint.model.figures.nic_traffic import packets
from fablint.model.names import natural
from fablint.snapshot.fabric_nics import message_nics
from fablint.text import notes as noted


def unmeasured_nics(run: Run, settings: Settings) -> list[Note]:
    """Return a note such as `hsn1 of 8 hosts was not measured`; none where each NIC carried messages."""
    if len(run.hosts) < 2:
        return []
    near: dict[str, set[str]] = defaultdict(set)
    for host, nic in zip(run.rank_host, run.facts.rank_nic, strict=False):
        near[host].add(nic)
    hosts: dict[str, int] = defaultdict(int)
    lists, list_of = run.facts.nic_lists
    able_of = [message_nics(nics) for nics in lists]
    for host, number in zip(run.hosts, list_of, strict=True):
        able = able_of[number]
        carried = _carried(run, host, able, near[host], settings)
        for nic in able if carried else ():
            hosts[nic] += nic not in carried
    unmeasured = [(nic, count) for nic, count in sorted(hosts.items(), key=lambda entry: natural(entry[0])) if count]
    if not unmeasured:
        return []
    nics, counts = zip(*unmeasured, strict=True)
    return [noted.nics_not_measured(nics=nics, hosts=counts, measurable=run.facts.simulated is None)]


def _carried(run: Run, host: str, nics: Sequence[str], near: set[str], settings: Settings) -> set[str]:
    """Return the NICs of a host that carried messages: by their counters, else those that ranks were placed next to.

    A NIC that carries other traffic only has few packets beside those that carry the messages.
    """
    counters = run.facts.counters
    steps = {nic: count_steps(counters, host, nic) for nic in nics} if counters.before and counters.after else {}
    sent = {nic: packets(step.by, 0) for nic, step in steps.items() if step is not None}
    counted = {nic: count for nic, count in sent.items() if count is not None}
    if len(counted) == len(nics) and any(counted.values()):
        least = settings.idle_nic_share * max(counted.values())
        return {nic for nic, count in counted.items() if count > least}
    return near & set(nics)
