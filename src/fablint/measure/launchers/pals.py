"""HPE Cray's launchers: PALS (mpiexec, palsrun, aprun under PBS) and ALPS's aprun before it.

Untested: written from the published documentation of sites.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence

from fablint.measure.launchers.launcher import Death
from fablint.model import Slots

# "x4006c0s6b0n0.hsn.cm.site.gov: rank 256 died from signal 11", "x1001c6s2b1n1: rank 3 exited with code 137".
_ENDED = re.compile(
    r"^(?P<host>\S+): rank (?P<rank>\d+) (?:died from (?P<signal>signal \d+)|exited with code (?P<code>\d+))"
)
_NID = re.compile(r"nid0*(\d+)")


class Pals:
    """PALS: `--hosts` lists a host once, and every host of a set has the same number of ranks."""

    name = "HPE PALS"
    stop_signal = signal.SIGUSR2
    pmi = ("cray_shasta", "pmi2", "pmix")

    def recognises(self, version: str) -> bool:
        return re.match(r"(mpiexec|palsrun) version \d", version.strip()) is not None

    def arguments(self, ranks: int, *, root: bool) -> list[str]:
        return ["-n", str(ranks)]

    def placed(self, slots: Sequence[Slots], command: Sequence[str], *, root: bool) -> list[str]:
        words: list[str] = []
        for hosts, each in _groups_of_equal_size(slots):
            colon = [":"] if words else []
            words += [*colon, *self.host_options(hosts, each), *command]
        return words

    def host_options(self, hosts: Sequence[str], each: int) -> list[str]:
        """Options that start `each` ranks on each of `hosts`."""
        return ["-n", str(each * len(hosts)), "--ppn", str(each), "--hosts", ",".join(hosts), "--cpu-bind", "none"]

    def environ(self, *, oversubscribed: bool, unbound: bool) -> dict[str, str]:
        return {}

    def deaths(self, lines: Sequence[str]) -> list[Death]:
        matches = (match for match in map(_ENDED.match, lines) if match and match["code"] != "0")
        return [
            Death(
                int(item["rank"]),
                None,
                item["host"],
                f"was ended by {item['signal']}" if item["signal"] else f"ended with status {item['code']}",
            )
            for item in matches
        ]


class Aprun(Pals):
    """aprun, of ALPS and of PALS."""

    name = "Cray aprun"

    def recognises(self, version: str) -> bool:
        return re.match(r"aprun (\(ALPS\)|version \d)", version.strip()) is not None

    def host_options(self, hosts: Sequence[str], each: int) -> list[str]:
        numbers = [_NID.fullmatch(host) for host in hosts]  # ALPS numbers hosts
        named = [number[1] if number else host for number, host in zip(numbers, hosts, strict=True)]
        return ["-n", str(each * len(hosts)), "-N", str(each), "-L", ",".join(named), "-cc", "none"]


def _groups_of_equal_size(slots: Sequence[Slots]) -> list[tuple[list[str], int]]:
    """Groups of consecutive hosts with the same number of ranks."""
    sets: list[tuple[list[str], int]] = []
    for slot in slots:
        if sets and sets[-1][1] == slot.ranks and slot.host not in sets[-1][0]:
            sets[-1][0].append(slot.host)
        else:
            sets.append(([slot.host], slot.ranks))
    return sets
