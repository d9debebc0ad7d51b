"""The command line of another program becomes one of `fablint bench`, by the table of that program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fablint.cli.peers.peer_options import PeerOption
from fablint.errors import UsageError


@dataclass(frozen=True)
class PeerWords:
    """Words of `fablint bench` that a line of another program becomes, without those of the options one by one."""

    name: str  # of the benchmark
    words: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # lines for stderr: what differs from the program


@dataclass(frozen=True)
class GivenLine:
    """What a line of another program says: its name, the options that it gives, and the words after them."""

    name: str
    options: Mapping[str, str]
    words: Sequence[str]


_SWITCH = PeerOption("", "", "")
Translate = Callable[[GivenLine], PeerWords]


def without_words(line: GivenLine) -> PeerWords:
    """Translate a line of which every option stands for itself. Raises UsageError for words that are not options."""
    if line.words:
        raise UsageError(f"{line.name} takes no word '{line.words[0]}'", f"see fablint bench {line.name} --help")
    return PeerWords(line.name)


@dataclass(frozen=True)
class Peer:
    """A program or a set of programs whose command lines `bench` understands.

    `families` are the benchmarks of `bench` that have these options; `programs` are further names, which `translate`
    replaces by the name of a benchmark.
    """

    name: str
    options: tuple[PeerOption, ...]
    families: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    translate: Translate = without_words

    def options_of(self, name: str) -> dict[str, PeerOption]:
        """Return the options of a benchmark or a program by their spellings."""
        options = (option for option in self.options if option.where is None or option.where(name))
        return {spelling: option for option in options for spelling in option.spellings.split()}


def peer_line(peer: Peer, name: str, arguments: list[str], words_of: Callable[[list[str]], list[str]]) -> PeerWords:
    """Translate a line of a program.

    Parameters
    ----------
    peer
        The program.
    name
        The name that the line gives: of a benchmark, or of one of `programs`.
    arguments
        The line, with options of the program and of `bench`.
    words_of
        Returns the words among the arguments of `bench` that are neither options nor the name.

    Returns
    -------
    PeerWords
        Name of the benchmark, and all arguments of `bench` after it.

    Raises
    ------
    UsageError
        The line has an option or a value that fablint does not have.
    """
    options_by_spelling = peer.options_of(name)
    given, spelled, rest = _parsed(peer, options_by_spelling, arguments)
    rest.remove(name)
    free = words_of([name, *rest])
    line = peer.translate(GivenLine(name, given, free))
    words: list[str] = []
    for option in dict.fromkeys(options_by_spelling.values()):
        if option.words and option.parameter in given:
            words += _translated(f"{spelled[option.parameter]} of {peer.name}", option, given[option.parameter])
    for word in free:
        rest.remove(word)
    return PeerWords(line.name, [*line.words, *words, *rest], line.notes)


def _translated(name: str, option: PeerOption, value: str) -> list[str]:
    """Return the words of an option; `name` stands for it in errors."""
    assert option.words is not None
    try:
        return option.words(value)
    except UsageError as error:
        what = f": {error.message}" if error.message else " is not available"
        raise UsageError(f"{name}{what}", error.hint) from None


def _parsed(
    peer: Peer, options_by_spelling: Mapping[str, PeerOption], arguments: list[str]
) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """Return values and spellings of the options of the program by parameter, and all other words in their order.

    A value follows as a word, after `=`, or after the letter of the option: `-e 8M`, `--maxbytes=8M`, `-e8M`.
    """
    values: dict[str, str] = {}
    spelled: dict[str, str] = {}
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        spelling, equals, value = word.partition("=")
        if (
            spelling not in options_by_spelling
            and not word.startswith("--")
            and options_by_spelling.get(word[:2], _SWITCH).form
        ):
            spelling, equals, value = word[:2], "=", word[2:]
        option = options_by_spelling.get(spelling)
        if option is None:
            rest.append(word)
            continue
        spelled[option.parameter] = spelling
        needs_next = bool(option.form) and not equals
        values[option.parameter] = _next(words, peer, spelling) if needs_next else value
    return values, spelled, rest


def _next(words: Iterator[str], peer: Peer, spelling: str) -> str:
    value = next(words, None)
    if value is None:
        raise UsageError(f"{spelling} of {peer.name} requires a value", "give it after the option")
    return value
