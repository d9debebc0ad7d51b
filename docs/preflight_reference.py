"""Writes docs/reference/preflight-checks.md from the checks: `.venv/bin/python docs/preflight_reference.py`."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from fablint.model.preflight_results import Rule
from fablint.preflight.check_registry import CHECKS

PAGE = Path(__file__).parent / "reference" / "preflight-checks.md"
HEAD = """\
# Checks of preflight

Written by `docs/preflight_reference.py` from the table of checks; do not edit.

[`fablint preflight`](../how-to/preflight.md) takes one snapshot of every host and judges it. An id has at most 20
letters, because `sinfo -R` shows 20 letters of a reason.

* `fail`: the host is unfit. `warn`: the host can be used. `info`: reported, nothing else. Some checks that can fail
  warn of less severe deviations; their rule names these.
* Similar hosts are of one class: the same machine (vendor and product name), CPU model and cards; most: more than half
  of them, and at least two.
* A fact that cannot be seen is skipped with its reason; output that is not understood is an error. Neither is a pass.
* Error counters are judged by their growth: within the snapshot's window, and per hour since the last reading and those
  of an hour and of a day ago, if the host was not booted since; at the first reading by totals of similar hosts.
* (root): only root sees it on most systems; for other users it is skipped.
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
        families[check.id.partition(".")[0]].append(check)
    if unknown := families.keys() - FAMILIES.keys():
        raise SystemExit(f"FAMILIES has no title for checks called {', '.join(sorted(unknown))}.*")
    return "\n".join([HEAD, *(_family(FAMILIES[name], families[name]) for name in FAMILIES if name in families)])


def _family(title: str, rules: list[Rule]) -> str:
    rows = [
        f"| `{rule.id}` | {_cell(rule.what)}{' (root)' if rule.root else ''} | {_cell(rule.rule)} | {rule.severity}: "
        f"{rule.component} | {_cell(rule.source)} | {_cell(rule.remedy)} |"
        for rule in rules
    ]
    head = ["| check | looks at | holds if | else | source | remedy |", "| --- | --- | --- | --- | --- | --- |"]
    return "\n".join([f"## {title}", "", *head, *rows, ""])


def _cell(words: str) -> str:
    return words.replace("|", "\\|").replace("*", "\\*")


if __name__ == "__main__":
    PAGE.write_text(render())
