"""The stages `analyse` and `report` together: the diagnosis of a run with the files in its directory, and its page."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from fablint.errors import UsageError
from fablint.model import Run, Scope, Topology
from fablint.model.host_name import HostNames
from fablint.system import System
from fablint.workflows.run_files import (
    INTRA_NODE,
    LAUNCHES,
    REPORT,
    SITE,
    load_diagnosis,
    load_findings,
    load_host_facts,
    load_known_faults,
    load_own_verdict,
    load_thresholds,
    load_topology,
    missing_levels,
    own_file,
    own_files,
    save_diagnosis,
    save_octets,
    save_text,
    with_own_counters,
)

if TYPE_CHECKING:
    from fablint.model import Diagnosis, Finding, Verdict
    from fablint.model.limits.thresholds import Comparison, Threshold
    from fablint.model.run_changes import RunChanges


def judge(
    run: Run,
    topology: Path | None = None,
    findings: Path | None = None,
    site: Path | None = None,
    step: Callable[[int, int], None] | None = None,
) -> Diagnosis:
    """Diagnose a run by files; a complete run directory is judged once by the same files.

    The diagnosis is kept in the run directory, where that can be written, and is read from it until a file changes.

    Parameters
    ----------
    run
        The run.
    topology, findings, site
        Topology file, verdict of another tool, site file; None: the one in the run directory, if there is one.
    step
        As of `diagnose`.

    Raises
    ------
    UsageError
        A file cannot be read, or the topology names none of the hosts of the run.
    """
    site = site or own_file(run, SITE)
    inputs = ""
    if run.path is not None and run.state == "complete":
        day = System().now().date() if site else None
        with suppress(OSError):
            inputs = _inputs_of(run.path, filter(None, (topology, findings, site)), day)
    kept = load_diagnosis(run.path, inputs) if run.path is not None and inputs else None
    if kept is not None:
        return kept
    diagnosis = diagnose(run, load_topology(topology, run), load_findings(findings), site, step=step)
    if run.path is not None and inputs:
        save_diagnosis(diagnosis, run.path, inputs)
    return diagnosis


def _inputs_of(run: Path, files: Iterable[Path], day: date | None) -> str:
    """Return a digest of what a diagnosis follows from: another one where any of it has changed.

    Files of the run and of fablint count by name, size and the times of their last changes, files of the user by their
    contents.

    Parameters
    ----------
    run
        Run directory.
    files
        Files of the user: topology, findings, site file.
    day
        Day for which known faults hold; None: they do not matter.

    Raises
    ------
    OSError
        A file of the run cannot be looked at.
    """
    lines = [str(day)]
    for entry in (*_files_below(run), *_files_below(Path(__file__).parents[1])):
        facts = entry.stat()
        lines.append(f"{entry.path} {facts.st_size} {facts.st_mtime_ns} {facts.st_ctime_ns}")
    for path in files:
        lines.append(str(path))
        with suppress(OSError):  # a diagnosis by this file refuses it
            lines.append(hashlib.sha256(path.read_bytes()).hexdigest())
    return hashlib.sha256(os.fsencode("\n".join(lines))).hexdigest()


def _files_below(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Files below a folder, in order, without those that Python writes and what is written about a judgement."""
    with os.scandir(folder.absolute()) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if not entry.is_dir(follow_symlinks=False):
                yield entry
            elif entry.name not in (REPORT, "__pycache__"):
                yield from _files_below(Path(entry))


def diagnose(
    run: Run,
    topology: Topology | None = None,
    others: Sequence[Finding] = (),
    site: Path | None = None,
    today: date | None = None,
    known_verdict: Verdict | None = None,
    step: Callable[[int, int], None] | None = None,
) -> Diagnosis:
    """Diagnose a run together with the findings, host facts, counters, levels and site file in its directory.

    Parameters
    ----------
    run
        The run.
    topology
        Which host is connected to which switch, None where that is not known.
    others
        Findings of other tools, such as loopback tests. They split ambiguity groups of components in series.
    site
        Site file to compare with; None: the one in the run directory, if there is one.
    today
        Day for which known faults of the site file hold; None: the present day.
    known_verdict
        Findings from outside the measurement; None: those in the directory.
    step
        Function that gets the number of measurements that are judged, and that of all, after each size of a row.

    Raises
    ------
    UsageError
        The topology names none of the hosts of the run.
    """
    from fablint.analyse import diagnose as diagnose_run, with_additional, with_missing_levels
    from fablint.analyse.other_questions.additional import without_known_faults

    topology = topology.named_as(run.hosts) if topology is not None else None
    if topology is not None and topology.host_switch.keys().isdisjoint(run.hosts):
        raise UsageError(
            f"{topology.source or 'the topology'} names none of the {len(run.hosts)} hosts of the run, such as"
            f" {run.hosts[0]}",
            "give the topology of this fabric, with the names that fablint show prints",
        )
    known_verdict = known_verdict or load_own_verdict(run)
    additional = named_as(run, known_verdict.findings) if known_verdict is not None else ()
    host_facts = load_host_facts(run)
    facts = {name: host_facts[host] for host, name in run_names(run, host_facts).items()}
    others = (*named_as(run, others), *additional)
    diagnosis = diagnose_run(with_own_counters(run), topology, others=others, host_facts=facts, step=step)
    diagnosis = with_additional(diagnosis, additional, known_verdict) if known_verdict is not None else diagnosis
    diagnosis = with_missing_levels(diagnosis, missing_levels(run))
    site = site or own_file(run, SITE)
    if site is None:
        return diagnosis
    diagnosis = _with_thresholds(diagnosis, run, load_thresholds(site))
    known_faults = load_known_faults(site, today)
    return without_known_faults(diagnosis, known_faults.valid, known_faults.expired)


def run_names(run: Run, names: Iterable[str]) -> Mapping[str, str]:
    """Return the name that the run has for each host of a list, as far as the host is in the run."""
    return HostNames(run.hosts).matched(names)


def named_as(run: Run, findings: Sequence[Finding], hosts: Iterable[str] = ()) -> tuple[Finding, ...]:
    """Return findings from outside the measurement with the names that the run has for its hosts.

    Parameters
    ----------
    run
        The run.
    findings
        The findings.
    hosts
        All hosts that the run was requested for, by the names in the findings; empty if they are not known.
    """
    from fablint.model.verdict import respelled

    names = dict(run_names(run, (node for finding in findings for node in finding.nodes)))
    names |= {name: run_name for run_name, name in HostNames(hosts, complete=True).matched(run.hosts).items()}
    changed = {name: run_name for name, run_name in names.items() if name != run_name}
    return tuple(respelled(finding, changed) for finding in findings) if changed else tuple(findings)


def _with_thresholds(diagnosis: Diagnosis, run: Run, thresholds: Sequence[Threshold]) -> Diagnosis:
    """Compare a run with the thresholds of a site; those within hosts apply to the run of the level within hosts."""
    from fablint.analyse.other_questions.missed_thresholds import compare, with_comparison
    from fablint.store import read_run

    inner_runs = [path for path in own_files(run, f"{LAUNCHES}/{INTRA_NODE}.run") if (path / "zarr.json").exists()]
    for inner in inner_runs:
        diagnosis = with_comparison(diagnosis, compare_within(read_run(inner), thresholds))
    if inner_runs:
        thresholds = [threshold for threshold in thresholds if threshold.scope is not Scope.INTRA_NODE]
    return with_comparison(diagnosis, compare(run, thresholds, diagnosis))


def compare_within(run: Run, thresholds: Sequence[Threshold]) -> Comparison:
    """Compare a run between ranks of the same host with those of the thresholds that apply within hosts."""
    from fablint.analyse import diagnose as diagnose_run
    from fablint.analyse.other_questions.missed_thresholds import compare

    return compare(run, [one for one in thresholds if one.scope is Scope.INTRA_NODE], diagnose_run(run))


def compare_runs(old: Run, new: Run, topology: Path | None, margin: float) -> RunChanges:
    """Diagnose two runs of the same hosts, and compare the second with the first.

    Parameters
    ----------
    old, new
        The runs.
    topology
        Topology file of both; None: of each run its own.
    margin
        Relative loss that is accepted, such as 0.03.

    Raises
    ------
    UsageError
        The runs have no host in common.
    """
    from fablint.analyse.changes import RunResult, compare_runs as compare_results

    old = old.renamed(run_names(new, old.hosts))
    if not set(old.hosts) & set(new.hosts):
        raise UsageError(
            f"the runs have no host in common: {old.hosts[0]} is in the old one, {new.hosts[0]} in the new one",
            "give two runs of the same hosts",
        )
    results = [RunResult(run, diagnose(run, load_topology(topology, run))) for run in (old, new)]
    return compare_results(results[0], results[1], margin)


def write_report(run: Run, diagnosis: Diagnosis, page: Path) -> None:
    """Write the HTML page and the verdict.

    Parameters
    ----------
    run
        The run.
    diagnosis
        Findings and verdict of the run.
    page
        File of the page. The verdict is `verdict.json` in its folder, for `NAME.html` it is `NAME.verdict.json`. A page
        that is written into a pipe or device has no verdict beside it.
    """
    from fablint.report import verdict_json, write_html
    from fablint.system.written_files import is_written_into

    write_html(run, diagnosis, page)
    if is_written_into(page):
        return
    verdict = "verdict.json" if page.name == "index.html" else f"{page.stem}.verdict.json"
    save_text(page.with_name(verdict), verdict_json(diagnosis))


def write_pdf(run: Run, diagnosis: Diagnosis, path: Path) -> None:
    """Write the report as a PDF. Raises UsageError without the extra `pdf`, IncompleteError for a file."""
    _require_reportlab("a PDF")
    from fablint.report.pdf.pdf_report import pdf_report

    save_octets(path, pdf_report(run, diagnosis))


def write_png(run: Run, diagnosis: Diagnosis, path: Path, name: str) -> None:
    """Write the picture of a name, see `png_pictures.picture`.

    Raises
    ------
    UsageError
        The extra `pdf` is not installed; the run has no such picture.
    IncompleteError
        The file cannot be written.
    """
    _require_reportlab("a PNG")
    from fablint.report.pdf.png_pictures import picture

    save_octets(path, picture(run, diagnosis, name))


def _require_reportlab(what: str) -> None:
    from importlib.util import find_spec

    if find_spec("reportlab") is None:
        raise UsageError(f"{what} needs the library reportlab", "pip install 'fablint[pdf]'")


def page_of(path: Path) -> Path:
    """Path of the report page of a run directory."""
    return path / "report" / "index.html"
