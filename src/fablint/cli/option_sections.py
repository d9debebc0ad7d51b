"""Help of a verb with many options: sections with a title each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import click

COMMON = "Common options"  # those of all verbs, and what no section names
Records = Mapping[str, list[tuple[str, str]]]  # title -> options and their help


def write_sections(formatter: click.HelpFormatter, records: Records) -> None:
    """Write the sections that have options."""
    for title, lines in records.items():
        if lines:
            with formatter.section(title):
                formatter.write_dl(lines)


class SectionedCommand(click.Command):
    """A command with sections of options: `sections` are titles with the long spellings of their options."""

    sections: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, section by section."""
        titles = {spelling: title for title, spellings in self.sections.items() for spelling in spellings}
        records: dict[str, list[tuple[str, str]]] = {title: [] for title in (*self.sections, COMMON)}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx)
            if record is not None:
                records[titles.get(option.opts[-1], COMMON)].append(record)
        write_sections(formatter, records)
