"""Evidence of preflight, and of the levels of a check."""

from __future__ import annotations

from fablint.text.sentence_kind import Names, Plain, Sentence

message = Sentence[str]("{message}")
also = Sentence[Names]("also {checks:list}")
more = Sentence[int]("and {count} more")
meanwhile = Plain("while the hosts were measured:")
inside_host = Plain("between ranks of the host itself:")
excluded = Sentence[str]("excluded: {reason}")
not_measured = Sentence[str]("not measured: {reason}")
failed_level = Sentence[str]("it failed the level {level} and was excluded from the next ones:")
not_repeated = Plain("measured again later, it is healthy")
not_in_levels = Sentence[Names]("not measured in {missed:list}")
common_cause = Sentence[int, str, Names]("common to {count} hosts of {cause}: {hosts:fold}")


@Sentence
def missed_levels(*, level: str, missed: Names) -> str:
    return f"not measured in {', '.join(missed)}, since it failed {level} before"


@Sentence
def check(
    *, message: str, value: float | str | None = None, expected: float | str | None = None, unit: str | None = None
) -> str:
    return message


@Sentence
def no_answer(*, hosts: int, reason: str) -> str:
    return (f"{hosts} hosts give " if hosts > 1 else "") + f"no answer: {reason}"
