"""Files of a run directory beside its rows, for every diagnosis of it: topology, findings, thresholds, levels."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fablint.errors import BrokenRunError, FullDiskError, IncompleteError, UsageError
from fablint.model import PlannedLevel, Run, Scope, Topology
from fablint.model.facts.run_attributes import PortCounters
from fablint.system import DISK_FULL
from fablint.system.written_files import replace_octets

if TYPE_CHECKING:
    from fablint.model import Diagnosis, Finding, Note, Verdict
    from fablint.model.limits.thresholds import Threshold
    from fablint.preflight.site.expectations import Site
    from fablint.system import System
    from fablint.text.site_suppressions import KnownFaults

# Paths below a run directory.
TOPOLOGY = "topology.yaml"  # of the fabric that was measured
SITE = "site.toml"  # thresholds and expectations of the site
INTRA_NODE = str(Scope.INTRA_NODE)  # level within hosts, and the name of its run
LAUNCHES = "launches"  # launches of other ranks than the run's, numbered or named by their level
TABLES = "tables"  # arrays of what its ranks and hosts have
ROUNDS = "rounds"  # rounds files of its plans, and what resuming its check takes
CHECK = f"{ROUNDS}/check.json"  # in the folder of the rounds, the only one that may exist before the run does
LEVELS = f"{ROUNDS}/levels.json"  # levels that its check planned
HOST_FACTS = "hosts.json"  # CPU model, firmware, driver, image of its hosts
FINDINGS = "findings.json"  # findings from outside the measurement, such as those of preflight
COUNTERS = "counters.json"  # counters of its NICs before the first launch and after the last
REPORT = "report"  # what is written about its judgement
DIAGNOSIS = f"{REPORT}/diagnosis.json"  # the last judgement by all of its files


def save_text(path: Path, text: str) -> None:
    """Replace a file of a run directory atomically. Raises IncompleteError and keeps the old file where that fails."""
    save_octets(path, text.encode("utf-8", "backslashreplace"))  # names of files may be any bytes


def save_octets(path: Path, octets: bytes) -> None:
    """Replace a file as `save_text` does."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_octets(path, octets)
    except BrokenPipeError:
        raise  # the reader of standard output has ended
    except OSError as error:
        if error.errno in DISK_FULL:
            raise full_disk(error, path) from None
        raise IncompleteError(f"cannot write {path}: {error.strerror}", "give another place with -o") from None


@contextmanager
def errors_of(path: Path, what: str, hint: str) -> Iterator[None]:
    """Raise BrokenRunError where a file of a run directory cannot be read inside the block, or is not `what`."""
    try:
        yield
    except OSError as error:
        raise BrokenRunError(f"{path}: cannot be read ({error.strerror})", "restore it, or measure again") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BrokenRunError(f"{path}: is not {what}", hint) from None


def full_disk(error: OSError, path: Path) -> FullDiskError:
    """Return the error about a file of a run that does not fit on its disk."""
    return FullDiskError(f"cannot write {path}: {error.strerror}", "free space, then go on with fablint resume")


def remove_unmeasured(path: Path) -> None:
    """Remove the folder of a check that was refused before anything was measured: its name is free again."""
    if not any(path.rglob("zarr.json")):
        shutil.rmtree(path, ignore_errors=True)


def reported_full_disk(error: str, run: Path) -> FullDiskError | None:
    """Return the error of the engine about the full disk of a run, without the advice in it; None for other errors."""
    reason = next((text for text in map(os.strerror, DISK_FULL) if text in error), "")
    if not reason or f"cannot write {run}" not in error:
        return None
    return FullDiskError(f"{error.partition(reason)[0]}{reason}", "free space; nothing was measured")


def own_file(run: Run, name: str) -> Path | None:
    """Return the path of a file in the directory of a run, of joined runs the first one; None where there is none."""
    return next(iter(own_files(run, name)), None)


def own_files(run: Run, name: str) -> list[Path]:
    """Return the paths of a file in the directories of a run: several where it was joined from runs that have it."""
    return [path for directory in run.directories if (path := directory / name).exists()]


def whole_run(path: Path) -> Path:
    """Return the run directory that `RUN/launches/NAME.run` belongs to; the path itself where it is another run."""
    return path.parent.parent if path.parent.name == LAUNCHES else path


def refuse_unbegun(run: Path) -> None:
    """Raise IncompleteError where a check was ended before it measured anything between hosts."""
    if (run / CHECK).exists() and not (run / "zarr.json").exists():
        raise IncompleteError(
            f"{run}: its check was ended before anything was measured between hosts", f"fablint resume {run} goes on"
        )


def load_topology(path: Path | None, run: Run | None = None) -> Topology | None:
    """Read the topology of a file; without a file the one in the directory of the run. None where there is none."""
    path = path or (own_file(run, TOPOLOGY) if run is not None else None)
    if path is None:
        return None
    from fablint.discover import load_topology as load

    return load(path)


def save_topology(topology: Topology | None, run: Path) -> None:
    """Write the topology into a run directory, for every later diagnosis; nothing where it is not known."""
    if topology is not None:
        from fablint.discover import write_topology

        save_text(run / TOPOLOGY, write_topology(topology))


def topology_of(text: str, run: Path) -> Topology | None:
    """Parse the topology text in the record of a check; None where it is empty."""
    if not text:
        return None
    from fablint.topology.file_reader import read_topology

    return read_topology(run / TOPOLOGY, text)


def site_of(text: str, run: Path) -> Path | None:
    """Write the site file of a check's record into its run directory and return the path; None where it is empty."""
    if not text:
        return None
    path = run / ROUNDS / SITE  # where there is no run yet, only rounds may be
    save_text(path, text)
    return path


def save_findings(
    findings: Sequence[Finding], run: Path, notes: Sequence[Note] = (), network: Sequence[str] = ()
) -> None:
    """Write findings from outside the measurement into a run directory, for every later diagnosis.

    They replace those of an earlier call.

    Parameters
    ----------
    findings, notes
        For the verdict.
    run
        Run directory.
    network
        Networks that preflight did not examine.
    """
    verdict = external_verdict(findings, notes, network)
    if verdict is None:
        (run / FINDINGS).unlink(missing_ok=True)
    else:
        save_text(run / FINDINGS, verdict.model_dump_json(indent=1))


def external_verdict(
    findings: Sequence[Finding], notes: Sequence[Note] = (), network: Sequence[str] = ()
) -> Verdict | None:
    """Return a verdict of findings from outside the measurement, as `save_findings` writes it; None without any."""
    if not findings and not notes and not network:
        return None
    from fablint.model import Coverage, Verdict

    nothing = Coverage(pairs_planned=0, pairs_measured=0, hosts=0, hosts_judged=0)
    return Verdict(
        verdict="incomplete",
        exit_code=3,
        findings=tuple(findings),
        coverage=nothing,
        notes=tuple(notes),
        network=tuple(network),
    )


def save_counters(counters: Mapping[str, Any], run: Path) -> None:
    """Write counters of NICs, `before` and `after` by host, NIC and name, into a run directory."""
    if counters:
        save_text(run / COUNTERS, json.dumps({"format": 1, **counters}))


def with_own_counters(run: Run) -> Run:
    """Return the run with counters that span the whole check, where its directory has them.

    The counters of the engine span one launch. Joined runs have them already.

    Raises BrokenRunError where the file cannot be read.
    """
    path = own_file(run, COUNTERS)
    if path is None or run.path is None:
        return run
    with errors_of(path, "a table of counters", "remove it, or measure again"):
        kept = json.loads(path.read_text(encoding="utf-8"))
        run_counters = run.facts.counters
        both = PortCounters(
            _merged(run_counters.before or {}, kept["before"]), _merged(run_counters.after or {}, kept["after"])
        )
    return replace(run, facts=replace(run.facts, counters=both))


def _merged(counters: Mapping[str, Any], kept: Mapping[str, Any]) -> dict[str, dict[str, dict[str, int]]]:
    """Merge counters by host and NIC; where both have a counter, that of `kept` is taken."""
    return {
        host: {
            nic: {**counters.get(host, {}).get(nic, {}), **kept.get(host, {}).get(nic, {})}
            for nic in {**counters.get(host, {}), **kept.get(host, {})}
        }
        for host in {**counters, **kept}
    }


def save_host_facts(facts: Mapping[str, Mapping[str, str]], run: Path) -> None:
    """Write facts of the hosts into a run directory: they may explain a group of slower hosts."""
    path = run / HOST_FACTS
    if facts and not path.exists():  # each diagnosis of a check writes them, and they do not change
        save_text(path, json.dumps({"format": 1, "hosts": facts}, indent=1))


def load_host_facts(run: Run) -> Mapping[str, Mapping[str, str]]:
    """Read host facts by host and name; empty where the run has none. Raises BrokenRunError for a damaged file."""
    of_hosts: dict[str, dict[str, str]] = {}
    for path in own_files(run, HOST_FACTS):
        with errors_of(path, "a table of hosts", "remove it, or measure again"):
            hosts = json.loads(path.read_text(encoding="utf-8"))["hosts"]
            of_hosts |= {str(host): {str(name): str(facts[name]) for name in facts} for host, facts in hosts.items()}
    return of_hosts


def load_thresholds(path: Path) -> Sequence[Threshold]:
    """Read the thresholds of a site file (docs/reference/site-file.md). Raises UsageError."""
    from fablint.plan.check.site_thresholds import parse_thresholds

    return parse_thresholds(_site_text(path), str(path))


def load_known_faults(path: Path, today: date | None = None) -> KnownFaults:
    """Read the known faults of a site file: those valid on a day, by default the present one. Raises UsageError."""
    from fablint.system import System
    from fablint.text.site_suppressions import parse_known_faults

    return parse_known_faults(_site_text(path), str(path), today or System().now().date())


def load_site(path: Path | None, system: System) -> Site | None:
    """Read the expectations of a site file that are valid today; None without a path. Raises UsageError.

    Thresholds and known faults are parsed as well, so that a file with an error is refused before anything is measured.
    """
    from fablint.preflight import CHECKS
    from fablint.preflight.site.site_file import parse_site

    if path is None:
        return None
    today = system.now().date()
    load_thresholds(path)
    load_known_faults(path, today)
    return parse_site(_site_text(path), str(path), today, CHECKS)


def _site_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", "give a site file (TOML)") from error
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not a text file", "give a site file (TOML)") from None


def save_site(path: Path | None, run: Path) -> None:
    """Copy the site file into a run directory, for every later diagnosis."""
    if path is not None:
        save_text(run / SITE, path.read_text(encoding="utf-8"))


def load_findings(path: Path | None) -> Sequence[Finding]:
    """Read findings of other tools, such as loopback tests, from a verdict in JSON (docs/reference/verdict.md)."""
    verdict = load_verdict(path)
    return verdict.findings if verdict is not None else ()


def load_own_verdict(run: Run) -> Verdict | None:
    """Read the findings from outside the measurement in the directories of a run; None where there are none."""
    verdicts = [verdict for path in own_files(run, FINDINGS) if (verdict := load_verdict(path)) is not None]
    if len(verdicts) < 2:
        return next(iter(verdicts), None)
    findings = {finding.model_dump_json(): finding for verdict in verdicts for finding in verdict.findings}
    notes = {note.model_dump_json(): note for verdict in verdicts for note in verdict.notes}
    network = dict.fromkeys(name for verdict in verdicts for name in verdict.network)
    return external_verdict(list(findings.values()), list(notes.values()), list(network))


def load_verdict(path: Path | None) -> Verdict | None:
    """Read a verdict in JSON; None without a path. Raises UsageError where it cannot be read."""
    if path is None:
        return None
    from pydantic import ValidationError

    from fablint.model import Verdict
    from fablint.text.sentences import without_sentence

    try:
        verdict = Verdict.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", "give a verdict.json") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"{path}: {where + ': ' if where else ''}{first['msg']}", "give a verdict.json") from error
    if unknown := without_sentence(verdict):
        raise UsageError(f"{path}: this fablint has no sentence for {unknown}", "write it again with this version")
    return verdict


def save_levels(levels: Sequence[PlannedLevel], run: Path) -> None:
    """Write the levels of a check into its run directory; a killed check leaves them behind."""
    entries = [{"name": one.name, "rows": one.rows, "skipped": one.skipped} for one in levels]
    save_text(run / LEVELS, json.dumps({"format": 1, "levels": entries}, indent=1))


def load_levels(run: Run) -> Sequence[PlannedLevel]:
    """Read the levels that the check of a run planned; none where the run is not of a check by levels.

    Raises
    ------
    BrokenRunError
        The file cannot be read, or is not a list of levels.
    """
    levels: list[PlannedLevel] = []
    for path in own_files(run, LEVELS):
        with errors_of(path, "a list of planned levels", "restore it, or measure again"):
            entries = json.loads(path.read_text(encoding="utf-8"))["levels"]
            rows = [None if one["rows"] is None else tuple(map(str, one["rows"])) for one in entries]
            levels += [
                PlannedLevel(str(entry["name"]), row_names, entry["skipped"])
                for entry, row_names in zip(entries, rows, strict=True)
            ]
    return levels


def missing_levels(run: Run) -> list[str]:
    """Return the names of the levels that the check of a run planned and never began, in order."""
    return list(dict.fromkeys(level.name for level in load_levels(run) if level.is_missing(run.facts.rows)))


def load_diagnosis(run: Path, inputs: str) -> Diagnosis | None:
    """Read the diagnosis in a run directory; None where it does not follow from these inputs, or is damaged."""
    from fablint.history.diagnosis_document import diagnosis_of

    try:
        document = json.loads((run / DIAGNOSIS).read_text(encoding="utf-8"))
        return diagnosis_of(document["diagnosis"]) if document["inputs"] == inputs else None
    except (OSError, ValueError, KeyError, TypeError, UsageError):
        return None


def save_diagnosis(diagnosis: Diagnosis, run: Path, inputs: str) -> None:
    """Write a diagnosis and the digest of its inputs into the run directory, where that can be written."""
    from fablint.history.diagnosis_document import diagnosis_document

    with suppress(IncompleteError, UsageError):
        document = {"inputs": inputs, "diagnosis": diagnosis_document(diagnosis)}
        save_text(run / DIAGNOSIS, json.dumps(document))
