"""Writes the completion files of share/ for bash, zsh and fish: `.venv/bin/python docs/shell_completion.py`.

Each asks fablint itself at the Tab key, so they stay the same when verbs and options change.
"""

from __future__ import annotations

from pathlib import Path

from click.shell_completion import get_completion_class

from fablint.cli import cli

SHARE = Path(__file__).parents[1] / "share"
FILES = {
    "bash": SHARE / "bash-completion" / "completions" / "fablint",
    "zsh": SHARE / "zsh" / "site-functions" / "_fablint",
    "fish": SHARE / "fish" / "vendor_completions.d" / "fablint.fish",
}


if __name__ == "__main__":
    for shell, path in FILES.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(get_completion_class(shell)(cli, {}, "fablint", "_FABLINT_COMPLETE").source())
