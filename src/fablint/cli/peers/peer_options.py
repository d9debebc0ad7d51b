"""What an option of another program becomes: words of the command line of `fablint bench`, or a refusal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fablint.errors import UsageError

# Returns the words of `fablint bench` for the value of an option. Raises UsageError without the name of the option.
Translation = Callable[[str], list[str]]


@dataclass(frozen=True)
class PeerOption:
    """An option of another program: `form` names its value (empty: a switch), `meaning` is what it means here.

    An option without `words` is translated together with others, by the function `translate` of the program.
    """

    spellings: str
    form: str
    meaning: str
    words: Translation | None = None
    is_here: bool = True  # it sets something: the help of a benchmark lists it
    where: Callable[[str], bool] | None = None  # the benchmarks that have it; None: all of the program

    @property
    def parameter(self) -> str:
        """Name of the option among the values of a line: its first spelling without hyphens."""
        return self.spellings.split()[0].lstrip("-")


def ours(spellings: str, form: str, option: str, where: Callable[[str], bool] | None = None) -> PeerOption:
    """Return an option that an option of `bench` replaces: with its value, or as a switch where it has no form."""

    def words(value: str) -> list[str]:
        return [option, value] if form else [option]

    return PeerOption(spellings, form, f"{option} {form}".rstrip(), words, where=where)


def only(spellings: str, form: str, values: str, meaning: str) -> PeerOption:
    """Return an option of which fablint has only these values, which mean what it does by default.

    `meaning` states what it does.
    """
    accepted_words = values.split()

    def words(value: str) -> list[str]:
        if value.lower() not in accepted_words:
            raise UsageError(
                f"'{value}' is not available", f"{meaning}: give {' or '.join(accepted_words)}, or omit it"
            )
        return []

    return PeerOption(spellings, form, f"{' or '.join(accepted_words)} only: {meaning}", words, is_here=False)


def absent(spellings: str, form: str, why: str) -> PeerOption:
    """Return an option that fablint does not have: `why` states what does the same, or why nothing does."""

    def words(_: str) -> list[str]:
        raise UsageError("", why)

    return PeerOption(spellings, form, f"not available: {why}", words, is_here=False)
