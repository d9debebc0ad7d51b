"""net_sanitizer's text -> cells."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fablint.store.importing.cells import (
    BANDWIDTH,
    EVERYBODY,
    Body,
    Imported,
    Kernel,
    LeftOut,
    RankName,
    cells_of,
    left_out,
    ranks_named,
    refuse_hosts,
    sharpest,
    world_body,
)
from fablint.store.importing.job_maps import JobHosts
from fablint.store.importing.lines import marked, text_of
from fablint.store.importing.net_sanitizer import (
    Connection,
    Figures,
    NetSanitizerText,
    Summary,
    parse_net_sanitizer,
)

MARK = marked(
    rb"#nservers=|#  +src +dest Dir size|(?:Dir)? *size\(B\) +time\(s\) +bw\(MB/s\) +lat\(us\) +iops|"
    rb" *\S+ +\S+ (?:Und|Put|Get) +[0-9]+ +[0-9.]+ +[0-9]+ +[0-9.]+ +[0-9]+ *$"
)

# All-to-all moves data in one direction between the ends of a pair, both ends report it, and the text does not name the
# sender: each rank's own clock for the work of both, as in an exchange.
_STREAM = Kernel("bandwidth", "bandwidth", "both")
# Its Get is a second Put: the released program calls MPI_Rput for both. fablint's own tables are correct.
_PUT = Kernel("rpc_put", "bandwidth", "dst")
_GET = Kernel("rpc_get", "bandwidth", "src")
_ALL = "all"  # the partner of a client, if there are servers
_RANKED = re.compile(r"(.+)-([0-9]+)$")  # --hostnames: the host and a rank


def read_net_sanitizer(data: bytes, hosts: Sequence[str]) -> Imported:
    """Import connections of --verbose as pairs; sums over all ranks as figures of the whole fabric."""
    parsed = parse_net_sanitizer(text_of(data))
    names = list(
        dict.fromkeys(
            name for connection in parsed.connections for name in (connection.src, connection.dest) if name != _ALL
        )
    )
    rank_names, numbers = _rank_names(names, hosts, parsed)
    serial = any(counts.values.get("sequential") for counts in parsed.counts)
    pairs, blind = _pairs(parsed, numbers, serial)
    clients = [connection for connection in parsed.connections if _ALL in (connection.src, connection.dest)]
    bodies = [pairs, *_clients(parsed, clients, numbers), *_fabric(parsed, len(rank_names))]
    return Imported(
        tool="net_sanitizer",
        rank_names=rank_names,
        bodies=tuple(body for body in bodies if len(body.cells)),
        left_out=(*left_out(parsed.foreign), *blind),
        not_judged="" if len(pairs.cells) else "figures of all ranks together only",
        remedy="" if len(pairs.cells) else "it has no figures of single pairs: run it with --verbose",
    )


def _rank_names(
    names: list[str], hosts: Sequence[str], parsed: NetSanitizerText
) -> tuple[tuple[RankName, ...], dict[str, int]]:
    """Ranks, and the rank of each name. Without --hostnames the names are the rank numbers."""
    if names and all(name.isdecimal() and len(name) < 9 for name in names):
        names.sort(key=int)
        if isinstance(hosts, JobHosts):
            hosts = [hosts[int(name)] for name in names] if int(names[-1]) < len(hosts) else ()
        rank_names = ranks_named(len(names), hosts)
        if not hosts:
            rank_names = tuple(RankName(f"rank{name}") for name in names)
        return rank_names, {name: at for at, name in enumerate(names)}
    if not names:
        counted = (counts.values.get("nservers", 0) + counts.values.get("nclients", 0) for counts in parsed.counts)
        return ranks_named(len(hosts) or max(2, min(max(counted, default=0), 1 << 20)), hosts), {}
    refuse_hosts(hosts)
    parts = [_RANKED.match(name) for name in names]
    whole = all(parts)  # if names fill their column, the rank is cut off
    split = [(part[1], part[2]) for part in parts if part and whole] or [(name, "") for name in names]
    rank_names = tuple(RankName(host, rank) for host, rank in split)
    return rank_names, {name: at for at, name in enumerate(names)}


def _seconds(parsed: NetSanitizerText, figures: Figures, size: int, ranks: int = 1) -> float | None:
    """Seconds per message of one of `ranks` ranks, from the column with the most digits."""
    bandwidth, latency, iops = figures.bandwidth, figures.latency, figures.iops
    return sharpest(
        (iops, 0.5, ranks / iops if iops else 0.0),
        (bandwidth, 0.5, size * ranks / (bandwidth * parsed.megabyte) if bandwidth else 0.0),
        (latency, 0.005, latency * parsed.latency_factor * 1e-6 / ranks if latency else 0.0),
    )


def _pairs(parsed: NetSanitizerText, numbers: dict[str, int], serial: bool) -> tuple[Body, list[LeftOut]]:
    """Body with a cell for each line, and the skipped lines. Cell (i, j) is the time reported by i.""" ""
    entries, blind = [], []
    for connection in parsed.connections:
        if _ALL in (connection.src, connection.dest):
            continue
        seconds = _seconds(parsed, connection.figures, connection.size)
        if seconds is None or connection.src == connection.dest:
            blind.append(
                LeftOut(connection.line, f"{connection.src} {connection.dest} {connection.size}", "no usable figure")
            )
        else:
            entries.append((numbers[connection.src], numbers[connection.dest], connection.size, seconds))
    n = len(numbers)
    iterations = max((counts.values.get("niters", 1) for counts in parsed.counts), default=1)
    window = {"window": counts["nflight"]} if (counts := _counts(parsed)).get("nflight") else {}
    facts = {"directions": "both", **window}
    cells = cells_of(entries, count=max(1, iterations))
    return Body("bandwidth", _STREAM, cells, [n * (n - 1)], "serial" if serial else "unknown", facts=facts), blind


def _counts(parsed: NetSanitizerText) -> dict[str, int]:
    return dict(parsed.counts[0].values) if parsed.counts else {}


def _clients(parsed: NetSanitizerText, clients: Sequence[Connection], numbers: dict[str, int]) -> list[Body]:
    """Body for each client with all servers together."""
    bodies = []
    for direction, name in (("Put", "put"), ("Get", "get")):
        entries = []
        for client in clients:
            seconds = _seconds(parsed, client.figures, client.size)
            if client.direction == direction and seconds is not None:
                name_of_client = client.dest if client.src == _ALL else client.src
                entries.append((numbers.get(name_of_client, 0), EVERYBODY, client.size, seconds))
        cells = cells_of(entries)
        kernel = _kernel(parsed, direction)
        body = Body(f"clients-{name}", kernel, cells, [len(numbers)], "parallel", "world", {"directions": "one"})
        bodies.append(body)
    return bodies


def _kernel(parsed: NetSanitizerText, direction: str) -> Kernel:
    is_fablint = parsed.latency_factor == 1
    return {"Put": _PUT, "Get": _GET if is_fablint else _PUT}.get(direction, BANDWIDTH)


def _fabric(parsed: NetSanitizerText, ranks: int) -> list[Body]:
    """Body for all ranks together: the mean rank's time of a message, and the extremes."""
    bodies = []
    for direction in dict.fromkeys(summary.direction for summary in parsed.summaries):
        summaries = [summary for summary in parsed.summaries if summary.direction == direction]
        count = _counts(parsed).get("nclients") or ranks
        entries = [(summary.size, seconds) for summary in summaries if (seconds := _over_ranks(parsed, summary, count))]
        if entries:
            name = {"Put": "all-put", "Get": "all-get"}.get(direction, "all")
            bodies.append(world_body(name, _kernel(parsed, direction), entries))
    return bodies


def _over_ranks(parsed: NetSanitizerText, summary: Summary, ranks: int) -> dict[str, float]:
    """Seconds by statistic. SUM adds the bytes of the ranks; the column MIN has the lowest rate and longest time."""
    kinds = (("mean", summary.sum, ranks), ("max", summary.min, 1), ("min", summary.max, 1))
    seconds_of = {name: _seconds(parsed, figures, summary.size, count) for name, figures, count in kinds if figures}
    return {name: seconds for name, seconds in seconds_of.items() if seconds is not None}
