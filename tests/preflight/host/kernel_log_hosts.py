"""Hosts with lines of the kernel in their snapshot."""

from __future__ import annotations

from preflight_help import host, of

from fablint.model.preflight_results import Outcome
from fablint.preflight.check import Check
from fablint.preflight.host import Host
from fablint.snapshot.host_snapshot import Output

HOUR = 3600.0
FAIL, WARN, PASS, SKIP = Outcome.FAIL, Outcome.WARN, Outcome.PASS, Outcome.SKIP
ROOT = {
    "/proc/self/mountinfo": "22 1 253:0 / / rw,relatime shared:1 - xfs /dev/mapper/rl-root rw,attr2",
    "/sys/class/block/dm-0/dev": "253:0",
    "/sys/class/block/sda1/dev": "8:1",
}
MLX5 = "mlx5_core 0000:d2:00.0: "


def logged(*lines: str, hours: float = 1.0, files: dict[str, str] | None = None, **more: str) -> Host:
    """A host whose log has these lines, one a second; it is up for so many hours since the first."""
    text = "\n".join(f"<4>[{100.0 + index:12.6f}] {line}" for index, line in enumerate(lines))
    known = {"/proc/uptime": f"{100.0 + hours * HOUR:.2f} 5.0", **(files or {})}
    return host("n1", known, kernel_log=Output(text, status=0), commands=more)


def reported(check: Check, *lines: str, hours: float = 1.0, files: dict[str, str] | None = None) -> list[str]:
    """`OUTCOME TARGET` of all results."""
    results = of(check, logged(*lines, hours=hours, files=files))
    return [f"{result.outcome.name} {result.target}".strip() for result in results]
