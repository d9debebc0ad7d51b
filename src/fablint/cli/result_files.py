"""Options that write the result of a verb into a file for other programs, one for each format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fablint.cli.options import WRITTEN_FILE, with_options
from fablint.cli.session import Session


def _remember(context: click.Context, parameter: click.Parameter, path: Path | None) -> None:
    if path is not None:
        context.ensure_object(Session).result_files[str(parameter.name)] = path


def _option(name: str, text: str) -> Any:
    return click.option(
        f"--{name}", type=WRITTEN_FILE, metavar="FILE", expose_value=False, callback=_remember, help=text
    )


RESULT_FILES = {  # names as in fablint.report.exports.formats, which imports the renderers
    "junit": "Write the result for a CI server.",
    "prometheus": "Write the result for a textfile collector.",
}
result_file_options = with_options(*(_option(name, text) for name, text in RESULT_FILES.items()))
