"""What was measured: a run, its rows, and the times of one of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fablint.model.registry import KERNELS, Quantity, directions_counted, is_duplex

if TYPE_CHECKING:
    import numpy as np

    from fablint.model.facts.row_attributes import RowFacts
    from fablint.model.facts.run_attributes import RunFacts
    from fablint.model.row import Medium

_PREFERRED_STATISTICS = ("median", "mean", "min", "p99", "max")  # the first that a row has stands for a pair


@dataclass(frozen=True)
class Observations:
    """One statistic of one size of one row, as a ragged matrix of directed pairs.

    `sent[i, c]` is the time in seconds of the pair (i -> partner[i, c]), NaN where it was not measured.
    In a full matrix `partner` is None and column c is destination rank c; in a sparse run column c is round c
    and every round is a matching (its pairs are measured in both directions).
    """

    row: str
    kernel: str
    size: int
    statistic: str
    sent: np.ndarray  # (n, m) float32
    partner: np.ndarray | None = None  # (n, m) int32, -1 where the rank was idle

    @property
    def received(self) -> np.ndarray:
        """(n, m): `received[j, c]` is the time of the pair (partner -> j)."""
        import numpy as np

        if self.partner is None:
            return self.sent.T
        idle = self.partner < 0
        rows = np.where(idle, 0, self.partner)
        return np.where(idle, np.nan, np.take_along_axis(self.sent, rows, axis=0)).astype(self.sent.dtype)


@dataclass(frozen=True)
class Row:
    """A row of a run: its facts and arrays as docs/reference/run-format.md names them.

    The arrays are numpy arrays (a run made in memory) or Zarr arrays (a run directory, read when sliced).
    """

    name: str
    facts: RowFacts
    arrays: Mapping[str, Any]

    @property
    def kernel(self) -> str:
        """Name of the kernel."""
        return self.facts.kernel

    @property
    def pattern(self) -> str:
        """Name of the pattern; empty for imported rows."""
        return self.facts.schedule.pattern

    @property
    def medium(self) -> Medium:
        """Return how its bytes travelled, and where they were."""
        return self.facts.carrier.medium

    @property
    def task(self) -> str:
        """Return what the pairs did, whatever the medium and its RMA windows, and at whatever time."""
        facts, sampling = self.facts, self.facts.sampling
        kind = (facts.kernel, facts.variant, facts.payload, facts.condition, facts.schedule.directions)
        return repr([self.sizes, *kind, list(sampling.windows), sampling.buffers, sampling.in_place, sampling.compute])

    @property
    def rma(self) -> tuple[str, str]:
        """Creation and synchronisation of its RMA windows, empty without. A transport may lack those of others."""
        return self.facts.sampling.win, self.facts.sampling.sync

    @property
    def workload(self) -> str:
        """Equal for rows that measured the same, over whatever medium and at whatever time."""
        return f"{self.task} {self.rma}"

    @property
    def quantity(self) -> Quantity:
        """Quantity of a cell. Where the facts lack it, it is that of the kernel."""
        kernel = KERNELS.get(self.kernel)
        quantity = self.facts.quantity or (kernel.quantity if kernel else "latency")
        return "bandwidth" if quantity == "bandwidth" else "latency"

    @property
    def payload(self) -> str:
        """Sender of the payload of a cell (src, dst): `src`, `dst`, `both` or `none`."""
        kernel = KERNELS.get(self.kernel)
        return self.facts.payload or (kernel.payload if kernel else "both")

    @property
    def is_duplex(self) -> bool:
        """True if both ends of a pair send at the same time."""
        return is_duplex(self.kernel)

    def counted_bytes(self, size: int) -> int:
        """Bytes that a bandwidth counts in the time of a message of this size: of both directions at once, both."""
        return directions_counted(self.kernel) * size

    @property
    def directions(self) -> str:
        """Cells of a pair that were measured: `both`, `single` (src < dst), `one` if the pattern has only one."""
        return self.facts.schedule.directions or "both"

    @property
    def purpose(self) -> str:
        """Return what it was measured for: `measure`, `rate_probe`, `bisection`, `retest` or `follow_up`."""
        return self.facts.purpose or "measure"

    @property
    def is_of_network(self) -> bool:
        """True if it measures the network as a whole, so that its pairs are not compared."""
        return self.purpose in ("rate_probe", "bisection")

    @property
    def layout(self) -> Literal["matrix", "list"]:
        """True if cells are a matrix over (src, dst) or a list of pairs."""
        return "list" if self.facts.schedule.layout == "list" else "matrix"

    @property
    def sizes(self) -> tuple[int, ...]:
        """Message sizes in bytes, in the order of the arrays."""
        return tuple(int(size) for size in self.arrays["size"][:])

    @property
    def statistics(self) -> tuple[str, ...]:
        """The statistics of the time that were stored: `min median mean p99 max` or some of them."""
        return tuple(name.removeprefix("time_") for name in self.arrays if name.startswith("time_"))

    @property
    def statistic(self) -> str:
        """The stored statistic that stands for a pair's time; empty where the row stored no times."""
        return next((name for name in _PREFERRED_STATISTICS if f"time_{name}" in self.arrays), "")

    @property
    def times(self) -> Any:
        """Array of this statistic, s, in the layout of the row; the row must have stored times."""
        return self.arrays[f"time_{self.statistic}"]

    def observations(self, size: int, statistic: str = "") -> Observations:
        """Times of all pairs at one size, of the statistic that stands for a pair if none is given.

        The median over the repeats where there are several.
        """
        statistic = statistic or self.statistic
        values = self.arrays[f"time_{statistic}"]
        index = self.sizes.index(size)
        if self.layout == "list":
            return Observations(self.name, self.kernel, size, statistic, values[:, :, index], self.arrays["dst"][:])
        return Observations(self.name, self.kernel, size, statistic, median_of_repeats(values[:, :, :, index]))


def median_of_repeats(times: np.ndarray) -> np.ndarray:
    """Return the median (src, dst) of the measured times (repeat, src, dst)."""
    import numpy as np

    if len(times) == 1:
        return np.asarray(times[0])
    ordered = np.sort(times, axis=0)  # NaN sorts last, and stays where nothing was measured
    measured = np.count_nonzero(~np.isnan(ordered), axis=0, keepdims=True)
    middle = (np.maximum(measured - 1, 0) // 2, measured // 2)
    return np.asarray(sum(np.take_along_axis(ordered, at, axis=0)[0] for at in middle) / 2)


@dataclass(frozen=True)
class Run:
    """A run directory as the other stages see it: facts by value, arrays on demand."""

    path: Path | None  # None: made in memory
    facts: RunFacts
    rows: tuple[Row, ...]
    notes: Sequence[str] = ()  # repairs by the reader; grows while arrays of a directory are read
    damaged: Collection[str] = ()  # files of the directory that are read as missing; grows likewise
    joined: tuple[Path, ...] = ()  # directories of the runs of several allocations that it was joined from

    @property
    def state(self) -> str:
        """`measuring`, `complete` or `interrupted`."""
        return self.facts.state

    @property
    def directories(self) -> tuple[Path, ...]:
        """Its run directory, or those of the runs that it was joined from; none if it was made in memory."""
        return self.joined if self.path is None else (self.path,)

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return self.facts.ranks

    @property
    def hosts(self) -> Sequence[str]:
        """Host of each rank, (ranks,) names."""
        return list(self.facts.hosts)

    @property
    def rank_host(self) -> Sequence[str]:
        """Host name of every rank."""
        hosts = self.hosts
        return [hosts[index] for index in self.facts.rank_host]

    def renamed(self, names: Mapping[str, str]) -> Run:
        """Return the run with other names for its hosts: `names` has them by the present names."""
        if all(names.get(host, host) == host for host in self.hosts):
            return self

        def by_host(table: Mapping[str, Any]) -> dict[str, Any]:
            return {names.get(host, host): value for host, value in table.items()}

        facts, counters = self.facts, self.facts.counters
        before, after = (None if table is None else by_host(table) for table in (counters.before, counters.after))
        return replace(
            self,
            facts=replace(
                facts,
                hosts=[names.get(host, host) for host in self.hosts],
                nics=by_host(facts.nics),
                counters=replace(counters, before=before, after=after),
                lost=[replace(entry, host=names.get(entry.host or "", entry.host)) for entry in facts.lost],
            ),
        )

    def row(self, name: str) -> Row:
        """Return the row `name`, which must exist."""
        return next(row for row in self.rows if row.name == name)
