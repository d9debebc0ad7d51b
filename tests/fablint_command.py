"""How tests start fablint as a program of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

Fablint = Callable[..., subprocess.CompletedProcess[str]]  # the fixture `fablint`

COMMAND = (sys.executable, "-m", "fablint.cli")
