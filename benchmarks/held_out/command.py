"""The command: all scenarios, a few seeds each, and a table."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

from held_out.faulty import FAULTY
from held_out.healthy import HEALTHY
from held_out.program import verdict_of
from held_out.rank_runs.rank_scenario import RankScenario
from held_out.rank_scenarios import RANK_SCENARIOS
from held_out.scenario import Scenario
from held_out.scoring import Score, score

SCENARIOS: dict[str, Scenario | RankScenario] = {
    scenario.name: scenario for scenario in (*HEALTHY, *FAULTY, *RANK_SCENARIOS)
}
HEALTHY_FAULTS = 0.01  # share of the seeds of a healthy scenario that may have a FAULT


@dataclass(frozen=True)
class Line:
    """A scenario and the scores of its seeds."""

    name: str
    expected: str
    scores: tuple[Score, ...]
    seconds: float
    errors: tuple[str, ...] = ()
    passes: bool | None = None  # of a healthy scenario: should it be a PASS?

    def share(self, count: int) -> float:
        """Of the seeds."""
        return count / max(1, len(self.scores))

    @property
    def verdicts(self) -> Counter[str]:
        return Counter(one.verdict for one in self.scores)

    @property
    def outcomes(self) -> Counter[str]:
        return Counter(one.outcome for one in self.scores)

    @property
    def false(self) -> int:
        """Seeds with a FAULT about a healthy component."""
        return sum(bool(one.false) for one in self.scores)

    @property
    def rule(self) -> str:
        """`ok`, or which rule is broken: ERROR, FAULT (of a healthy fabric), PASS (above the bound), FALSE."""
        if self.errors:
            return "ERROR"
        if self.expected == "healthy":
            return "FAULT" if self.share(self.verdicts["fault"]) > HEALTHY_FAULTS else "ok"
        passed = self.verdicts["pass"] if self.expected == "undecided" else self.outcomes["missed"]
        if passed:
            return "PASS"
        return "FALSE" if self.share(self.false) > HEALTHY_FAULTS else "ok"


def judge(name: str, seed: int, process: bool = False) -> tuple[Score | None, str]:
    """One seed of a scenario: its score, or what the program said instead of a verdict."""
    scenario = SCENARIOS[name]
    with tempfile.TemporaryDirectory(prefix="held-out-") as folder:
        case = scenario.case(seed, Path(folder))
        try:
            verdict = verdict_of(case.files, case.topology, process)
        except RuntimeError as error:
            return None, f"seed {seed}: {error}"
        return score(verdict, case.truths), ""


def _trial(given: tuple[str, int, bool]) -> tuple[Score | None, str, float]:
    started = time.perf_counter()
    return *judge(*given), time.perf_counter() - started


HEAD = (
    f"{'scenario':<58} {'seeds':>5} {'FAULT':>5} {'INCOM':>5} {'PASS':>5} {'false':>5} "
    f"{'exact':>5} {'group':>5} {'susp':>5} {'incom':>5} {'bound':>5} {'misnm':>5} "
    f"{'missd':>5} {'dir':>4} {'s':>5}  rule"
)


def text(line: Line) -> str:
    """One line of the table, in counts of seeds."""
    verdicts, outcomes = line.verdicts, line.outcomes
    counts = [verdicts["fault"], verdicts["incomplete"], verdicts["pass"], line.false]
    of_faults = [outcomes[name] for name in ("exact", "group", "suspect", "incomplete", "hidden", "misnamed", "missed")]
    of_faults.append(sum(one.direction for one in line.scores))
    words = [f"{one:>5}" for one in counts]
    words += (
        [f"{one:>5}" for one in of_faults[:-1]] + [f"{of_faults[-1]:>4}"]
        if line.expected == "faulty"
        else [f"{'':>5}"] * 7 + [f"{'':>4}"]
    )
    return f"{line.name[:58]:<58} {len(line.scores):>5} {' '.join(words)} {line.seconds:>5.2f}  {line.rule}"


FAULTY_COLUMNS = ("exact", "group", "SUSPECT", "incomplete", "hidden below the bound", "misnamed", "missed")


def markdown(given: Sequence[Line]) -> str:
    """The tables of docs/explanation/held-out-fabrics.md, in counts of seeds."""
    tables = {
        "Healthy": ("scenario", "should PASS", "PASS", "incomplete", "FAULT", "SUSPECT"),
        "Faulty": ("scenario", *FAULTY_COLUMNS, "false FAULT", "false SUSPECT", "wrong direction"),
        "Undecided: neither PASS nor FAULT is right": ("scenario", "PASS", "incomplete", "FAULT"),
    }
    rows: dict[str, list[str]] = {title: [] for title in tables}
    for line in given:
        title = next(title for title in tables if title.lower().startswith(line.expected))
        verdicts = [str(line.verdicts[word]) for word in ("pass", "incomplete", "fault")]
        cells = [line.name, *verdicts]
        suspected = str(sum(bool(result.suspected) for result in line.scores))
        if line.expected == "healthy":
            cells = [line.name, "yes" if line.passes else "not stated", *verdicts, suspected]
        elif line.expected == "faulty":
            outcomes = ("exact", "group", "suspect", "incomplete", "hidden", "misnamed", "missed")
            turned = sum(not result.direction for result in line.scores)
            named = [str(line.outcomes[word]) for word in outcomes]
            cells = [line.name, *named, str(line.false), suspected, str(turned)]
        rows[title].append(f"| {' | '.join(cells)} |")
    parts = []
    for title, head in tables.items():
        if rows[title]:
            parts += [f"### {title}", "", f"| {' | '.join(head)} |", f"| {' | '.join(['---'] * len(head))} |"]
            parts += [*rows[title], ""]
    return "\n".join(parts).rstrip()


def summary(given: Sequence[Line]) -> str:
    """How many scenarios keep the rule, and how many healthy runs that should PASS do."""
    kept = sum(line.rule == "ok" for line in given)
    words = f"{len(given)} scenarios, {kept} keep the rule, {len(given) - kept} do not"
    healthy = [line for line in given if line.passes]
    if not healthy:
        return words
    passed, runs = (sum(counts) for counts in zip(*((line.verdicts["pass"], len(line.scores)) for line in healthy),
                                                  strict=True))  # fmt: skip
    return f"{words}; {passed} of {runs} healthy runs that should PASS do"


@dataclass
class Progress:
    """What is done and how long the rest will take, on stderr."""

    total: int
    done: int = 0
    started: float = field(default_factory=time.perf_counter)

    def step(self, name: str) -> None:
        """One seed more."""
        self.done += 1
        spent = time.perf_counter() - self.started
        left = spent / self.done * (self.total - self.done)
        end = "\r" if sys.stderr.isatty() else "\n"
        if sys.stderr.isatty() or self.done % 50 == 0:
            print(f"{self.done} of {self.total} runs, {left:.0f} s left: {name:<60}", end=end, file=sys.stderr)


def lines(names: Sequence[str], seeds: range, jobs: int, process: bool) -> Iterator[Line]:
    """The scenarios, one after the other."""
    progress = Progress(len(names) * len(seeds))
    with ProcessPoolExecutor(jobs) as pool:
        for name in names:
            given = [(name, seed, process) for seed in seeds]
            results = []
            for result in pool.map(_trial, given) if jobs > 1 else map(_trial, given):
                results.append(result)
                progress.step(name)
            scores = tuple(score for score, _, _ in results if score is not None)
            errors = tuple(error for _, error, _ in results if error)
            seconds = sum(spent for _, _, spent in results) / len(results)
            yield Line(name, SCENARIOS[name].expected, scores, seconds, errors, SCENARIOS[name].passes)


def is_chosen(chosen: argparse.Namespace, scenario: Scenario | RankScenario) -> bool:
    """Whether the options select the scenario."""
    if chosen.ranks and not isinstance(scenario, RankScenario):
        return False
    named = not chosen.only or any(word in scenario.name for word in chosen.only)
    return named and chosen.kind in (None, scenario.expected)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seeds", type=int, default=1, help="runs of each scenario [1]")
    options.add_argument("--first", type=int, default=1, help="the first seed [1]")
    options.add_argument(
        "--only", action="append", help="scenarios whose name contains this; may be given several times"
    )
    options.add_argument("--kind", choices=("healthy", "faulty", "undecided"), help="of these only")
    options.add_argument("--ranks", action="store_true", help="scenarios of rails, planes, shares, large leaves only")
    options.add_argument("--jobs", type=int, default=1, help="processes [1]")
    options.add_argument("--subprocess", action="store_true", help="call the program as a process of its own")
    options.add_argument("--json", action="store_true", help="print the scores of all seeds as JSON")
    options.add_argument("--markdown", action="store_true", help="print the tables of the documentation")
    options.add_argument("--show", action="store_true", help="name what is wrongly at FAULT")
    options.add_argument("--strict", action="store_true", help="exit with 1 where a rule is broken")
    options.add_argument("--list", action="store_true", help="print the names of the scenarios")
    chosen = options.parse_args(arguments)
    names = [name for name, scenario in SCENARIOS.items() if is_chosen(chosen, scenario)]
    if chosen.list:
        print("\n".join(f"{SCENARIOS[name].expected:<9} {name}" for name in names))
        return 0
    result = []
    is_table = not chosen.json and not chosen.markdown
    if is_table:
        print(HEAD)
    seeds = range(chosen.first, chosen.first + chosen.seeds)
    for line in lines(names, seeds, chosen.jobs, chosen.subprocess):
        result.append(line)
        if is_table:
            print(text(line), flush=True)
            for error in line.errors:
                print(f"    {error}")
            for seed, score in zip(seeds, line.scores, strict=False):
                if chosen.show and score.false:
                    print(f"    seed {seed}: {', '.join(score.false[:6])}{' ...' if len(score.false) > 6 else ''}")
    if chosen.json:
        print(json.dumps([{**asdict(line), "rule": line.rule} for line in result], indent=1))
    else:
        print(markdown(result) if chosen.markdown else summary(result))
    return 1 if chosen.strict and any(line.rule != "ok" for line in result) else 0
