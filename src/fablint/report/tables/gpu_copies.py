"""Copies of every GPU from, to or within its memory, by itself: the kernel gpu_loopback."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fablint.model import Row, Run
from fablint.model.figures.gpu_use import sharing_words
from fablint.model.registry import KERNELS
from fablint.report.tables.cells import Cells, cells, central, ranks
from fablint.report.tables.quantiles import checked, percentile_times
from fablint.report.tables.table import Rendered, TableKind, fixed, program, right
from fablint.report.tables.traffic import rates, window

_SIZE, _FIELD = 10, 14  # widths of columns
_PLACE = ("rank", "host", "gpu", "pci")
_COPIES = {
    "to-device": "from pinned memory of the host to the GPU",
    "to-host": "from the GPU to pinned memory of the host",
    "within-device": "within the memory of the GPU, a byte counted once",
}


def is_shown(row: Row) -> bool:
    """Return whether the kernel of a row copies within hosts and sends no message."""
    return row.kernel in KERNELS and not KERNELS[row.kernel].sends_messages


# A section for each row: a line per GPU and size. Option: percentiles.
gpu_copies = TableKind[Row](
    "gpu_copies",
    options=("percentiles",),
    needs="a row of the kernel gpu_loopback",
    measure="measure one with fablint bench gpu_loopback",
    parts=lambda _, rows: [row for row in rows if is_shown(row)],
    section=lambda run, row, options: _section(run, row, checked(options.percentiles)),
)


def _section(run: Run, row: Row, percentiles: Sequence[float]) -> Rendered:
    names = [f"P{percentile:g}" for percentile in percentiles]
    gpus = [_gpu(run, rank) for rank in range(run.ranks)]
    widths = [max(map(len, (name, *(str(gpu[name]) for gpu in gpus)))) for name in _PLACE]
    head = [*_PLACE, "copy (us)", "MB/s", *(f"{name} (us)" for name in names)]
    lines, facts = [_line("# size", head, widths)], []
    for index in range(len(row.sizes)):
        shown = cells(row, index, [central(row)]).by_pair(ranks(row))
        for at in range(len(shown)):
            rank = int(shown.src[at])
            entry = gpus[rank] | _figures(row, index, shown, at) | _percentiles(row, index, rank, percentiles)
            times = [entry["seconds"], *(entry[name] for name in names)]
            copy, *tails = (fixed(None if seconds is None else seconds * 1e6) for seconds in times)
            words = [*(str(entry[name]) for name in _PLACE), copy, fixed(entry["bytes_per_s"] / 1e6), *tails]
            lines.append(_line(str(entry["size"]), words, widths))
            facts.append(entry)
    what = {"table": "gpu_copies", "row": row.name, "kernel": row.kernel, "copy": row.facts.sampling.copy}
    return Rendered((*_comments(run, row), *lines), {**what, "gpus": facts})


def _line(size: str, words: Sequence[str], widths: Sequence[int]) -> str:
    """Columns whose widths do not depend on the figures: the table is printed while it is measured."""
    place = "".join(f"  {word:<{width}}" for word, width in zip(words, widths, strict=False))
    return size.ljust(_SIZE) + place + "".join(right(word, _FIELD) for word in words[len(widths) :])


def _gpu(run: Run, rank: int) -> dict[str, Any]:
    """Return the place of a rank's GPU."""
    gpu, pci = ((names[rank] if names else "") or "-" for names in (run.facts.rank_gpu, run.facts.rank_gpu_pci))
    return {"rank": rank, "host": run.rank_host[rank], "gpu": gpu, "pci": pci}


def _comments(run: Run, row: Row) -> list[str]:
    copy, count = _COPIES.get(row.facts.sampling.copy, "of GPUs"), run.ranks
    at_once = count > 1 and row.facts.schedule.order == "parallel"
    windows = sorted({window(row, at) for at in range(len(row.sizes))})
    in_flight = " to ".join(map(str, dict.fromkeys((windows[0], windows[-1]))))
    models = sorted(set(run.facts.rank_gpu_model) - {""})
    sharing = sharing_words(run)
    words = [
        f"{program()}: copies {copy}" + (f", by all {count} ranks at once" if at_once else ""),
        f"fablint: copies of a window ({in_flight}) one after another, then one synchronisation; mean time of a copy",
        *(f"fablint: {model}" for model in models),
        *([f"fablint: {sharing}"] if sharing else []),
    ]
    return [f"# {line}" for line in words]


def _figures(row: Row, index: int, shown: Cells, at: int) -> dict[str, Any]:
    size, seconds = row.sizes[index], float(shown.times[central(row)][at])
    return {
        "size": size,
        "seconds": seconds,
        "bytes_per_s": float(rates(size, seconds)),
        "samples": int(shown.count[at]),
    }


def _percentiles(row: Row, index: int, rank: int, percentiles: Sequence[float]) -> dict[str, float | None]:
    kept = np.asarray(row.arrays["count"][..., index]) > 0
    kept[np.arange(len(kept)) != rank] = False
    times = percentile_times(row, index, kept, percentiles)
    return {f"P{percentile:g}": time for percentile, time in zip(percentiles, times, strict=True)}
