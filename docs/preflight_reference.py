"""Writes docs/reference/preflight-checks.md from the checks: `.venv/bin/python docs/preflight_reference.py`."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from fablint.model.preflight_results import Rule
from fablint.preflight.registry import CHECKS

PAGE = Path(__file__).parent / "reference" / "preflight-checks.md"
HEAD = """\
# Checks of preflight

Written by `docs/preflight_reference.py` from the table of checks; do not edit.

[`fablint preflight`](../how-to/preflight.md) asks every host once and judges what it says. An id has at most 20
letters: so much of a reason `sinfo -R` shows.

* `fail`: the host is not fit to be measured. `warn`: it can be used. `info`: told, no more. Some checks that can fail
  warn of what is less bad; their rule says of what.
* Like hosts are those of the same machine (vendor and product name); most are more than half of them, and at least two.
* What cannot be seen is skipped and says why; what is printed and cannot be understood is an error. Neither is a pass.
* Error counters are judged by how much they grew: within the snapshot's window, and in an hour, since readings of the
  last time, of an hour and of a day ago, if the host was not booted since; at the first look by totals of like hosts.
* (root): only root sees it on most systems; others skip it.
"""
FAMILIES = {  # by the first word of the id
    "net": "Network interfaces, addresses, routes",
    "lldp": "Neighbours (LLDP)",
    "ss": "Slingshot addresses",
    "cxi": "Slingshot NICs",
    "ib": "InfiniBand and RoCE",
    "opa": "Omni-Path",
    "pcie": "PCI Express",
    "gpu": "GPUs",
    "host": "Hosts",
    "log": "Kernel log",
    "tool": "Health tools of vendors",
    "fabric": "Tools of the fabric",
}


def render() -> str:
    families: dict[str, list[Rule]] = defaultdict(list)
    for check in CHECKS:
        families[check.id.partition(".")[0]].append(check.described())
    return "\n".join([HEAD, *(_family(FAMILIES[name], families[name]) for name in FAMILIES if name in families)])


def _family(title: str, rules: list[Rule]) -> str:
    rows = [
        f"| `{one.id}` | {_cell(one.what)}{' (root)' if one.root else ''} | {_cell(one.rule)} | {one.severity}: "
        f"{one.component} | {_cell(one.source)} | {_cell(one.mend)} |"
        for one in rules
    ]
    head = ["| check | looks at | holds if | else | source | to mend it |", "| --- | --- | --- | --- | --- | --- |"]
    return "\n".join([f"## {title}", "", *head, *rows, ""])


def _cell(words: str) -> str:
    return words.replace("|", "\\|").replace("*", "\\*")


if __name__ == "__main__":
    PAGE.write_text(render())
