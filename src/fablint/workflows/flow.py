"""The stages in order: plan, measure, store, analyse, report. The only module that knows them all.

Stages never see each other; what one makes is handed to the next here, as objects of `model`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fablint.errors import IncompleteError, InternalError, NotStartedError, StoppedError, UsageError
from fablint.model import Plan, Run, Scope, Slots, Topology
from fablint.model.lazy_imports import import_meanwhile
from fablint.system import System
from fablint.workflows.job_hosts import refuse_misplaced, slots_of_job
from fablint.workflows.run_files import (
    FINDINGS as FINDINGS,
    INTRA_NODE as INTRA_NODE,
    LAUNCHES as LAUNCHES,
    LEVELS as LEVELS,
    ROUNDS as ROUNDS,
    SITE as SITE,
    TOPOLOGY as TOPOLOGY,
    keep_counters as keep_counters,
    keep_findings as keep_findings,
    keep_host_facts as keep_host_facts,
    keep_levels as keep_levels,
    keep_site as keep_site,
    keep_text as keep_text,
    keep_topology as keep_topology,
    load_findings as load_findings,
    load_host_facts as load_host_facts,
    load_levels as load_levels,
    load_site as load_site,
    load_thresholds as load_thresholds,
    load_topology as load_topology,
    load_verdict as load_verdict,
    missing_levels as missing_levels,
    own_file,
    refuse_unbegun,
    site_of as site_of,
    topology_of as topology_of,
    whole_run as whole_run,
    with_own_counters,
)
from fablint.workflows.shared_folder import explain_unshared, refuse_unshared

if TYPE_CHECKING:
    from fablint.measure import Outcome, Progress
    from fablint.model import Diagnosis, Finding
    from fablint.model.thresholds import Comparison, Threshold
    from fablint.plan import Benchmark, BenchRequest
    from fablint.plan.rows.options import RowRequest
    from fablint.report import Table


@dataclass(frozen=True)
class Surroundings:
    """What every measuring verb works with: the machine, where progress goes, the `mpicxx` that the user chose."""

    system: System
    progress: Progress
    mpicxx: Path | None = None
    start_s: Callable[[], float] | None = None  # time limit of the start of ranks, where it is not the usual one
    end_s: float | None = None  # and of their end, when all is written


@dataclass(frozen=True)
class Measured:
    """A run directory as the engine left it, sealed."""

    run: Run
    exit_code: int  # 0, 1 where payloads were damaged, 3 where rounds are missing
    error: str = ""
    start_s: float = 0.0  # that the ranks took to start


# ------------------------------------------------------------------------------------------------ plan


def read_plan(text: str, ranks: int, source: str) -> Plan:
    """A plan of the user's; rounds files are read from where the user is."""
    from fablint.plan import parse_plan

    return parse_plan(text, ranks, source, _read_text, registry())


def registry() -> Mapping[str, Benchmark]:
    """The benchmarks that travel with the engine's sources."""
    from fablint.measure.engine import find_sources
    from fablint.plan import read_benchmarks

    path = find_sources() / "benchmarks.inc"
    return read_benchmarks(path.read_text(), str(path))


def list_benchmarks() -> Sequence[Benchmark]:
    """All that `bench` knows by name."""
    from fablint.plan import list_benchmarks as every

    return every(registry())


def find_benchmark(name: str) -> tuple[Benchmark, Sequence[RowRequest]]:
    """The benchmark of that name, and the rows that it may be made of. Raises UsageError where there is none."""
    from fablint.plan import every_row, find_benchmark

    known = registry()
    return find_benchmark(name, known), every_row(name, known)


def bench_rows(request: BenchRequest) -> Sequence[RowRequest]:
    """The rows that a benchmark is made of, without the user's options."""
    from fablint.plan import bench_rows

    return bench_rows(request, registry())


def bench_plan(request: BenchRequest) -> tuple[Plan, str]:
    """The rows of a benchmark with the user's options, and the benchmark whose table they make."""
    from fablint.plan import bench_plan, measured_as

    known = registry()
    return bench_plan(request, known), measured_as(request, known)


def _read_text(name: str) -> str:
    return Path(name).read_text()


# ------------------------------------------------------------------------------------------------ measure, store


def free_output(system: System, output: Path | None) -> Path:
    """Where the run will be written; checked now, so that nobody waits for a measurement that has no place to go."""
    path = output or Path(f"fablint-{system.now():%Y%m%d-%H%M%S}.run")
    if path.exists() or path.is_symlink():
        raise UsageError(f"{path} exists", "give another name with -o")
    parent = path.absolute().parent
    if not parent.is_dir():
        raise UsageError(f"{parent} is no directory", "create it, or give another place with -o")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise UsageError(f"{parent} cannot be written", "give another place with -o")
    return path


def measure(around: Surroundings, plan: Plan, output: Path, options: Sequence[str] = ()) -> Measured:
    """Measure `plan` into `output`, building the engine if need be.

    Returns what there is, be it complete or not. Raises UsageError, NotStartedError or InternalError when the engine
    refused to start or left no run; KeyboardInterrupt when the user stopped it, after sealing what was measured.
    """
    from fablint.measure import EngineOptions, build_engine, find_launchers, run_on_first

    engine = build_engine(around.system, around.progress, mpicxx=around.mpicxx)
    choice = find_launchers(around.system, engine.mpicxx, engine.libraries)
    threads = ["--threads"] if any(row.threads for row in plan.rows) else []
    words = EngineOptions([*options, *threads], around.start_s, around.end_s)
    outcome = run_on_first(around.system, around.progress, choice.launchers, engine, plan, output, options=words)
    if outcome.status == UsageError.exit_code or not (output / "zarr.json").exists():
        explain_unshared(around.system, output.parent, plan.slots)
    if outcome.status == UsageError.exit_code:
        raise UsageError(outcome.error)
    if outcome.status == InternalError.exit_code:
        raise InternalError(f"engine: {outcome.error}")
    if not (output / "zarr.json").exists():
        with suppress(OSError):  # the engine made it and could write nothing into it
            output.rmdir()
        if outcome.stopped_by == signal.SIGINT:
            raise KeyboardInterrupt
        hint = "nothing was measured; fablint doctor looks at the set-up"
        if outcome.stopped_by is not None:
            raise StoppedError(outcome.error, hint)
        raise NotStartedError(outcome.error, hint, outcome.said)
    measured = _sealed(around, output, outcome)
    refuse_misplaced(measured.run, plan.slots)
    return measured


def _sealed(around: Surroundings, path: Path, outcome: Outcome) -> Measured:
    """Write into the run what its engine could not: that it ended early, and who was lost."""
    from fablint.measure import name_deaths, name_host
    from fablint.store import read_run, set_state

    run = read_run(path)
    lost = tuple(name_host(one, run.attributes) for one in outcome.lost)
    lost = lost or tuple(name_deaths(outcome.deaths, run.attributes))
    unsealed = ""  # why it stays `measuring` on a full disk; it can be resumed all the same
    if lost or run.state == "measuring":
        try:
            set_state(path, "interrupted", [one.entry() for one in lost])
        except IncompleteError as error:
            unsealed = str(error)
        run = read_run(path)
    if outcome.stopped_by is not None:
        hint = f"what was measured is kept: fablint resume {whole_run(path)}"
        if outcome.stopped_by != signal.SIGINT:
            raise StoppedError(outcome.error, hint)
        around.progress.note(f"fablint: interrupted; {hint}")
        raise KeyboardInterrupt
    return Measured(run, outcome.status, str(lost[0]) if lost else outcome.error or unsealed, outcome.start_s)


def resume(around: Surroundings, path: Path, options: Sequence[str] = ()) -> Measured | None:
    """Measure the rounds that a run lacks; None when it lacks none. `options` are run options of the engine."""
    from fablint.plan import resume_plan
    from fablint.store import missing_rounds, read_run

    take_in_launches(path)
    run = read_run(path)
    refuse_unmeasured(run, path)

    def read_rounds(name: str) -> str:
        """A run has rounds files of its own."""
        return _read_text(str(path / name) if (path / name).exists() else name)

    plan = resume_plan(run, {row.name: missing_rounds(row) for row in run.rows}, read_rounds)
    plan = replace(plan, slots=_slots_now(around.system, plan.slots))
    refuse_unshared(around.system, path, plan.slots)
    return measure(around, plan, path, [*going_on(run), *options]) if plan.rows else None


def lacks_rounds(run: Run) -> bool:
    """Does a run lack a round of a row that was begun, or a row that was planned?"""
    from fablint.store import missing_rounds

    return {row.name for row in run.rows} != set(run.attributes["rows"]) or any(map(missing_rounds, run.rows))


def _slots_now(system: System, slots: Sequence[Slots]) -> tuple[Slots, ...]:
    """The hosts of a run as the job that we are in calls them. A single host is this one, outside of a job.

    Raises UsageError where the job lacks some of them.
    """
    if "SLURM_JOB_ID" not in system.environ and len({slot.host for slot in slots}) == 1:
        return ()
    return slots_of_job(system, slots)


def take_in_launches(path: Path) -> None:
    """Launches of fewer hosts that were killed before their cells became part of the run."""
    from fablint.store import absorb

    for part in sorted((path / LAUNCHES).glob("*.run")):
        if part.stem.isdigit() and (part / "zarr.json").exists():
            absorb(path, part)


def going_on(run: Run) -> list[str]:
    """The engine's options to go on with a run: `started` cells go on counting from the first launch."""
    return ["--resume", "--epoch", repr(run.attributes["started_epoch_s"])]


def refuse_unmeasured(run: Run, path: Path) -> None:
    """Raise UsageError where there is no fabric behind a run."""
    for how in ("simulated", "imported"):
        if how in run.attributes:
            raise UsageError(f"{path} was {how}", "there is no fabric to go on measuring")


def export(path: Path, to: str, output: Path) -> None:
    """Write a run in another format."""
    from fablint.store import export_run

    export_run(read(path), to, output)


def read(*paths: Path) -> Run:
    """A run directory, or what files of another tool hold."""
    from fablint.store import read_run

    if any(path.exists() and not path.is_dir() for path in paths):
        from fablint.store import import_run

        return import_run(paths)
    if len(paths) > 1:
        raise UsageError(f"{paths[1]}: a second run", "give one run, or files of another tool")
    refuse_unbegun(paths[0])
    return read_run(paths[0])


def import_files(system: System, files: Sequence[Path], output: Path, hosts: str | None = None) -> Run:
    """Write a run of outputs of another tool; returns it. `hosts` is a list of the ranks' hosts in rank order."""
    from fablint.plan import parse_hosts
    from fablint.store import import_run, write_run

    free_output(system, output)
    run = import_run(files, parse_hosts(hosts) if hosts else ())
    write_run(output, run)
    return run


# ------------------------------------------------------------------------------------------------ analyse, report


def diagnose(
    run: Run, topology: Topology | None = None, others: Sequence[Finding] = (), site: Path | None = None
) -> Diagnosis:
    """The judgement of a run, with what is known besides. UsageError for the topology of another fabric.

    `others` are findings of other stages, which tell the parts in series apart; `site` a site file, where it is
    not the run's own that counts.
    """
    from fablint.analyse import diagnose as judge, with_besides, with_missing_levels

    if topology is not None and not any({host, host.split(".")[0]} & set(topology.host_switch) for host in run.hosts):
        raise UsageError(
            f"{topology.source or 'the topology'} names none of the {len(run.hosts)} hosts of the run, such as"
            f" {run.hosts[0]}",
            "give the topology of this fabric, with the names that fablint show prints",
        )
    known = load_verdict(own_file(run, FINDINGS))
    besides = known.findings if known is not None else ()
    judged = judge(with_own_counters(run), topology, others=(*others, *besides), host_facts=load_host_facts(run))
    judged = with_besides(judged, besides, known) if known is not None else judged
    judged = with_missing_levels(judged, missing_levels(run))
    site = site or own_file(run, SITE)
    return judged if site is None else _compared(judged, run, load_thresholds(site))


def _compared(diagnosis: Diagnosis, run: Run, thresholds: Sequence[Threshold]) -> Diagnosis:
    """The diagnosis with the thresholds of the site: those within hosts hold for the run that was measured there."""
    from fablint.analyse.findings.missed_thresholds import compare, with_comparison
    from fablint.store import read_run

    inner = own_file(run, f"{LAUNCHES}/{INTRA_NODE}.run")
    if inner is not None and (inner / "zarr.json").exists():
        within = compare_within(read_run(inner), thresholds)
        thresholds = [one for one in thresholds if one.scope is not Scope.INTRA_NODE]
        diagnosis = with_comparison(diagnosis, within)
    return with_comparison(diagnosis, compare(run, thresholds, diagnosis))


def compare_within(run: Run, thresholds: Sequence[Threshold]) -> Comparison:
    """A run of ranks of the same host beside the thresholds for these."""
    from fablint.analyse import diagnose as judge
    from fablint.analyse.findings.missed_thresholds import compare

    return compare(run, [one for one in thresholds if one.scope is Scope.INTRA_NODE], judge(run))


def write_report(run: Run, diagnosis: Diagnosis, page: Path) -> None:
    """The HTML page, and the verdict for programs beside it."""
    from fablint.report import verdict_json, write_html

    write_html(run, diagnosis, page)
    keep_text(page.with_name("verdict.json"), verdict_json(diagnosis))


def page_of(path: Path) -> Path:
    """Where a run's own report is."""
    return path / "report" / "index.html"


# ------------------------------------------------------------------------------------------------ whole jobs


@dataclass(frozen=True)
class Benched:
    """The table of a benchmark; `exit_code` 1 where payloads were damaged, and what was found then in `damage`."""

    table: Table
    exit_code: int
    damage: str = ""


@dataclass(frozen=True)
class Wanted:
    """What is to be seen of a benchmark."""

    percentiles: tuple[float, ...] = ()
    full: bool = False


def bench(
    around: Surroundings, plan: Plan, name: str, wanted: Wanted, output: Path | None, options: Sequence[str] = ()
) -> Benched:
    """Measure the rows of a benchmark and make its table. Without `output` the run is thrown away afterwards."""
    if output is None:
        with around.system.temporary_folder(around.system.home_folder("scratch")) as folder:
            return bench(around, plan, name, wanted, folder / "bench.run", options)
    plan = replace(plan, slots=slots_of_job(around.system, plan.slots)) if plan.slots else plan
    refuse_unshared(around.system, output.parent, plan.slots)
    import_meanwhile("fablint.report.tables.bench")  # numpy, for a tenth of a second, beside MPI_Init
    measured = measure(around, plan, output, options)
    if measured.error:
        raise IncompleteError(measured.error)
    from fablint.report import benchmark_table

    table = benchmark_table(measured.run, name, percentiles=wanted.percentiles, full=wanted.full)
    return Benched(table, measured.exit_code, _damage(measured.run))


def _damage(run: Run) -> str:
    """The first payload that did not arrive as it was sent, and how many there were."""
    found = [(row.name, one) for row in run.rows for one in row.attributes.get("corrupt", ())]
    if not found:
        return ""
    row, first = found[0]
    src, dst = (f"rank {rank} ({run.rank_host[rank]})" for rank in (first["src"], first["dst"]))
    return (
        f"{len(found)} payloads were damaged, the first in row {row}: from {src} to {dst}, {first['size']} bytes, "
        f"offset {first['offset']} of message {first['message']}"
    )
