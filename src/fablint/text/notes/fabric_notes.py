"""Notes on the fabric: its topology, switches, cables and paths, and what all of them share."""

from __future__ import annotations

from typing import Literal

from fablint.model.names import fold, plural
from fablint.text import units
from fablint.text.evidence import ReferenceKind, reference_text
from fablint.text.sentence_kind import Names, NoteKind, PlainNote
from fablint.text.sentence_words import ratio_text

inferred_switches = NoteKind[int, str]("""no topology was given: {switches:#switch} inferred from the times
    ({source})""")
several_faults = PlainNote("""several faulty components at once: --topology distinguishes them from components that they
    share""")
no_topology = PlainNote("no topology: switches and links were not judged one by one (--topology names them)")
unnamed_hosts = NoteKind[Names]("the topology does not name {hosts:fold}")
few_switches = NoteKind[int]("{switches:#switch} in the run: switches were not compared with each other")
few_cables = PlainNote("too few cables between switches to compare them with each other")
adaptive_shared = PlainNote("""adaptive routing: no link was judged, since all pairs that may cross one shared links
    with others (rows with --order serial tell)""")
adaptive_unjudged = PlainNote("""adaptive routing: links are judged by rows with --histogram, of which there is none""")
routes_undeclared = PlainNote("the declared routes do not explain the slow pairs")
few_pairs_of_paths = NoteKind[int, int]("""{paths:#path} between fewer than {fewest} pairs of hosts were not judged one
    by one""")
declared_slower = NoteKind[str, float, float, float]("""{path}: bandwidth {effect:+%} beside others; declared at
    {speed:g} Gb/s, others at {usual:g} Gb/s (no fault)""")
unfilled_cables = NoteKind[float, int, float]("""streams of one pair at a time ({stream:.3g} Gb/s) do not
    fill {cables:#cable} declared faster: a loss of up to {loss:%} of the speed of such a cable would not be noticed
    (rows with --order parallel load them more)""")
_GEOMETRY = "later by no more than a longer cable or more switches explain"
later_by_geometry = NoteKind[str, float](f"""{{path}}: {{extra_ns:+,.0f}} ns of latency, {_GEOMETRY}; its streams are as
    fast as others (no fault)""")


rarely_crossed_links = NoteKind[str, int, int]("""{quantity} of {links:#link}: not judged one by one, since fewer than
    {fewest} pairs of these hosts cross each""")


@NoteKind
def hosts_of_a_kind(*, hosts: Names, quantity: str, effect: float, fact: str | None = None) -> str:
    reason = f"{fact} separates them" if fact else "no recorded fact separates them"
    return f"{fold(hosts)}: {quantity} {units.percent(effect)} as a kind of hosts, {reason} (compared with their kind)"


@NoteKind
def paths_by_design(*, paths: str, effect: float, beside: ReferenceKind, others: int) -> str:
    why = "as slow as all others of its kind: what the network was built for"
    return f"{paths} {units.percent(effect)} beside {reference_text(beside, others)}: {why} (no fault)"


@NoteKind
def paths_by_geometry(*, paths: str, effect: float, beside: ReferenceKind, others: int) -> str:
    return f"{paths} {units.percent(effect)} beside {reference_text(beside, others)}: {_GEOMETRY} (no fault)"


@NoteKind
def paths_of_a_kind(*, paths: str, effect: float, beside: ReferenceKind, others: int) -> str:
    reference = reference_text(beside, others)
    return f"{paths} {units.percent(effect)} beside {reference}: a kind of paths, within what OK allows"


@NoteKind
def contention(*, low: float, high: float) -> str:
    least, most = ratio_text(low), ratio_text(high)
    took = f"{least} to {most}" if least != most else least
    return (
        f"pairs that shared a link with others took {took} times as long as those that did not (contention, not a"
        " fault; each is compared with pairs that shared links equally)"
    )


PairReason = Literal["time", "load", "once", "scope"]
_SLOW_PAIRS: dict[PairReason, str] = {
    "time": "slow only while most others were slow",
    "load": "each in too few measurements to distinguish a slow route from the moments of load that this run has",
    "once": "measured once: load at that moment would look the same",
    "scope": "slower by no more than {limit}, which nothing that they have in common explains",
}


@NoteKind
def explained_pairs(
    *,
    reason: PairReason,
    number: int,
    directed: bool,
    pairs: Names,
    effects: tuple[float, ...],
    limit: float,
    measurable: bool,
) -> str:
    shown = [f"{pair} {units.percent(effect)}" for pair, effect in zip(pairs, effects, strict=True)]
    more = ", ..." if number > len(pairs) else ""
    what = plural(number, "direction" if directed else "pair") + ("" if directed else " of hosts")
    far = "" if reason == "scope" else " far slower than all others"
    again = "; fablint check measures these pairs again" if measurable and reason != "scope" else ""
    return f"{what}{far} ({', '.join(shown)}{more}), {_SLOW_PAIRS[reason].format(limit=units.share_text(limit))}{again}"


@NoteKind
def shared_loss(*, lost: int, sent: int, lossy: int, directions: int, streams: bool) -> str:
    what, why = ("streams", "congestion, or ") if streams else ("single messages", "")
    return (
        f"TCP sent {units.share_text(lost / sent)} of the segments of {what} again: {lost} of {sent}, in {lossy} of"
        f" {plural(directions, 'direction')} of pairs: {why}a loss that all paths share, which is not a single"
        f" component's"
    )
