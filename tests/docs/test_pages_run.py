"""Every command and every line of Python in the code blocks of README and docs/ does what the page says."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from command_rules import RULES, as_run_here
from documented_commands import ROOT
from page_blocks import blocks
from page_runner import Ran, prepare, run_page, simulate, simulate_others

pytestmark = pytest.mark.long  # runs the commands of all pages

FOLDERS = [ROOT / "docs" / name for name in ("tutorial", "how-to", "explanation", "reference")]
SOURCES = [ROOT / "README.md", *(page for folder in FOLDERS for page in sorted(folder.glob("*.md")))]
PAGES = [page for page in SOURCES if any(block.kind != "text" for block in blocks(page))]
QUICK = {"act.md", "export.md", "read-a-run.md"}
# Exit codes beside 0: a verdict is not a failure of a command that judges.
VERDICTS = {
    r"fablint (analyse|report|compare|check|resume)\b": {1, 3},
    r"fablint preflight\b": {3, 4},
    r"python \$INTERRUPTED": {130},
    r"fablint (status|wait) (4711|night.run)": {2},  # no such job was submitted from this machine
}
# Blocks of text that are what this command prints, but for white space.
PRINTED = {
    ("README.md", "FAULT       1 fault; 64 hosts judged"): "fablint analyse demo-fabric.run",
    ("docs/how-to/read-a-report.md", "FAULT       1 fault; 64 hosts judged"): "fablint analyse demo-fabric.run",
}


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that stands for the runs that pages name."""
    folder = tmp_path_factory.mktemp("simulated")
    simulate(folder / "demo-fabric.run")
    simulate_others(folder)
    return folder


def failure(ran: Ran) -> str:
    """What went wrong with a command; empty if it did what its page says."""
    accepted = {0}.union(*(codes for pattern, codes in VERDICTS.items() if re.search(pattern, ran.command)))
    if ran.status in accepted and not re.search(r"Traceback|Warning:|internal error", ran.output):
        return ""
    return f"{ran.where}: {ran.command}: exit code {ran.status}: {ran.output[-2000:]}"


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=() if page.name in QUICK else pytest.mark.long, id=page.name) for page in PAGES],
)
def test_a_page_runs(page: Path, simulated: Path, tmp_path: Path) -> None:
    if "git clone" in page.read_text() and not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    prepare(page, simulated, tmp_path)
    failures = [text for ran in run_page(page, tmp_path) if (text := failure(ran))]
    assert failures == []


def printed_blocks() -> list:
    found = {(block.page, block.lines[0]): block for page in SOURCES for block in blocks(page) if block.kind == "text"}
    return [pytest.param(found[key], command, id=key[0]) for key, command in PRINTED.items()]


@pytest.mark.parametrize(("block", "command"), printed_blocks())
def test_a_block_is_what_the_command_prints(
    block, command: str, simulated: Path, tmp_path: Path, fablint_in_process
) -> None:
    shutil.copytree(simulated / "demo-fabric.run", tmp_path / "demo-fabric.run")
    printed = " ".join(fablint_in_process(*command.split()[1:]).stdout.split())
    for paragraph in "\n".join(block.lines).split("\n\n"):
        assert " ".join(paragraph.split()) in printed


def test_every_rule_is_used() -> None:
    lines = [line for page in PAGES for block in blocks(page) if block.kind == "shell" for line in block.lines]
    used = {rule for line in lines for rule in as_run_here(line).rules}
    assert [rule.pattern for rule in RULES if rule not in used] == []
