"""Evidence about slow components and pairs of hosts, and about which of the components in series is at fault."""

from __future__ import annotations

import math
from typing import Literal, TypedDict, Unpack

from fablint.model.names import plural
from fablint.text.sentence_kind import Names, Plain, Sentence
from fablint.text.units import effect as effect_text, share_text

unsteady = Plain("its loss varies over time")
intermittent = Plain("slow for some of its pairs only")
period_of_load = Plain("normal afterwards; other load at that time would look the same")
fast_in_isolation = Sentence[int]("""as fast as others in follow-up measurements of one pair at a time, with {partners}
    partners: load during the earlier measurements would look the same""")
others_slow_then = Sentence[float]("""{others:%} of the measurements of unrelated pairs next to these in time were
    slow as well: load would look the same""")
among_others = Sentence[float]("{ratio:times} times as long among others as alone")
no_direction = Plain("a round trip cannot tell the direction")
longer_path = Sentence[float]("{added_ns:.0f} ns more: a longer cable or more switches add as much")
duplex_only = Plain("""only while both directions are busy: duplex, or what both share (PCIe, memory), not the
    cable's rate""")
heterogeneous_hosts = Plain("healthy hosts here differ so much that one as slow is to be expected among them")
slow_over_all = Sentence[Names]("slow over {transports:list}: the cause is the wire or the host, not one library")
slow_uplinks = Plain("pairs on the switch are as fast as others: all of its uplinks are slow, or some of them")
single_rank = Sentence[int | None]("rank {rank} alone, not the other ranks of its host")
weak = Plain("too little to report one of so many components")
weak_host = Plain("slow with most of its partners; too few of its measurements count as evidence of a fault")
intra_node = Sentence[int, int]("{measured:#measurement} beside those of {others} hosts")


@Sentence
def gpu_copies(*, measured: int, others: int, copies: str) -> str:
    return f"copies {copies}: {plural(measured, 'measurement')} beside those of {others} GPUs"


class EffectFields(TypedDict):
    """Fields of an effect: the median and its 95 % interval, relative."""

    effect: float
    low: float
    high: float


@Sentence
def unequal_directions(*, sending: tuple[float, float, float], receiving: tuple[float, float, float]) -> str:
    """Effect and interval of each."""
    parts = (
        (word, effect, (low, high)) for word, (effect, low, high) in (("sending", sending), ("receiving", receiving))
    )
    return ", ".join(f"{word} {effect_text(effect, interval, None)}" for word, effect, interval in parts)


def _median(effect: EffectFields) -> str:
    return f"median {effect_text(effect['effect'], (effect['low'], effect['high']), None)}"


@Sentence
def slow_pairs(
    *,
    partner: str,
    noise: float,
    partners: int,
    stretches: int | None = None,
    slow: int,
    pairs: int,
    **effect: Unpack[EffectFields],
) -> str:
    clusters = f", {plural(partners, partner)}" if partners else ""
    clusters += f", {plural(stretches, 'stretch')} of time" if partners and stretches is not None else ""
    return f"{slow:,} of {pairs:,} pairs slow{clusters}, {_median(effect)}, noise of a pair {share_text(noise)}"


@Sentence
def slow_share(
    *, slow: int, measured: int, others_slow: int, others: int, share: float, pairs: int, **effect: Unpack[EffectFields]
) -> str:
    return (
        f"slow in {slow:,} of {plural(measured, 'measurement')} ({share_text(share)}), elsewhere in {others_slow:,} of"
        f" {others:,}; while slow {_median(effect)}, {plural(pairs, 'pair')} of hosts"
    )


@Sentence
def late_pairs(*, late: float, slow: int, pairs: int, **effect: Unpack[EffectFields]) -> str:
    return (
        f"{slow:,} of {pairs:,} pairs that may cross it have late messages, about {share_text(late)} of the messages"
        f" that cross it, {_median(effect)}"
    )


@Sentence
def slow_when(
    *,
    when: Literal["always", "since", "until", "between", "now and then"],
    begin: float,
    end: float,
    slow: int,
    measured: int,
) -> str:
    return {
        "since": f"slow since {begin:.3g} s after the start",
        "until": f"slow until {end:.3g} s after the start",
        "between": f"slow between {begin:.3g} s and {end:.3g} s after the start",
        "now and then": f"slow now and then ({slow} of {plural(measured, 'measurement')})",
        "always": "slow all the time",
    }[when]


@Sentence
def alpha_beta(
    *, grows: Literal["alpha", "beta", "both"], alpha_s: float, beta_s: float, factor: float, retries: bool
) -> str:
    message, byte = f"{alpha_s * 1e6:+.2g} us a message", f"time per byte x{factor:.2f}"
    growth, reason = {
        "alpha": (f"{message} at every size", "an extra hop, where its processes are placed, or a power state"),
        "beta": (byte, "a link with reduced width or speed, PCIe, or a shared resource"),
        "both": (f"{message} and {byte}", "a host or NIC that is slow in every operation"),
    }[grows]
    resent = "with a long tail: messages are sent again (read the retry and error counters)"
    return f"{growth}: {resent if retries else reason}"


@Sentence
def slow_over_some(
    *, slow: Names, healthy: Names, bound: float, expected: float, cause: Literal["above_sockets", "sockets", "library"]
) -> str:
    place = {
        "above_sockets": "TCP is as fast as elsewhere: look at the library, its settings and the RDMA path of this"
        " host before the cable",
        "sockets": "look at the TCP settings, the interrupts and the offloads of this host before the cable",
        "library": "look at the library and its settings on this host before the cable",
    }[cause]
    return (
        f"slow over {', '.join(slow)}, not over {', '.join(healthy)} (at most {share_text(math.expm1(bound))} longer,"
        f" where the wire or the host would add {share_text(math.expm1(expected))}): {place}"
    )


slow_block = Sentence[int, int]("""{slow:#pair} of {pairs} slow in both directions, compared with the other pairs
    of both hosts""")
slow_block_once = Sentence[int, int]("""{slow:#pair} of {pairs} slow in both directions, compared with the other
    pairs of both hosts; both directions were measured in one moment: load at that moment would slow both""")
slow_pairs_once = Sentence[int, str]("""{pairs:#pair} of hosts slow in both directions ({shown}), which were measured
    in one moment: load at that moment would slow both""")
slow_directions = Sentence[int]("""{slow} directions, all between these hosts, slow when measured alone,
    compared with the other pairs of these hosts""")
one_direction = Plain("""slow in this direction only, far beyond the noise of all other pairs, compared with the
    other pairs of both hosts; load during one measurement would look the same""")
one_direction_once = Plain("""slow in this direction only, far beyond the noise of all other pairs, compared with
    the other pairs of both hosts; measured once: load at that moment would look the same""")
one_direction_shared = Plain("""slow in this direction only, far beyond the noise of all other pairs; others sent at
    the same time, and messages that share a link take longer in this run""")
faster_pairs = Sentence[int, str]("""{pairs:#direction} of pairs of hosts ({shown}) far faster than all others of
    their kind; which of the two is healthy is not known""")
unexplained_pairs = Sentence[int, int, float]("""{slow} of {pairs:#pair} ({share:%}) are slower than the noise of
    the others, and nothing that they have in common explains it""")


line_rx = Plain("the NIC received damaged code words")
no_line_rx = Plain("the line to the NIC is clean")
line_tx = Plain("the switch received damaged code words and had them sent again")
no_line_tx = Plain("the line to the switch is clean")
marked = Plain("packets arrived marked bad on a clean line")
poisoned = Plain("packets were damaged in the NIC before they were sent")
late = Plain("packets were dropped since the host was late to take them")
down = Plain("the link went down")
again = Plain("messages were sent again")
slow_loopback = Plain("slow in loopback")
fine_loopback = Plain("fine in loopback")
slow_rails = Plain("its other NICs are slow too")
fine_rails = Plain("its other NICs are fine")
slow_neighbours = Plain("other hosts of the switch are slow too")
cpu_wait = Sentence[float, float]("""its ranks waited {share:%} of the time for a CPU that other processes used,
    those of other hosts {others:%}""")
loopback = Sentence[str]("{message}")
