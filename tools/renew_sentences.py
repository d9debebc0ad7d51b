"""Write what the product says into the sentences that tests expect, for `make sentences`.

Read `git diff tests/sentences` afterwards. A test ends at its first sentence that differs. The tests that failed
are started again until no sentence changes.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

MOST_ROUNDS = 20  # a test of more sentences needs a second call


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder of sentences, by their names."""
    return {path.name: path.read_bytes() for path in folder.glob("*.toml")}


def renew(tests: Sequence[str], folder: Path) -> int:
    """Start pytest until no sentence changes; return its last exit status.

    Parameters
    ----------
    tests
        Words of pytest: files, folders, options. Without any, all tests that are not long.
    folder
        The folder of sentences.
    """
    pytest = [sys.executable, "-m", "pytest", "--renew-sentences", *(tests or ["-m", "not long", "-n", "auto"])]
    status = 0
    for number in range(MOST_ROUNDS):
        before = contents(folder)
        again = ["--last-failed"] if number else []
        status = subprocess.run([*pytest, *again], check=False).returncode
        if contents(folder) == before:
            break
    return status


if __name__ == "__main__":
    sys.exit(renew(sys.argv[1:], Path("tests/sentences")))
