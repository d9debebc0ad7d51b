"""Outputs of other tools -> numbers -> a run. Every line that is not used is reported.

The parsers are pure: text in, frozen numbers with their lines out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fablint.model import Run
from fablint.store.importing.formats import import_file
from fablint.store.importing.linktest import LinktestLog, parse_linktest
from fablint.store.importing.net_sanitizer import NetSanitizerText, parse_net_sanitizer
from fablint.store.importing.osu import OsuTable, OsuText, parse_osu
from fablint.store.importing.to_run import run_of

__all__ = [
    "LinktestLog",
    "NetSanitizerText",
    "OsuTable",
    "OsuText",
    "import_run",
    "parse_linktest",
    "parse_net_sanitizer",
    "parse_osu",
]


def import_run(paths: Sequence[Path], hosts: Sequence[str] = ()) -> Run:
    """Run, in memory, with the results of all files.

    Parameters
    ----------
    paths
        Outputs of one tool.
    hosts
        Host of each rank, in order, for files that do not name them.

    Raises
    ------
    UsageError
        A file cannot be read, has an unknown format, or comes from another tool than the others; the message names it.
    """
    return run_of([str(path) for path in paths], [import_file(path, hosts) for path in paths])
