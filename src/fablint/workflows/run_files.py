"""What a run directory keeps besides its rows, for every diagnosis of it: topology, findings, thresholds, levels."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fablint.errors import BrokenRunError, IncompleteError, UsageError
from fablint.model import PlannedLevel, Run, Scope, Topology
from fablint.system import DISK_FULL, replace_text

if TYPE_CHECKING:
    from fablint.model import Finding, Verdict
    from fablint.model.thresholds import Threshold
    from fablint.preflight.site.expectations import Site
    from fablint.system import System

TOPOLOGY = "topology.yaml"  # of a run directory: what is known of the fabric that was measured
SITE = "site.toml"  # of a run directory: what its site promises and expects
INTRA_NODE = str(Scope.INTRA_NODE)  # level within hosts, and the name of its run
LAUNCHES = "launches"  # of a run directory: launches of other ranks than its own, numbered or named by their level
ROUNDS = "rounds"  # of a run directory: the rounds that its plans name, and what its check needs to go on
CHECK = f"{ROUNDS}/check.json"  # of a run directory: beside the rounds, since only these may be there before the run is
LEVELS = f"{ROUNDS}/levels.json"  # of a run directory: the levels that its check planned, beside their rounds
HOST_FACTS = "hosts.json"  # of a run directory: CPU model, firmware, driver, image of its hosts
FINDINGS = "findings.json"  # of a run directory: what is known of its hosts besides the measurement
COUNTERS = "counters.json"  # of a run directory: counters of its NICs before the first launch and after the last


def keep_text(path: Path, text: str) -> None:
    """Write a file of a run directory in one step. Raises IncompleteError, and leaves what was there."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_text(path, text)
    except OSError as error:
        full = error.errno in DISK_FULL
        hint = "free space, then go on with fablint resume" if full else "give another place with -o"
        raise IncompleteError(f"cannot write {path}: {error.strerror}", hint) from None


def own_file(run: Run, name: str) -> Path | None:
    """A file of the run's own, if it has it."""
    path = run.path / name if run.path is not None else None
    return path if path is not None and path.exists() else None


def whole_run(path: Path) -> Path:
    """The run that a launch of other ranks, `RUN/launches/NAME.run`, belongs to; another run is one itself."""
    return path.parent.parent if path.parent.name == LAUNCHES else path


def refuse_unbegun(run: Path) -> None:
    """Raise IncompleteError where a check was ended before it measured anything between hosts."""
    if (run / CHECK).exists() and not (run / "zarr.json").exists():
        raise IncompleteError(
            f"{run}: its check was ended before anything was measured between hosts", f"fablint resume {run} goes on"
        )


def load_topology(path: Path | None, run: Run | None = None) -> Topology | None:
    """The topology in a file; where none is given, that which the run was measured with."""
    path = path or (own_file(run, TOPOLOGY) if run is not None else None)
    if path is None:
        return None
    from fablint.discover import load_topology as load

    return load(path)


def keep_topology(topology: Topology | None, run: Path) -> None:
    """Write the topology into a run directory, so that who reads the run has it."""
    if topology is not None:
        from fablint.discover import write_topology

        keep_text(run / TOPOLOGY, write_topology(topology))


def topology_of(text: str, run: Path) -> Topology | None:
    """The topology that a check has kept as text; None where it knows none."""
    if not text:
        return None
    from fablint.topology.file_reader import read_topology

    return read_topology(run / TOPOLOGY, text)


def site_of(text: str, run: Path) -> Path | None:
    """The site file that a check has kept as text, written into its run directory."""
    if not text:
        return None
    path = run / ROUNDS / SITE  # where there is no run yet, only rounds may be
    keep_text(path, text)
    return path


def keep_findings(
    findings: Sequence[Finding], run: Path, notes: Sequence[str] = (), network: Sequence[str] = ()
) -> None:
    """Write what is known besides the measurement into a run directory, so that every diagnosis counts it.

    `network` is what of the network preflight did not look at.
    """
    if not findings and not notes and not network:
        return
    from fablint.model import Coverage, Verdict

    nothing = Coverage(pairs_planned=0, pairs_measured=0, hosts=0, hosts_judged=0)
    known = Verdict(
        verdict="incomplete",
        exit_code=3,
        findings=tuple(findings),
        coverage=nothing,
        notes=tuple(notes),
        network=tuple(network),
    )
    keep_text(run / FINDINGS, known.model_dump_json(indent=1))


def keep_counters(counters: Mapping[str, Any], run: Path) -> None:
    """Write counters of NICs, `before` and `after` by host, NIC and name, into a run directory."""
    if counters:
        keep_text(run / COUNTERS, json.dumps({"format": 1, **counters}))


def with_own_counters(run: Run) -> Run:
    """The run whose attribute `counters` spans the whole check, where that was kept; the engine's are of one launch.

    BrokenRunError where the file cannot be read.
    """
    path = own_file(run, COUNTERS)
    if path is None:
        return run
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        known = run.attributes.get("counters") or {}
        both = {when: _laid_over(known.get(when) or {}, kept[when]) for when in ("before", "after")}
    except OSError as error:
        raise BrokenRunError(f"{path}: cannot be read ({error.strerror})", "restore it, or measure again") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BrokenRunError(f"{path}: is no table of counters", "remove it, or measure again") from None
    return replace(run, attributes={**run.attributes, "counters": both})


def _laid_over(known: Mapping[str, Any], kept: Mapping[str, Any]) -> dict[str, dict[str, dict[str, int]]]:
    """Counters by host and NIC: those of `known`, and those of `kept` in the place of their like."""
    return {
        host: {
            nic: {**known.get(host, {}).get(nic, {}), **kept.get(host, {}).get(nic, {})}
            for nic in {**known.get(host, {}), **kept.get(host, {})}
        }
        for host in {**known, **kept}
    }


def keep_host_facts(facts: Mapping[str, Mapping[str, str]], run: Path) -> None:
    """Write facts of the hosts into a run directory: they may separate a population of slower hosts."""
    path = run / HOST_FACTS
    if facts and not path.exists():  # each judgement of a check comes by here, and they do not change
        keep_text(path, json.dumps({"format": 1, "hosts": facts}, indent=1))


def load_host_facts(run: Run) -> Mapping[str, Mapping[str, str]]:
    """Facts by host and name; empty where the run has none. BrokenRunError where the file cannot be read."""
    path = own_file(run, HOST_FACTS)
    if path is None:
        return {}
    try:
        hosts = json.loads(path.read_text(encoding="utf-8"))["hosts"]
        return {str(host): {str(name): str(value) for name, value in own.items()} for host, own in hosts.items()}
    except OSError as error:
        raise BrokenRunError(f"{path}: cannot be read ({error.strerror})", "restore it, or measure again") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BrokenRunError(f"{path}: is no table of hosts", "remove it, or measure again") from None


def load_thresholds(path: Path) -> Sequence[Threshold]:
    """What a site promises of its fabric (docs/reference/site-file.md)."""
    from fablint.plan.check.site_thresholds import parse_thresholds

    return parse_thresholds(_site_text(path), str(path))


def load_site(path: Path | None, system: System) -> Site | None:
    """What a site expects of its hosts today; None where no path is given. Its thresholds are read as well, so that
    a file which cannot be used is refused before anything is asked or measured.
    """
    from fablint.preflight.site.site_file import parse_site

    if path is None:
        return None
    load_thresholds(path)
    return parse_site(_site_text(path), str(path), system.now().date())


def _site_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", "give a site file (TOML)") from error
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not a text file", "give a site file (TOML)") from None


def keep_site(path: Path | None, run: Path) -> None:
    """Put the site file into a run directory, so that every diagnosis compares with it."""
    if path is not None:
        keep_text(run / SITE, path.read_text(encoding="utf-8"))


def load_findings(path: Path | None) -> Sequence[Finding]:
    """Findings of other stages, such as loopback tests, from a verdict in JSON (docs/reference/verdict.md)."""
    found = load_verdict(path)
    return found.findings if found is not None else ()


def load_verdict(path: Path | None) -> Verdict | None:
    """A verdict in JSON; None where no path is given. Raises UsageError where it cannot be read."""
    if path is None:
        return None
    from pydantic import ValidationError

    from fablint.model import Verdict

    try:
        return Verdict.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", "give a verdict.json") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"{path}: {where + ': ' if where else ''}{first['msg']}", "give a verdict.json") from error


def keep_levels(levels: Sequence[PlannedLevel], run: Path) -> None:
    """Write the levels of a check into a run directory, in one step, so that a killed check leaves what it planned."""
    entries = [{"name": one.name, "rows": one.rows, "skipped": one.skipped} for one in levels]
    keep_text(run / LEVELS, json.dumps({"format": 1, "levels": entries}, indent=1))


def load_levels(run: Run) -> Sequence[PlannedLevel]:
    """The levels that the check of a run planned; none where the run is of no check by levels."""
    path = own_file(run, LEVELS)
    if path is None:
        return ()
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))["levels"]
        rows = [None if one["rows"] is None else tuple(map(str, one["rows"])) for one in entries]
        return [PlannedLevel(str(one["name"]), of, one["skipped"]) for one, of in zip(entries, rows, strict=True)]
    except OSError as error:
        raise BrokenRunError(f"{path}: cannot be read ({error.strerror})", "restore it, or measure again") from None
    except (ValueError, KeyError, TypeError):
        raise BrokenRunError(f"{path}: is no list of planned levels", "restore it, or measure again") from None


def missing_levels(run: Run) -> list[str]:
    """Names of the levels that the check of a run planned and never began, in their order."""
    return [level.name for level in load_levels(run) if level.is_missing(run.attributes["rows"])]
