"""The stages of a check: what each launch adds to the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fablint.model import FollowUp, Plan, PlanRow, RowSpec, Run, Scope
from fablint.model.arrays import RankPairs
from fablint.plan.check.check_rows import ROWS
from fablint.plan.check.default_rows import (
    COMFORTABLE_S,
    LONGEST_S,
    PARALLEL_S,
    SERIAL_S,
    SHORTEST_S,
    check_plan,
    rounded_down,
)
from fablint.plan.check.follow_up import LEAST, follow_up_rounds, measured_pairs, with_controls
from fablint.plan.check.plan_input import PlanInput
from fablint.plan.rows.cost import OVERHEAD, row_seconds
from fablint.plan.rows.pattern_extent import Extent
from fablint.plan.rows.side_by_side import named_after_medium, over_media
from fablint.plan.schedule.interleaving import interleaved, repeated
from fablint.plan.schedule.stratified import COUNTS, strata, stratified_rounds, tournament
from fablint.topology.routed_placement import RoutedPlacement

MOST_HISTOGRAMS = 1 << 22  # of a row of all pairs: of 2,048 ranks
FOLDER = "rounds"  # of a run directory
FIRST, EVERY, NEXT, RETEST = "stratified", "all-pairs", "follow-up", "retest"

FIRST_SHARE = 0.5  # of a budget: the rest is for follow-ups
FEWEST_ROUNDS = 4
ALONE_S = 20.0  # what measuring suspects one pair at a time may take
MOST_DOUBLINGS = 3
ROUTE_REPEATS = 7  # of a pair that was slow by itself: more often than the rounds of a small fabric are repeated
MOST_ROUTES = 32  # of them at once
MOST_OF_A_PATH = 6  # streams alone
CONTROLS = 4  # healthy pairs in a round, at least


@dataclass(frozen=True)
class Stage:
    """Rows measured in one launch; `rounds` are the rounds files that they name, as `rounds/stratified.txt`."""

    plan: Plan
    rounds: Mapping[str, Sequence[RankPairs]] = field(default_factory=dict)
    again: int = 0  # number of rounds that repeat measured pairs

    def renamed(self, name: str, other: str) -> Stage:
        """Return the same with a rounds file of another name."""
        files = {name: other}
        specs = [row.spec for row in self.plan.rows]
        specs = [replace(spec, rounds_file=files.get(spec.rounds_file or "", spec.rounds_file)) for spec in specs]
        rows = (replace(row, spec=spec) for row, spec in zip(self.plan.rows, specs, strict=True))
        rounds = {other if one == name else one: pairs for one, pairs in self.rounds.items()}
        return Stage(replace(self.plan, rows=tuple(rows)), rounds)

    def texts(self) -> Mapping[str, str]:
        """The content of the rounds files."""
        return {name: rounds_text(rounds) for name, rounds in self.rounds.items()}


def first_stage(asked: PlanInput, placement: RoutedPlacement | None = None) -> Stage:
    """Stratified matchings where they are fewer rounds than all pairs, else (and with `full`) all pairs.

    What may be followed by further rounds is spelt out as rounds itself: together they are one body of evidence.

    Raises
    ------
    UsageError
        Fewer than two ranks, or a budget that is not above 0.
    """
    hosts = len(set(asked.rank_hosts))
    budget = None if asked.budget_s is None else asked.budget_s * (FIRST_SHARE if hosts > 1 else 1.0)
    plan = check_plan(asked.ranks, hosts=hosts, oversubscribed=asked.oversubscribed, budget_s=budget, media=asked.media)
    whole = Stage(Plan(asked.ranks, tuple(_with_histogram(row, asked) for row in plan.rows), asked.slots))
    if asked.full or hosts < 2:
        return whole
    placement = placement or asked.placement()
    rows = over_media(ROWS, asked.media)
    order = "serial" if asked.oversubscribed else "parallel"
    turns = placement.ranks // 2 if order == "serial" else 1
    seconds = (budget or (SERIAL_S if order == "serial" else PARALLEL_S)) / OVERHEAD / len(rows) / turns
    most = min(int(seconds / SHORTEST_S), sum(COUNTS.values()))
    if placement.ranks - 1 <= most:
        row = plan.rows[0].spec
        if row.pattern != "all-pairs" or row.budget is None:
            return whole  # matchings: there is no time for more
        return _stage(EVERY, all_rounds(placement, row.repeats, asked.seed), asked, order, row.budget, rows)
    rounds = stratified_rounds(placement, asked.seed, _fewer(strata(placement), most))
    share = min(max(seconds / len(rounds), SHORTEST_S), LONGEST_S)
    return _stage(FIRST, rounds, asked, order, share, rows)


def all_rounds(placement: RoutedPlacement, repeats: int, seed: int) -> list[RankPairs]:
    """Every pair once in each repeat, the rounds of a repeat in another order each time."""
    labels = np.random.default_rng(seed).permutation(placement.ranks).astype(np.int32)
    turns = range(placement.ranks - 1 + placement.ranks % 2)
    return repeated([np.stack(tournament(labels, turn), axis=1) for turn in turns], repeats, placement, seed)


def next_stage(
    asked: PlanInput,
    run: Run,
    follow_ups: Sequence[FollowUp],
    number: int,
    left_s: float,
    rounds_left: int,
    the_same: tuple[Sequence[FollowUp], Sequence[FollowUp]] = ((), ()),
) -> Stage | None:
    """Return rounds of the follow-ups within `left_s`; None where no time, no round or no pair is left.

    Few suspects are measured alone, one pair after the other; many side by side in rounds that share no cable. The
    same pairs are measured again for two kinds of follow-ups: pairs that were slow by themselves several times, since
    most of their times decide; and streams of far pairs alone, one after the other.
    """
    placement = RoutedPlacement.on_routes(run.rank_host, asked.topology, run.facts.rank_nic)
    least = LEAST << min(number - 1, MOST_DOUBLINGS)  # what stays open needs more than a few
    rounds = follow_up_rounds(
        follow_ups, placement, measured_pairs(run, placement.ranks), least=least, most_rounds=rounds_left
    )
    routes, distances = the_same
    new = len(rounds)
    rounds += repeated_routes(routes, placement)
    if distances:
        asked = replace(asked, oversubscribed=True)  # one after the other
        rounds += follow_up_rounds(distances, placement, least=MOST_OF_A_PATH, most_rounds=MOST_ROUTES)
    if not rounds:
        return None
    planned, seed = [*follow_ups, *routes, *distances], asked.seed + number
    rounds = with_controls(rounds, placement, suspects_of(planned), CONTROLS, seed)
    rounds = interleaved(
        rounds, placement, seed, [one.pairs for one in planned]
    )  # else the rounds of a follow-up are consecutive
    is_oversubscribed = asked.oversubscribed or run.facts.instrument.oversubscribed
    again = len(rounds) - new
    rows = [replace(row, purpose="follow_up") for row in over_media(asked.rows, asked.media)]
    stage = timed_stage(f"{NEXT}-{number}", rounds, replace(asked, oversubscribed=is_oversubscribed), left_s, rows)
    return stage and replace(stage, again=again)


def repeated_routes(routes: Sequence[FollowUp], placement: RoutedPlacement) -> list[RankPairs]:
    """Return the pairs of these follow-ups in rounds of their own, each in several of them."""
    rounds = follow_up_rounds(routes[:MOST_ROUTES], placement, least=1, most_rounds=MOST_ROUTES) if routes else []
    return [pairs for _ in range(ROUTE_REPEATS) for pairs in rounds]


def timed_stage(
    name: str, rounds: Sequence[RankPairs], asked: PlanInput, left_s: float, specs: Sequence[RowSpec] = ROWS
) -> Stage | None:
    """Rows of these rounds, alone where that does not take too long, within `left_s`; None where that is too short."""
    pairs = sum(len(one) for one in rounds)
    alone = asked.oversubscribed or pairs * COMFORTABLE_S * len(specs) * OVERHEAD <= min(ALONE_S, left_s)
    seconds = min(ALONE_S, left_s) / OVERHEAD / len(specs) / (pairs if alone else len(rounds))
    if seconds < SHORTEST_S:
        return None
    return _stage(name, rounds, asked, "serial" if alone else "parallel", min(seconds, LONGEST_S), specs)


def suspects_of(follow_ups: Sequence[FollowUp]) -> list[int]:
    """Return the ranks of the components in doubt: those in at least half of the pairs of a follow-up."""
    suspects: set[int] = set()
    for follow_up in follow_ups:
        ranks, counts = np.unique(follow_up.pairs, return_counts=True)
        suspects.update(ranks[2 * counts >= len(follow_up.pairs)].tolist())
    return sorted(suspects)


def rounds_text(rounds: Sequence[RankPairs]) -> str:
    """A rounds file: one round per line, pairs as `0-1 2-3`."""
    return "".join(" ".join(f"{a}-{b}" for a, b in pairs.tolist()) + "\n" for pairs in rounds)


def _stage(
    name: str,
    rounds: Sequence[RankPairs],
    asked: PlanInput,
    order: str,
    share: float,
    specs: Sequence[RowSpec] = ROWS,
) -> Stage:
    """Return the rows with the same rounds, names and seconds of a round."""
    names = names_of(specs, "{}" if name in (FIRST, EVERY, RETEST) else f"{{}}-{name}")
    rows = [(replace(row, name=called), share) for row, called in zip(specs, names, strict=True)]
    return stage_of(name, rounds, asked, order, rows)


def names_of(rows: Sequence[RowSpec], form: str) -> list[str]:
    """Return distinct names of rows by their kernels, `{}` in `form`, and by their media if there are several."""
    named = [replace(row, name=form.format(row.kernel)) for row in rows]
    has_several_media = len({row.medium for row in rows}) > 1
    return distinct_names([str((named_after_medium(row) if has_several_media else row).name) for row in named])


def distinct_names(names: Sequence[str]) -> list[str]:
    """Return the names, with a number behind each that occurred before."""
    result: list[str] = []
    for name in names:
        result.append(next(one for one in (name, *(f"{name}-{k}" for k in range(2, 1000))) if one not in result))
    return result


def stage_of(
    name: str, rounds: Sequence[RankPairs], asked: PlanInput, order: str, rows: Sequence[tuple[RowSpec, float]]
) -> Stage:
    """Return rows with the same rounds, in the rounds file of that name; with histograms if routing is adaptive.

    Parameters
    ----------
    name
        Of the rounds file.
    rounds
        Pairs of ranks.
    asked
        Ranks and fabric.
    order
        Parallel or serial.
    rows
        Each with the seconds of a round (serial: of a pair). A row that is serial by itself stays serial.
    """
    file = f"{FOLDER}/{name}.txt"
    size = Extent(len(rounds), sum(len(pairs) for pairs in rounds))
    made = []
    for row, share in rows:
        spec = replace(
            row,
            pattern="rounds",
            rounds_file=file,
            order="serial" if row.order == "serial" else order,
            budget=rounded_down(share),
            histogram=row.histogram or _is_adaptive(asked),
        )
        made.append(PlanRow(spec, len(rounds), row_seconds(spec, size)))
    return Stage(Plan(asked.ranks, tuple(made), asked.slots), {file: tuple(rounds)})


def _is_adaptive(asked: PlanInput) -> bool:
    """Tell whether messages of a pair take different paths, so that only their histogram shows a slow link of some
    paths.
    """
    return asked.topology is not None and asked.topology.routing.kind == "adaptive"


def _with_histogram(row: PlanRow, asked: PlanInput) -> PlanRow:
    """Return a row of all pairs, with histograms if routing is adaptive and the run has room for so many."""
    if asked.ranks**2 > MOST_HISTOGRAMS:
        return row
    return replace(row, spec=replace(row.spec, histogram=row.spec.histogram or _is_adaptive(asked)))


def _fewer(counts: Mapping[Scope, int], most: int) -> dict[Scope, int]:
    """Return the same strata with `most` rounds in all, but no fewer than a few."""
    share = max(most, FEWEST_ROUNDS) / sum(counts.values()) if counts else 1.0
    return {scope: max(1, int(rounds * min(share, 1.0))) for scope, rounds in counts.items()}
