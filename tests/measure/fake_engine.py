"""A fake engine: says on stderr what a script tells it to and exits as reported. For tests of the session alone."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path


def main() -> None:
    script = os.environ["FAKE_ENGINE_SCRIPT"]
    plan = sys.stdin.read()
    output = Path(sys.argv[sys.argv.index("-o") + 1])
    for step in script.splitlines():
        verb, _, rest = step.partition(" ")
        if verb == "say":
            print(f"fablint-engine: {rest}", file=sys.stderr, flush=True)
        elif verb == "launcher-says":
            print(rest, flush=True)
        elif verb == "make-run":
            output.mkdir()
            (output / "zarr.json").write_text("{}")
        elif verb == "say-plan":
            print(f"fablint-engine: error: {plan.strip()}", file=sys.stderr, flush=True)
        elif verb == "nap":
            time.sleep(float(rest))
        elif verb == "stall" or (verb == "leave-a-child-that-stalls" and os.fork() == 0):
            time.sleep(600)
        elif verb == "die":
            os.kill(os.getpid(), int(rest))
        elif verb == "exit":
            sys.exit(int(rest))


main()
