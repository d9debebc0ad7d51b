"""Every command of fablint in the documentation and in integrations/ has a verb and options that exist."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
from documented_commands import ROOT, Command, commands, commands_of_line, documents

from fablint.cli import cli

# What a page writes for something that the reader chooses.
_PLACEHOLDERS = re.compile(r"^(\.\.\.|…|VERB|NAME|N|\[.*\])$")
_MISSING = re.compile(r"does not exist|no such file|cannot read|is not a directory", re.I)
_ABBREVIATED = re.compile(
    r"^Missing (argument|option|command)|requires an argument"
)  # allowed in prose: "`fablint act` prints"


def error_of(words: tuple[str, ...]) -> str:
    """What click says against a command; empty if it accepts it. Nothing is executed; files need not exist."""
    try:
        outer = cli.make_context("fablint", list(words))
        name, command, rest = cli.resolve_command(outer, [*outer._protected_args, *outer.args])
        inner = command.make_context(name, rest, parent=outer)
        if isinstance(command, click.Group) and inner._protected_args:
            name, command, rest = command.resolve_command(inner, [*inner._protected_args, *inner.args])
            command.make_context(name, rest, parent=inner)
    except click.exceptions.Exit:  # --help, --version
        return ""
    except click.exceptions.NoArgsIsHelpError:
        return ""
    except click.ClickException as error:
        message = error.format_message()
        return "" if _MISSING.search(message) else message
    return ""


def is_complete(command: Command) -> bool:
    """Whether all words are a user's, and none is a placeholder."""
    if command.words[:1] == ("found",):  # the headline of a ticket: "fablint found 1 fault"
        return False
    return bool(command.words) and not any(_PLACEHOLDERS.match(word) for word in command.words)


def is_abbreviated(command: Command, error: str) -> bool:
    """Whether a command in the middle of a sentence only lacks its arguments."""
    return command.in_prose and _ABBREVIATED.search(error) is not None


@pytest.mark.parametrize("page", documents(), ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_a_page_are_accepted(page: Path) -> None:
    wrong = {
        f"{command.where}: fablint {' '.join(command.words)}": error
        for command in commands(page)
        if is_complete(command) and (error := error_of(command.words)) and not is_abbreviated(command, error)
    }
    assert not wrong


def test_commands_in_the_files_of_integrations_are_accepted() -> None:
    lines = {
        "kubernetes/fablint-check.yaml": r"fablint check .*",
        "prometheus/fablint.rules.yml": r"fablint preflight -w HOSTS",
    }
    for name, pattern in lines.items():
        found = re.findall(pattern, (ROOT / "integrations" / name).read_text())
        assert found, name
        for line in found:
            for words in commands_of_line(line):
                assert error_of(words) == "", line


def test_the_pages_have_commands() -> None:
    assert sum(is_complete(command) for page in documents() for command in commands(page)) > 250


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("fablint preflight --json | fablint act --drain", [("preflight", "--json"), ("act", "--drain")]),
        ("salloc -k -N 64 fablint check      # a remark", [("check",)]),
        ("fablint act n.run --ticket | mail -s 'fabric' a@example.org", [("act", "n.run", "--ticket")]),
        ("*/10 * * * *  root  fablint preflight -q >/dev/null", [("preflight", "-q")]),
        ("fablint analyse a.run; echo $?", [("analyse", "a.run")]),
        ("FAULT  1 fault; see fablint report", []),
    ],
)
def test_commands_of_a_line(line: str, words: list[tuple[str, ...]]) -> None:
    assert list(commands_of_line(line)) == words


@pytest.mark.parametrize("line", ["fablint chekc", "fablint check --locla 8", "fablint measure -n 0 x"])
def test_a_wrong_command_is_an_error(line: str) -> None:
    (words,) = commands_of_line(line)
    assert error_of(words)
