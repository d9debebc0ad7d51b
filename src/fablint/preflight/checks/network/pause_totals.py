"""Check of the pause frames of NICs since the boot, compared with those of similar hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fablint.model.preflight_results import Result
from fablint.preflight.check import Check
from fablint.preflight.host import Host
from fablint.preflight.judges import among_peers
from fablint.preflight.judges.growth import third_quartile
from fablint.preflight.judges.outputs import NO_INTERFACE, without_answer
from fablint.snapshot.parsers.driver_counters import PauseGrowth, pause_totals
from fablint.snapshot.parsers.kernel_log import DAY_S

_FEWEST_PEERS, _TIMES = 4, 10
_A_DAY = 10_000  # frames


def _totals(check: Check, host: Host) -> Mapping[str, Result | PauseGrowth]:
    pause_growths: dict[str, Result | PauseGrowth] = {}
    for nic in host.interfaces:
        output = host.command(f"ethtool-S-later/{nic.name}")
        totals = pause_totals(output.text) if output.status == 0 else None
        why = without_answer(output) if output.status else "its driver does not count pauses"
        pause_growths[nic.name] = totals or check.skip(host.name, nic.name, f"ethtool: {why}")
    return pause_growths


def _compared(check: Check, nic: str, like: Sequence[tuple[Host, PauseGrowth]]) -> Iterator[Result]:
    usual = PauseGrowth(*(round(third_quartile(counts)) for counts in zip(*(one for _, one in like), strict=True)))
    for host, totals in like:
        days = max((host.uptime_s or 0.0) / DAY_S, 1.0)
        words = [
            f"{kind} {count:,} pause frames since boot, at most {most:,} on most of {len(like)} hosts"
            for kind, count, most in (("sent", totals.sent, usual.sent), ("received", totals.received, usual.received))
            if count >= max(_TIMES * max(most, 1), _A_DAY * days)
        ]
        if totals.storms >= _TIMES * max(usual.storms, 0.1):
            words.append(f"{totals.storms:,} pause storms since boot, at most {usual.storms:,} on most others")
        if words and len(like) > _FEWEST_PEERS:
            yield check.failure(host.name, nic, "; ".join(words), len(words), 0)
        else:
            yield check.ok(host.name, nic, value=totals.sent)


PAUSE_TOTALS = Check(
    id="net.pause.total",
    what="pause frames and pause storms of every NIC of the fabric since the boot",
    source="ethtool -S NIC",
    rule=f"fewer than {_A_DAY:,} a day, or than {_TIMES} times those of most similar hosts; no storm that others lack",
    component="nic",
    follows=("net.pause.frames",),
    remedy="sent: the host receives too slowly, see net.pause.frames; received: look for a slow receiver on its path",
    judge=among_peers(_totals, _compared, NO_INTERFACE),
)
