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
    no_hosts_wanted,
    ranks_named,
    sharpest,
    world_body,
)
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

# All-to-all moves data one way between the ends of a pair, both ends report it, and the text does not say who sent:
# each rank's own clock on what both did, as in an exchange.
_STREAM = Kernel("bandwidth", "bandwidth", "both")
# Its Get is a second Put: the released program calls MPI_Rput for both. fablint's own tables keep what they say.
_PUT = Kernel("rpc_put", "bandwidth", "dst")
_GET = Kernel("rpc_get", "bandwidth", "src")
_ALL = "all"  # the partner of a client, where there are servers
_RANKED = re.compile(r"(.+)-([0-9]+)$")  # --hostnames: the host and a rank


def read_net_sanitizer(data: bytes, hosts: Sequence[str]) -> Imported:
    """Connections of --verbose as pairs; sums over all ranks as figures of the whole fabric."""
    found = parse_net_sanitizer(text_of(data))
    names = list(dict.fromkeys(name for one in found.connections for name in (one.src, one.dest) if name != _ALL))
    rank_names, numbers = _rank_names(names, hosts, found)
    serial = any(counts.values.get("sequential") for counts in found.counts)
    pairs, blind = _pairs(found, numbers, serial)
    clients = [one for one in found.connections if _ALL in (one.src, one.dest)]
    bodies = [pairs, *_clients(found, clients, numbers), *_fabric(found, len(rank_names))]
    return Imported(
        tool="net_sanitizer",
        rank_names=rank_names,
        bodies=tuple(body for body in bodies if len(body.cells)),
        left_out=(*left_out(found.foreign), *blind),
        missing="" if len(pairs.cells) else "it has no pairs, but figures over all ranks: run it with --verbose",
    )


def _rank_names(
    names: list[str], hosts: Sequence[str], found: NetSanitizerText
) -> tuple[tuple[RankName, ...], dict[str, int]]:
    """Ranks, and the rank of each name. Without --hostnames the names are the ranks themselves."""
    if names and all(name.isdecimal() and len(name) < 9 for name in names):
        names.sort(key=int)
        rank_names = ranks_named(len(names), hosts)
        if not hosts:
            rank_names = tuple(RankName(f"rank{name}") for name in names)
        return rank_names, {name: at for at, name in enumerate(names)}
    if not names:
        clients = max((counts.values.get("nclients", 0) for counts in found.counts), default=0)
        return ranks_named(len(hosts) or max(2, min(clients, 1 << 20)), hosts), {}
    no_hosts_wanted(hosts)
    parts = [_RANKED.match(name) for name in names]
    whole = all(parts)  # where names fill their column the rank is cut off
    split = [(part[1], part[2]) for part in parts if part and whole] or [(name, "") for name in names]
    rank_names = tuple(RankName(host, rank) for host, rank in split)
    return rank_names, {name: at for at, name in enumerate(names)}
    if not names:
        clients = max((counts.values.get("nclients", 0) for counts in found.counts), default=0)
        return ranks_named(len(hosts) or max(2, min(clients, 1 << 20)), hosts), {}
    no_hosts_wanted(hosts)
    parts = [_RANKED.match(name) for name in names]
    whole = all(parts)  # where names fill their column the rank is cut off
    rank_names = tuple(
        RankName(part[1], part[2]) if part and whole else RankName(name)
        for part, name in zip(parts, names, strict=True)
    )
    return rank_names, {name: at for at, name in enumerate(names)}


def _seconds(found: NetSanitizerText, figures: Figures, size: int, ranks: int = 1) -> float | None:
    """Time of a message of one of so many ranks, from the column with the most digits."""
    bandwidth, latency, iops = figures.bandwidth, figures.latency, figures.iops
    return sharpest(
        (iops, 0.5, ranks / iops if iops else 0.0),
        (bandwidth, 0.5, size * ranks / (bandwidth * found.megabyte) if bandwidth else 0.0),
        (latency, 0.005, latency * found.latency_factor * 1e-6 / ranks if latency else 0.0),
    )


def _pairs(found: NetSanitizerText, numbers: dict[str, int], serial: bool) -> tuple[Body, list[LeftOut]]:
    """A cell for each line: (i, j) is what i says of what it did with j."""
    entries, blind = [], []
    for one in found.connections:
        if _ALL in (one.src, one.dest):
            continue
        seconds = _seconds(found, one.figures, one.size)
        if seconds is None or one.src == one.dest:
            blind.append(LeftOut(one.line, f"{one.src} {one.dest} {one.size}", "no figure that says anything"))
        else:
            entries.append((numbers[one.src], numbers[one.dest], one.size, seconds))
    n = len(numbers)
    iterations = max((counts.values.get("niters", 1) for counts in found.counts), default=1)
    window = {"window": counts["nflight"]} if (counts := _counts(found)).get("nflight") else {}
    facts = {"directions": "both", **window}
    cells = cells_of(entries, count=max(1, iterations))
    return Body("bandwidth", _STREAM, cells, [n * (n - 1)], "serial" if serial else "unknown", facts=facts), blind


def _counts(found: NetSanitizerText) -> dict[str, int]:
    return dict(found.counts[0].values) if found.counts else {}


def _clients(found: NetSanitizerText, clients: Sequence[Connection], numbers: dict[str, int]) -> list[Body]:
    """Each client with all servers together."""
    bodies = []
    for direction, name in (("Put", "put"), ("Get", "get")):
        entries = []
        for one in clients:
            seconds = _seconds(found, one.figures, one.size)
            if one.direction == direction and seconds is not None:
                client = one.dest if one.src == _ALL else one.src
                entries.append((numbers.get(client, 0), EVERYBODY, one.size, seconds))
        cells = cells_of(entries)
        kernel = _kernel(found, direction)
        body = Body(f"clients-{name}", kernel, cells, [len(numbers)], "parallel", "world", {"directions": "one"})
        bodies.append(body)
    return bodies


def _kernel(found: NetSanitizerText, direction: str) -> Kernel:
    ours = found.latency_factor == 1
    return {"Put": _PUT, "Get": _GET if ours else _PUT}.get(direction, BANDWIDTH)


def _fabric(found: NetSanitizerText, ranks: int) -> list[Body]:
    """What all ranks together had: the mean rank's time of a message, and those of the extremes."""
    bodies = []
    for direction in dict.fromkeys(one.direction for one in found.summaries):
        ours = [one for one in found.summaries if one.direction == direction]
        count = _counts(found).get("nclients") or ranks
        entries = [(one.size, seconds) for one in ours if (seconds := _over_ranks(found, one, count))]
        if entries:
            name = {"Put": "all-put", "Get": "all-get"}.get(direction, "all")
            bodies.append(world_body(name, _kernel(found, direction), entries))
    return bodies


def _over_ranks(found: NetSanitizerText, one: Summary, ranks: int) -> dict[str, float]:
    """SUM adds what the ranks moved. The column MIN has the least rate and the longest time, MAX the other ones."""
    kinds = (("mean", one.sum, ranks), ("max", one.min, 1), ("min", one.max, 1))
    found_all = {name: _seconds(found, figures, one.size, count) for name, figures, count in kinds if figures}
    return {name: seconds for name, seconds in found_all.items() if seconds is not None}
