"""Pages that need no other file: their parts, the policy that accepts exactly these, and how they are written."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib import resources
from pathlib import Path

from jinja2 import Environment, StrictUndefined, Template

from fablint.errors import IncompleteError, UsageError
from fablint.system import DISK_FULL
from fablint.system.written_files import replace_text

_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(%|x|min|[num]?s|[kMGT]?i?B(/s)?)(?!\w))")


def page_template(name: str, package: str = "fablint.report.html", **names: object) -> Template:
    """Compile the template of a page, which uses `names`; a line ends at no space between a figure and its unit."""
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_unbroken
    )
    environment.globals.update(names)
    return environment.from_string(asset(name, package))


def _unbroken(value: object) -> object:
    """A text with no-break spaces before units; what is markup as it is."""
    return _BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", value) if type(value) is str else value


def asset(name: str, package: str = "fablint.report.html") -> str:
    """Text of a file in the folder `templates` of a package."""
    return resources.files(package).joinpath("templates", name).read_text(encoding="utf-8")


def source_hash(source: str) -> str:
    """The source expression that lets a page's policy accept exactly this style or script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()


def write_page(page: str, path: Path, again: str) -> None:
    """Write a page to `path`, replacing what was there in one step. Makes the folder if it is missing.

    Parameters
    ----------
    page
        The page.
    path
        The file.
    again
        The command that writes the page once there is space on the disk.

    Raises
    ------
    IncompleteError
        The disk is full.
    UsageError
        The page cannot be written for another reason.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_text(path, page)
    except BrokenPipeError:
        raise  # the reader of standard output has ended
    except OSError as error:
        if error.errno in DISK_FULL:
            hint = f"free space, then {again}"
            raise IncompleteError(f"cannot write the report {path}: {error.strerror}", hint) from None
        raise UsageError(f"cannot write the report {path}: {error.strerror}", "choose another output") from error
