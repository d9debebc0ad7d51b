"""The lists of transports for users: each has every transport of the engine's table that measures a network."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from fablint.cli.bench_options import SETTINGS
from fablint.model.registry import TRANSPORTS

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "engine.md").read_text(encoding="utf-8")
MEASURING = [name for name, info in TRANSPORTS.items() if not info.moves_nothing and not info.damages_payloads]


def missing(names: Iterable[str], text: str) -> list[str]:
    """Return the names that a text does not have as words."""
    return [name for name in names if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)]


def test_the_help_has_every_transport() -> None:
    help_text = SETTINGS["transport"].help
    assert missing(MEASURING, help_text) == []


def test_the_page_of_the_engine_has_every_transport() -> None:
    (line,) = re.findall(r"^\| `--transport T` .*$", PAGE, re.MULTILINE)
    (section,) = re.findall(r"^##+ Transports$.*?(?=^## )", PAGE, re.MULTILINE | re.DOTALL)
    assert missing(TRANSPORTS, line) == []
    assert missing(MEASURING, section) == []


def test_a_transport_that_a_list_lacks_is_named() -> None:
    assert missing(["tcp", "cuda-p2p", "p2p"], "mpi, tcp or cuda-p2p") == ["p2p"]
