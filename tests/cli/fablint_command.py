"""How tests start fablint as a program of its own."""

from __future__ import annotations

import sys

COMMAND = (sys.executable, "-m", "fablint.cli")
