"""What the tests of preflight share: snapshots made of a few files, or of a sample of a whole tree."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from fablint.model.preflight_results import Outcome, Result
from fablint.preflight.check import Check
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.snapshot.host_snapshot import Output, Snapshot
from snapshot_trees import nested

FIXTURES = Path(__file__).parents[1] / "fixtures"
SAMPLES = FIXTURES / "preflight"
NOW = 1767594000.0  # of the samples


def sample(name: str) -> str:
    """A file of tests/fixtures/preflight, or of tests/fixtures/discover."""
    path = SAMPLES / name
    return (path if path.exists() else FIXTURES / "discover" / name).read_text(errors="replace")


def host(
    name: str = "n1",
    files: Mapping[str, str] | None = None,
    *,
    later: Mapping[str, str] | None = None,
    commands: Mapping[str, str | Output] | None = None,
    window_s: float = 4.0,
    **more: Any,
) -> Host:
    """A host that has these files, by absolute path.

    `later` are counters as they are read the second time; those not in it have not changed. `commands` are outputs.
    """
    first = nested(files or {})
    second = nested({**(files or {}), **(later or {})})
    said = {key: Output(one, status=0) if isinstance(one, str) else one for key, one in (commands or {}).items()}
    taken = {"time": NOW, "files": first, "counters": first, "later": second, "commands": said, **more}
    return Host(Snapshot(name, window_s=window_s, **taken))


def nic(name: str = "hsn0", **values: str) -> dict[str, str]:
    """Files of a network interface as they should be, but for `values`."""
    usual = {"address": "02:11:22:33:44:55", "mtu": "9000", "speed": "200000", "operstate": "up", "carrier": "1"}
    usual |= {"type": "1", "flags": "0x1003", "carrier_changes": "2", "duplex": "full"}
    return {f"/sys/class/net/{name}/{key}": value for key, value in {**usual, **values}.items()}


def sysroot(name: str, host_name: str = "n1", **changed: str) -> dict[str, str]:
    """The files of a sample of a tree (`cxi-2rail-good`, `mlx5-2rail-bad`), found through its links as well."""
    tree: dict[str, str] = json.loads(sample(f"sysroot/{name}.json"))
    files = {path: text for path, text in tree.items() if not path.endswith("/@link")}
    for path, target in tree.items():
        if not path.endswith("/@link"):
            continue
        at = path.removesuffix("/@link")
        real = _resolved(f"{at.rpartition('/')[0]}/{target.strip()}")
        below = {key: text for key, text in files.items() if key.startswith(f"{real}/")}
        files |= {at + key.removeprefix(real): text for key, text in below.items()}
        device = real.partition("/infiniband/")[0]  # on a host DEVICE/device leads there
        files |= {
            f"{at}/device{key.removeprefix(device)}": text
            for key, text in tree.items()
            if key.startswith(f"{device}/") and "/infiniband/" not in key
        }
    return {**files, **changed}


def rows_of(*modules: ModuleType) -> list[Check]:
    """The checks of modules, in their order there."""
    return [value for module in modules for value in vars(module).values() if isinstance(value, Check)]


def of(check: Check, *hosts: Host, **known: Any) -> list[Result]:
    """What a check says of hosts."""
    return list(check.results(Fleet(list(hosts), **known)))


def wrong(results: Sequence[Result]) -> list[tuple[str, str, Outcome, str]]:
    """Host, target, outcome and message of what does not hold."""
    bad = (Outcome.FAIL, Outcome.WARN, Outcome.ERROR)
    return [(one.host, one.target, one.outcome, one.message) for one in results if one.outcome in bad]


def outcomes(results: Sequence[Result]) -> list[Outcome]:
    return [one.outcome for one in results]


def _resolved(path: str) -> str:
    """Without `..`; below /sys, links of the samples count from there."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part:
            parts.append(part)
    resolved = "/" + "/".join(parts)
    return resolved if resolved.startswith("/sys/bus") else resolved.replace("/sys/class/bus", "/sys/bus")
