"""Stand-in of a user: `interrupted.py COMMAND... -o RUN` presses Ctrl-C when RUN has figures."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

command = sys.argv[1:]
run = Path(command[command.index("-o") + 1])
process = subprocess.Popen(command, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
while process.poll() is None and not any(run.rglob("c.*")):
    time.sleep(0.05)
process.send_signal(signal.SIGINT)
sys.exit(process.wait())
