"""Writes docs/reference/python.md from the docstrings of `fablint`: `.venv/bin/python docs/python_reference.py`."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import fablint

PAGE = Path(__file__).parent / "reference" / "python.md"
HEAD = """\
# Python interface

Written by `docs/python_reference.py` from the docstrings of the functions; do not edit.

The functions on this page are the whole interface: `fablint.NAME`. Modules below `fablint` are not part of it, and
change without notice. They need no extra, except for `open_run`: `pip install 'fablint[xarray]'`. The names `analyse`,
`simulate` and `report` are those of packages: the functions are called `diagnose`, `simulate_run` and `write_report`.
Errors derive from `fablint.errors.FablintError`; their text is one line.

In a notebook: open a run, judge it, plot it.

```pycon
>>> import fablint
>>> run = fablint.simulate_run("mesh", "4x4", faults=["host:h03:tx:-30%"])
>>> fablint.write_run(run, "night.run")
>>> diagnosis = fablint.diagnose(run)
>>> print(fablint.summary(run, diagnosis))                              # doctest: +SKIP
>>> times = fablint.open_run("night.run")["latency"].time_median        # doctest: +SKIP
>>> times.isel(size=0, repeat=0).plot()                                 # doctest: +SKIP
```
"""


def render() -> str:
    """Return the page."""
    return "\n".join([HEAD, *(described(name) for name in fablint.__all__ if name != "__version__")])


def described(name: str) -> str:
    """Return the section of a function: signature, docstring, examples as a block of code."""
    function = getattr(fablint, name)
    text, _, examples = (inspect.getdoc(function) or "").partition("Examples\n--------\n")
    heads = re.sub(r"^(\w+)\n-+$", r"**\1**\n", text.strip(), flags=re.MULTILINE)
    items = re.sub(r"^([\w, .]+)\n    (.*)$", r"* `\1`: \2", heads, flags=re.MULTILINE)
    body = re.sub(r"^    (?=\S)", "  ", items, flags=re.MULTILINE)
    shown = f"\n```pycon\n{examples.strip()}\n```\n" if examples else ""
    signature = str(inspect.signature(function)).replace("'", "")
    return f"## fablint.{name}\n\n`{name}{signature}`\n\n{body}\n{shown}"


if __name__ == "__main__":
    PAGE.write_text(render())
