"""Evidence about late messages and retransmissions, doubts about it, and circumstances that make hosts slow."""

from __future__ import annotations

from fablint.model.component import Direction
from fablint.model.names import fold, plural
from fablint.text.sentence_kind import Names, Plain, Sentence
from fablint.text.units import percent, share_text

may_be_chance = Plain("it may be chance")
few_pairs_of_hosts = Sentence[int]("of fewer than {fewest} pairs of hosts")
one_stretch = Plain("all in one stretch of time")
one_period = Plain("in one period only, which other load would explain too")
sent_together = Plain("others sent at the same time, and may have shared its links")
times_unknown = Plain("when it was measured is not known: load at that time would look the same")
small_ratio = Sentence[float]("below {limit:.0f} times the usual mean: healthy hosts have such means too")
small_share = Sentence[float]("less than {limit:%} of its pairs")
nothing_to_compare = Plain("no other path of this kind to compare with")
cables_unknown = Plain("which cables the paths cross is not known")
streams_only = Plain("streams, which congestion makes lose segments as well")
spurious_unknown = Plain("the Linux kernels here do not report which resent segments had already arrived")
slow_period = Sentence[float, float, int, float]("""from {begin:.3g} s to {end:.3g} s pairs of {hosts} hosts took
    {excess:+%}, whichever hosts they were""")
late_messages = Sentence[float, int, int, int, int]("""some messages come much later than the others, as after a
    loss: the mean is {ratio:times} times what is usual in {late} of {pairs:#pair} of hosts, and in {others_late} of
    {others} others""")


@Sentence
def tcp_resent(
    *,
    lost: int,
    sent: int,
    spurious: int,
    direction: Direction | None = None,
    lossy: int,
    pairs: int,
    over: Names = (),
    others_lost: int,
    others_lossy: int,
    others: int,
) -> str:
    segments = {"tx": "that it sends", "rx": "that are sent to it", "both": "that it sends and receives"}
    interfaces = f" over {', '.join(over)}" if over else ""
    addition = f"; {spurious} more had arrived already and are not counted" if spurious else ""
    return (
        f"TCP sent {share_text(lost / max(sent, 1))} of the segments {segments.get(direction or '', 'that cross it')}"
        f" again: {lost} of {sent} in {lossy} of {plural(pairs, 'direction')} of pairs{interfaces}, and {others_lost}"
        f" segments in {others_lossy} of {others} others{addition}"
    )


one_host = Sentence[int, str]("all {ranks} ranks run on {host}: no message crossed a network")
oversubscribed = Sentence[Names]("{hosts:fold}: more ranks than CPUs, so that times include waiting for a CPU")
shared_cores = Sentence[Names]("""on {hosts:fold} more ranks are bound to some CPUs than there are of these: they
    wait for each other""")
drift = Sentence[float]("""the times of all hosts changed by {excess:+%} from the first to the last measurement
    of the run""")
allocation_level = Sentence[str, float]("""all times of {run} are {change:+%} beside those of the other runs; no pair
    of hosts that is in two of them shows whether the launch or the hosts are the reason""")
separating_fact = Sentence[str, str]("{fact} separates them ({values})")
separating_fact_many = Sentence[str]("{fact} separates them")
no_separating_fact = Plain("no recorded fact separates them")
undecided = Plain("a threshold of the site or a baseline decides which of them is healthy")


@Sentence
def first_host(*, hosts: Names, shift: float, chance: float, slow: int, sizes: int, together: float) -> str:
    return (
        f"pairs with {fold(hosts)} take {percent(shift)}, p = {chance:.1g}; in the same direction in {slow} of"
        f" {plural(sizes, 'size')}, p = {together:.1g} for all together"
    )


@Sentence
def populations(*, counts: tuple[int, ...], names: Names, effects: tuple[float, ...], others: int, usual: str) -> str:
    slower = [
        f"{plural(count, 'host')} ({name}) {percent(effect)}"
        for count, name, effect in zip(counts, names, effects, strict=True)
    ]
    return f"{' and '.join(slower)}, compared with {plural(others, 'host')} ({usual})"
