"""Writes the man pages share/man: of verbs (section 1) from the help texts, of files from docs/reference.

`.venv/bin/python docs/man_pages.py`
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
from cli_reference import ENVIRONMENT
from manual_text import escaped, filled, verbatim
from markdown_manual import body

from fablint import __version__
from fablint.cli import cli
from fablint.errors import EXIT_CODES

FOLDER = Path(__file__).parents[1] / "share" / "man"
REFERENCE = Path(__file__).parent / "reference"
# Name and section -> page of docs/reference, and what it describes.
REFERENCE_PAGES = {
    "fablint-topology.5": ("topology-file.md", "topology file: the switch of each host, cables, routing"),
    "fablint-site.5": ("site-file.md", "site file: thresholds, settings of hosts, known faults"),
    "fablint-run.5": ("run-format.md", "run directory: arrays and attributes of a measurement"),
    "fablint-checks.7": ("preflight-checks.md", "checks of fablint preflight: what each examines, and its rule"),
}
_VERBATIM = "\b\n"  # how click marks a paragraph that keeps its lines
_EXAMPLES = re.compile(r"^Examples?:\n")


def paragraphs(text: str) -> tuple[list[str], list[str]]:
    """Lines of the description and of the examples in the text of a command."""
    description: list[str] = []
    examples: list[str] = []
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        keeps_lines = paragraph.startswith(_VERBATIM)
        body = paragraph.removeprefix(_VERBATIM)
        if _EXAMPLES.match(body):
            examples += verbatim(_EXAMPLES.sub("", body))
        elif keeps_lines:
            description += verbatim(body)
        elif body.strip():
            description += [".PP", filled(" ".join(body.split()))]
    return description, examples


def definitions(entries: Iterable[tuple[str, str]]) -> Iterator[str]:
    for term, words in entries:
        yield from (".TP", f"\\fB{escaped(term)}\\fR", filled(words) or "\\&")


def context_of(command: click.Command, parent: click.Context | None) -> click.Context:
    if parent is None:
        return click.Context(command, info_name="fablint", **cli.context_settings)
    return click.Context(command, parent=parent, info_name=command.name)


def options(context: click.Context) -> list[tuple[str, str]]:
    params = context.command.get_params(context)
    records = (param.get_help_record(context) for param in params if isinstance(param, click.Option))
    return [record for record in records if record]


def synopsis(context: click.Context) -> str:
    words = [context.command_path, *context.command.collect_usage_pieces(context)]
    return f"\\fB{escaped(words[0])}\\fR {escaped(' '.join(words[1:]))}"


def subcommands(context: click.Context) -> list[click.Context]:
    command = context.command
    if not isinstance(command, click.Group):
        return []
    return [context_of(command.get_command(context, name), context) for name in command.list_commands(context)]


def page(context: click.Context, also: Iterable[str]) -> str:
    """A man page of fablint or of one of its verbs; a verb of several commands has a section for each."""
    name = context.command_path.replace(" ", "-")
    short = context.command.get_short_help_str(200).rstrip(".")
    description, examples = paragraphs(context.command.help or "")
    lines = [
        f'.TH {name.upper()} 1 "" "fablint {__version__}" "fablint"',
        ".nh",  # names of programs are not split
        ".ad l",
        ".SH NAME",
        f"{escaped(name)} \\- {escaped(short[:1].lower() + short[1:])}",
        ".SH SYNOPSIS",
        synopsis(context),
        ".SH DESCRIPTION",
        *description[1:],  # without the paragraph mark behind the heading
    ]
    children = subcommands(context)
    if children and context.parent is None:
        verbs = ((f"fablint-{one.info_name}(1)", one.command.get_short_help_str(200)) for one in children)
        lines += [".SH VERBS", *definitions(verbs)]
    lines += [".SH OPTIONS", *definitions(options(context))]
    if context.parent is not None:
        lines += [line for child in children for line in command_section(child)]
    lines += [".SH EXIT STATUS", *definitions((str(code), meaning) for code, meaning in EXIT_CODES.items())]
    lines += [".SH ENVIRONMENT", *definitions((name, words.replace("`", "")) for name, words in ENVIRONMENT.items())]
    if examples:
        lines += [".SH EXAMPLES", *examples[1:]]
    return "\n".join([*lines, ".SH SEE ALSO", ", ".join(f"\\fB{escaped(one)}\\fR(1)" for one in also), ""])


def command_section(context: click.Context) -> Iterator[str]:
    """The lines about one command of a verb, such as `history add`."""
    description, examples = paragraphs(context.command.help or "")
    yield from (f".SH {context.command_path.upper().replace('-', ' ')}", synopsis(context))
    yield from description
    yield from examples
    yield from definitions(options(context))


def reference_page(name: str, file: str, short: str) -> str:
    """The man page of a page of docs/reference."""
    title, _, section = name.partition(".")
    text = (REFERENCE / file).read_text()
    lines = [
        f'.TH {title.upper()} {section} "" "fablint {__version__}" "fablint"',
        ".nh",
        ".ad l",
        ".SH NAME",
        f"{escaped(title)} \\- {escaped(short)}",
        ".SH DESCRIPTION",
    ]
    return "\n".join([*lines, *body(text), ".SH SEE ALSO", "\\fBfablint\\fR(1)", ""])


def render() -> dict[str, str]:
    """Text of each page, by its path below share/man."""
    top = context_of(cli, None)
    verbs = subcommands(top)
    names = [f"fablint-{verb.info_name}" for verb in verbs]
    pages = {"man1/fablint.1": page(top, names)}
    for name, verb in zip(names, verbs, strict=True):
        pages[f"man1/{name}.1"] = page(verb, ["fablint"])
    for name, (file, short) in REFERENCE_PAGES.items():
        pages[f"man{name[-1]}/{name}"] = reference_page(name, file, short)
    return pages


if __name__ == "__main__":
    pages = render()
    for outdated in {*FOLDER.glob("man*/*")} - {FOLDER / name for name in pages}:
        outdated.unlink()
    for name, text in pages.items():
        (FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / name).write_text(text)
