"""Notes on a run: its state, its rows, its hosts, NICs and GPUs, and when it was measured."""

from __future__ import annotations

from fablint.model.figures.gpu_use import SharedGpus, path_words
from fablint.model.names import plural
from fablint.text import evidence as seen, units
from fablint.text.evidence_sentences import sentences
from fablint.text.sentence_kind import Names, NoteKind, PlainNote

message = NoteKind[str]("{message}")  # as the run's reader, an importer or the engine has written it
shared_machines = NoteKind[int]("""hosts share the CPUs of {machines:#machine}: latencies show faults, but not that a
    host is healthy""")
no_streams = PlainNote("no one-way streams: rows of bandwidth are needed to determine the slow direction")
launch_per_pair = PlainNote("""each pair was a launch of its own: its sizes are one observation, and what differs from
    start to start (placement, power state, connection) is indistinguishable from a slow route""")
cpu_wait = NoteKind[Names, float, str]("""other processes slowed the ranks on {hosts:fold}: they waited for a CPU up
    to {longest:%} of the time ({host})""")

_OUTVOTED = "every host was measured three times as often at other times"

row_measured_again = NoteKind[str, str]("""row {row} repeats pairs of {base}; the faster result is used""")
row_of_one_direction = NoteKind[str]("""row {row} measured one direction of each pair: losses in the other direction are
    not visible""")
row_without_base = NoteKind[str, str]("""row {row} is not judged: the run has no row {base}, whose slowest pairs these
    were""")
row_of_collective = NoteKind[str]("""row {row} is not judged: it has one time for all ranks, which does not
    show which pair is slow""")
row_of_victims = NoteKind[str]("""row {row} is not judged: its pairs were slowed on purpose, by the load of other
    ranks""")
row_of_few_hubs = NoteKind[str, int, int]("""row {row} is not judged: all ranks share {hubs:#host}: with fewer than
    {fewest}, a slow host and a slow path to it look the same""")
row_of_unequal_shares = NoteKind[str]("""row {row} is not judged: its hosts have different numbers of clients and
    servers, which share their NICs""")
row_too_large = NoteKind[str, int]("""row {row} is not judged: with more than {ranks} ranks it does not fit into
    memory""")


@NoteKind
def run_incomplete(*, state: str, resumable: bool) -> str:
    how = " (fablint resume measures it)" if resumable else ""
    return f"the run is not complete (state: {state}): what is missing is not judged{how}"


@NoteKind
def row_incomplete(*, row: str, state: str, reason: str) -> str:
    return ": ".join(filter(None, (f"row {row}", state, reason)))


@NoteKind
def slow_periods(
    *,
    row: str,
    size: int,
    begins: tuple[float, ...],
    ends: tuple[float, ...],
    hosts: tuple[int, ...],
    excesses: tuple[float, ...],
    explained: bool,
) -> str:
    periods = zip(begins, ends, hosts, excesses, strict=True)
    words = sentences(seen.slow_period(*period).measured_in(row, size) for period in periods)
    reason = "each pair is compared with others of its time" if explained else _OUTVOTED
    return f"{words} ({reason})"


@NoteKind
def drift_of_all(*, row: str, size: int, change: float) -> str:
    return f"{sentences([seen.drift(change).measured_in(row, size)])} (each pair is compared with others of its time)"


@NoteKind
def nics_not_measured(*, nics: Names, hosts: tuple[int, ...], measurable: bool) -> str:
    words = ", ".join(f"{nic} of {plural(count, 'host')}" for nic, count in zip(nics, hosts, strict=True))
    how = " (--ranks-per-nic 1 measures each NIC)" if measurable else ""
    return f"{words} {'was' if len(nics) == 1 else 'were'} not measured{how}"


@NoteKind
def nics_of_a_kind(
    *,
    nics: int,
    hosts: int,
    quantities: Names,
    effects: tuple[float, ...],
    far: bool,
    others_far: bool,
    mbps: int | None = None,
    others_mbps: int | None = None,
) -> str:
    parts = [f"declare {_speed(mbps)}, others {_speed(others_mbps)}"] if mbps != others_mbps else []
    parts += (
        [f"are on {'another NUMA node than' if far else 'the NUMA node of'} their ranks"] if far != others_far else []
    )
    changes = [f"{quantity} {units.percent(effect)}" for quantity, effect in zip(quantities, effects, strict=True)]
    return (
        f"{plural(nics, 'NIC')} of {plural(hosts, 'host')} {' and '.join(parts)}: {', '.join(changes)} (by design;"
        " compared with NICs of their kind)"
    )


def _speed(mbps: int | None) -> str:
    return "no speed" if mbps is None else f"{mbps / 1000:g} Gb/s"


@NoteKind
def compared_gpus(*, counts: tuple[int, ...], rows: Names, gpus: int, fewest: int) -> str:
    none = f": fewer than {fewest}, or too different"
    words = [
        f"{count or 'none'} of {gpus} by {names}{'' if count else none}"
        for count, names in zip(counts, rows, strict=True)
    ]
    return f"GPUs compared with each other: {'; '.join(words)}"


@NoteKind
def gpu_path(*, memory: str, path: str, media: Names) -> str:
    return f"{', '.join(media)}: {path_words(memory, path)}"


@NoteKind
def shared_gpus(*, gpus: int, gpu: str, ranks: int) -> str:
    return SharedGpus(gpus, gpu, ranks).words


allocation_levels = NoteKind[float, float]("""the runs differ as a whole by {low:+%} to {high:+%}: taken for effects
    of their launches""")


@NoteKind
def joined_runs(*, runs: Names, hosts: int, shared: int, absent: int) -> str:
    missing = f"; {plural(absent, 'host')} of the topology are in none of them" if absent else ""
    return f"{plural(hosts, 'host')} in {len(runs)} runs ({', '.join(runs)}), {shared} of them in several{missing}"
