"""How OSU 7.4 heads its tables: titles, fact lines, column names. Read off its outputs and its sources."""

from __future__ import annotations

from fablint.model import Row, Run
from fablint.model.registry import GPU_MEMORIES, KERNELS, SYNCS, WINS
from fablint.report.tables.table import program
from fablint.report.tables.traffic import COLLECTIVES, STARS
from fablint.text import units
from fablint.version import __version__

VERSION = "7.4"  # whose format and, where a comment says nothing else, whose meaning the tables have

_TITLES = {name: kernel.osu_title for name, kernel in KERNELS.items() if kernel.osu_title.startswith("OSU")}
_OF_MANY_PAIRS = {
    "latency": "OSU MPI Multi Latency Test",
    "bandwidth": "OSU MPI Multiple Bandwidth / Message Rate Test",
}


_ACCELERATORS = {"cuda": "CUDA", "hip": "ROCM"}  # in titles, by the memory of the buffers


def one_sided(row: Row) -> bool:
    """Return whether the row's kernel uses remote memory access."""
    return row.kernel in KERNELS and KERNELS[row.kernel].is_one_sided


def is_of_osu(row: Row) -> bool:
    """Return whether the row was measured by the name of a benchmark of OSU."""
    return row.name.startswith("osu_")


def is_imported(run: Run) -> bool:
    """Return whether the run has figures of another tool's files."""
    return run.facts.imported is not None


def imported_pairs(row: Row) -> int:
    """Number of pairs of an imported row whose file has one figure for all of them; 0 of any other row."""
    return (row.facts.schedule.pairs or 0) if row.pattern == "world" else 0


def _is_of_many_pairs(row: Row) -> bool:
    return row.pattern == "pairs" or imported_pairs(row) > 0


def message_rate(row: Row) -> bool:
    """Tell whether this is the table of osu_mbw_mr, which has a column of messages/s."""
    return row.kernel == "bandwidth" and _is_of_many_pairs(row)


def title(row: Row) -> str:
    """The line that names the test. What OSU has no test for does not call itself OSU."""
    osu_title = _OF_MANY_PAIRS.get(row.kernel) if _is_of_many_pairs(row) else None
    osu_title = osu_title or _TITLES.get(row.kernel)
    if osu_title is None:
        return f"# fablint {row.kernel} {row.quantity} Test v{__version__}"
    accelerator = _ACCELERATORS.get(row.medium.gpu_memory) if row.medium.transport == "mpi" else None
    return f"# {osu_title.replace('MPI ', f'MPI-{accelerator} ', 1) if accelerator else osu_title} v{VERSION}"


def head(row: Row, pairs: int, window: str, comments: list[str]) -> list[str]:
    """All lines above the column names: as OSU prints them, and our own, which begin with `# fablint`."""
    lines = [title(row), *(f"# {program() if not at else 'fablint'}: {words}" for at, words in enumerate(comments))]
    if row.kernel == "latency_mt":
        senders, receivers = _workers(row)
        lines = [f"# Number of Sender threads: {senders} ", f"# Number of Receiver threads: {receivers}", "", *lines]
    elif not one_sided(row) and not message_rate(row):
        lines = ["", *lines]
    if row.kernel == "latency_mp":
        senders, receivers = _workers(row)
        lines += [f"# Number of forked processes in sender: {senders}"]
        lines += [f"# Number of forked processes in receiver: {receivers}"]
    if pairs and _is_of_many_pairs(row) and row.quantity == "bandwidth":
        lines.append(f"# [ pairs: {pairs} ] [ window size: {window} ]")
    lines += one_sided_lines(row)
    if row.payload != "none" and row.kernel != "get_accumulate":
        lines.append(f"# Datatype: {KERNELS[row.kernel].datatype if row.kernel in KERNELS else 'MPI_CHAR'}.")
    if row.medium.gpu_memory and row.pattern in ("pair", "pairs"):
        sender, receiver = _places(row.medium.memory), _places(row.medium.peer_memory or row.medium.memory)
        lines.append(f"# Send Buffer on {sender} and Receive Buffer on {receiver}")
    return lines


def _places(memory: str) -> str:
    return "DEVICE (D)" if memory in GPU_MEMORIES else "HOST (H)"


def one_sided_lines(row: Row) -> list[str]:
    """`Window creation` and `Synchronization`; none for a kernel without a window of memory."""
    if not one_sided(row):
        return []
    win, sync = row.rma
    named = (("Window creation", WINS.get(win, win)), ("Synchronization", SYNCS.get(sync, sync)))
    return [f"# {label}: {name}" for label, name in named if name]


def figure_name(row: Row) -> str:
    """Name of the main column."""
    if message_rate(row):
        return "MB/s"
    if row.quantity == "bandwidth":
        return "Bandwidth (MB/s)"
    return "Latency (us)" if one_sided(row) else "Avg Latency(us)"


def rule(run: Run, row: Row, groups: int) -> str:
    """Return how the figure of many ranks is made of theirs, and whose rule that is."""
    if is_imported(run):
        together = units.plural(groups, "rank" if row.kernel in COLLECTIVES else "pair")
        return f"figures of the imported file, of {together}"
    if not groups:
        return "no size was measured to its end"
    if row.kernel in COLLECTIVES:
        return f"mean over the {groups} ranks of each one's mean time, as in OSU {VERSION}"
    if row.pattern in STARS:
        return f"all bytes over the mean time of {groups} leaves; all of them stream at once"
    rate = row.quantity == "bandwidth"
    if row.kernel not in _TITLES:  # no test of OSU's
        how = "all bytes over the mean time" if rate else "mean"
        return f"{how} of {units.plural(groups, 'pair')}, by the clock of the lower rank of each"
    if groups <= 1:
        over = "the whole loop" if row.facts.sampling.mean == "loop" else "all samples"
        return f"mean over {over}, as in OSU {VERSION}"
    how = f"all bytes over the mean time of {groups} senders" if rate else f"mean over the {groups} senders"
    if row.kernel not in _OF_MANY_PAIRS:
        return f"{how}; OSU has this test for one pair only"
    how += f", as in OSU {VERSION}" + ("" if rate else " (5.x: over all ranks; 7.0: rank 0 alone)")
    repetition = "window" if rate else "round trip"
    if row.facts.sampling.barrier == "sample":
        return f"{how}; a barrier of all ranks before every {repetition}"
    return (
        f"{how}; pairs run free after a common start, as in OSU 5.x ({VERSION} puts barriers before every {repetition})"
    )


def deviations(row: Row) -> list[str]:
    """Return what makes the figures of this row others than those that OSU prints with its defaults."""
    words = []
    if row.kernel in _TITLES and not one_sided(row) and row.facts.sampling.buffers == "distinct":
        words.append("every message of a window has a buffer of its own; OSU's messages share one by default")
    return words


def _workers(row: Row) -> tuple[str, str]:
    """Threads or processes on the sending and the receiving side."""
    senders, receivers = row.facts.sampling.workers or (1, 2)
    return str(senders), str(receivers)
