"""Evidence about paths and cables between switches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from fablint.model.names import plural
from fablint.text.sentence_kind import Plain, Sentence
from fablint.text.units import percent

ReferenceKind = Literal[
    "", "faster_population", "faster_of_kind", "other_direction", "other_paths", "switch", "declared"
]

path_uneven = Sentence[float, float]("slow from {begin:.1f} s to {end:.1f} s, not evenly")
path_varies = Plain("its loss varies from pair to pair")
one_of_several = Plain("the other pairs are normal: one of several parallel cables or paths is slow")
routes_wrong = Plain("the declared routes do not explain the slow pairs")
path_once = Plain("slower than the others of its kind, but not evenly over time")
path_beside = Plain("slower among other messages; alone it was not measured")
path_lone = Plain("slower than messages on a switch, with nothing of its kind to compare it with")
path_population = Plain("its pairs fall in two groups, and it is not known which is normal")
outward_slow = Sentence[str, str]("""messages between {switch} and other groups are slow as well, and their path out
    of {group} is not declared""")
few_path_pairs = Sentence[int]("""measured between fewer than {fewest} pairs of hosts, or with nothing to compare
    them with""")
not_alone = Sentence[str]("slower in {quantity} beside messages of other pairs; alone their streams were not measured")
path_mode = Sentence[int, int, str, float]("{slow} of {pairs} pairs of hosts across {path} slow, median {effect:+%}")
declared_speed = Sentence[float, float, float]("declared at {speed:g} Gb/s, others at {usual:g} Gb/s: {loss:+%}")


def reference_text(kind: ReferenceKind, paths: int = 0) -> str:
    """Return what a path is compared with, in words: `3 other paths`."""
    return {
        "": "",
        "faster_population": "the faster of two populations",
        "faster_of_kind": "the faster ones of its kind",
        "other_direction": "the other direction",
        "other_paths": plural(paths, "other path"),
        "switch": "messages on a switch",
        "declared": "messages on a switch and the declared speed of its cables",
    }[kind]


@Sentence
def path_slow(
    *,
    slow: int,
    pairs: int,
    effect: float,
    beside: ReferenceKind,
    others: int | None = None,
    extra_s: float | None = None,
) -> str:
    extra = "" if extra_s is None else f" ({extra_s * 1e9:+,.0f} ns)"
    reference = reference_text(beside, others or 0)
    return f"{slow:,} of {plural(pairs, 'pair')} of hosts slow, median {percent(effect)} beside {reference}{extra}"


all_uplinks = Sentence[int, str]("""all {cables:#cable} between {switch} and other switches are slow; the
    slowest:""")


@Sentence
def healthy_paths(*, pairs: int, beside: Sequence[ReferenceKind], counts: tuple[int, ...]) -> str:
    references = sorted(reference_text(kind, count) for kind, count in zip(beside, counts, strict=True))
    return f"each measured between at least {plural(pairs, 'pair')} of hosts; compared with {' or '.join(references)}"
