"""One matrix of pairs in the layout of every tool that fablint reads. `seconds[i, j]`: a message from i to j."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator

import numpy as np

SIZE = 1 << 20
HOSTS = [f"nid{number:03}" for number in range(1, 13)]
MIB = 2.0**20


def pairs(n: int) -> Iterator[tuple[int, int]]:
    """All ordered pairs, row by row."""
    return ((i, j) for i in range(n) for j in range(n) if i != j)


def osu_per_pair(seconds: np.ndarray) -> bytes:
    """A line of hosts above a table of osu_latency, as Latency_Test writes it."""
    head = "# OSU MPI Latency Test v5.7\n# Size          Latency (us)\n"
    text = "".join(
        f"{HOSTS[i]},{HOSTS[j]}\n{head}{SIZE:<10}{seconds[i, j] * 1e6:18.2f}\n" for i, j in pairs(len(seconds))
    )
    return text.encode()


def osu_rates(seconds: np.ndarray) -> bytes:
    """osu_mbw_mr for one pair after the other."""
    head = "# OSU MPI Multiple Bandwidth / Message Rate Test v7.4\n# [ pairs: 1 ] [ window size: 64 ]\n"
    head += "# Datatype: MPI_CHAR.\n# Size                  MB/s        Messages/s\n"
    text = "".join(
        f"{HOSTS[i]},{HOSTS[j]}\n{head}{SIZE:<10}{SIZE / seconds[i, j] / 1e6:18.2f}{1 / seconds[i, j]:18.2f}\n"
        for i, j in pairs(len(seconds))
    )
    return text.encode()


def net_sanitizer(seconds: np.ndarray) -> bytes:
    """--verbose --hostnames: MiB/s, a tenth of the time, operations/s."""
    n = len(seconds)
    lines = [f"#nservers=0 nclients={n} niters=128 nflight=12 sequential=0 ssize={SIZE}, esize={SIZE}"]
    lines.append("#             src             dest Dir size(B)    time(s)   bw(MB/s) lat(us)       iops")
    for i, j in pairs(n):
        time = seconds[i, j]
        figures = f"{0.1:10.1f} {SIZE / time / MIB:10.0f} {time * 1e5:7.2f} {1 / time:10.0f}"
        lines.append(f"{HOSTS[i] + f'-{i}':>17}{HOSTS[j] + f'-{j}':>17} Und {SIZE:7} {figures}")
    return "\n".join([*lines, ""]).encode()


def linktest_serial(seconds: np.ndarray) -> bytes:
    """The log of LinkTest 1.2 with its stderr in between."""
    n = len(seconds)
    lines = [f"task[{rank:06}] on {host} ({rank},0,0,0) mem=    0.0142 MB " for rank, host in enumerate(HOSTS[:n])]
    lines += [f"linktest: Number of MPI-Task:{n:18}", f"linktest: Message length:{SIZE:22} Bytes"]
    lines += ["linktest: Number of Iteration:              100"]
    for step in range(1, n):
        lines.append(f" Serial   PingPong for step {step:5}: ")
        for i in range(n):
            j = (i + step) % n
            time = seconds[i, j]
            lines.append(f"{i:7}->{j:6}:{time * 1e6:12.5f}us ({SIZE / time / MIB:7.2f} MB/s) (l={i})")
        figure = "1.000us (   1.00 MB/s)"
        lines.append(f"  avg= {figure} min= {figure} max= {figure}")
    return "\n".join([*lines, ""]).encode()


def linktest_sion(seconds: np.ndarray) -> bytes:
    """The result file of LinkTest 1.2: a SIONlib container of one record per task."""
    n = len(seconds)
    step = (np.arange(n)[None, :] - np.arange(n)[:, None]) % n
    records = []
    for rank in range(n):
        record = b"LKTST" + struct.pack("<3i", 1, 2, 1) + HOSTS[rank].encode().ljust(256, b"\0")
        record += struct.pack("<4i", rank, 0, 0, 0)
        if rank == 0:
            record += struct.pack("<10i", 100, SIZE, 0, 1, 0, 0, 0, 0, 0, 1) + struct.pack("<10d", *[0.0] * 10)
        record += np.nan_to_num(seconds[rank]).astype("<f8").tobytes() + step[rank].astype("<i4").tobytes()
        record += bytes(24 * n) if rank == 0 else b""
        records.append(record)
    head = b"sion" + bytes(4) + struct.pack("<7i", 1007, 6, 5, 4096, n, 1, 0) + struct.pack("<2q", 50 << 32, 0)
    head += b"pingpong_results_bin.sion".ljust(1024, b"\0")
    head += np.arange(n, dtype="<i8").tobytes() + np.array([len(record) for record in records], "<i8").tobytes()
    head += struct.pack("<iq", 1, 0)
    return head.ljust(-(-len(head) // 4096) * 4096, b"\0") + b"".join(records)


def mpigraph(seconds: np.ndarray) -> bytes:
    """What senders say, and what receivers say: these were kept waiting now and then by their other stream."""
    n = len(seconds)
    rates = SIZE / seconds / MIB
    kept_waiting = np.where(np.add.outer(np.arange(n), np.arange(n)) % 3 == 0, 0.7, 1.0)
    names = [f"{host}:{rank}" for rank, host in enumerate(HOSTS[:n])]
    lines = ["START mpiGraph v1.5", f"MsgSize\t{SIZE}", "Times\t10", "Window\t4", f"Procs\t{n}", ""]
    for word, direction, table in (
        ("Send", "to", rates * kept_waiting),
        ("Recv", "from", (rates * (1.7 - kept_waiting)).T),
    ):
        table = np.nan_to_num(table)
        lines.append("\t".join([word, *names, ""]))
        lines += [
            "\t".join([f"{name} {direction}", *(f"{one:.3f}" for one in row), ""])
            for name, row in zip(names, table, strict=True)
        ]
        lines.append("")
    return "\n".join([*lines, "END mpiGraph", ""]).encode()


def hp2p_page(seconds: np.ndarray) -> bytes:
    """NAME.html, of which two digits behind the point are left."""
    names = ", ".join(f'"{host}:{rank}"' for rank, host in enumerate(HOSTS[: len(seconds)]))
    rows = ", ".join("[ " + ", ".join(f"{one:.2f}" for one in row) + ", ]" for row in _rates(seconds))
    return (
        f"<html><script>\n// hostlist start\nvar hostlist = \n[ {names}, ]\n;\n// hostlist end\n"
        f"// msg_size start\nvar msg_size = \n    {SIZE}\n    ;\n// msg_size end\n"
        f"// bandwidth start\nvar bandwidth = \n[ {rows}, ]\n;\n// bandwidth end\n</script></html>\n"
    ).encode()


def hp2p_bin(seconds: np.ndarray) -> bytes:
    """-f bin, as MPICH's length of names makes it."""
    n, times = len(seconds), np.nan_to_num(seconds)
    names = b"".join(f"{host}:{rank}".encode().ljust(128, b"\0") for rank, host in enumerate(HOSTS[:n]))
    count = (times > 0).astype("<i4") * 7
    return (
        struct.pack("<i", n)
        + names
        + (_rates(seconds) * MIB).tobytes()
        + times.astype("<f8").tobytes()
        + count.tobytes()
    )


def _rates(seconds: np.ndarray) -> np.ndarray:
    """MiB/s, 0 on the diagonal."""
    return np.nan_to_num(SIZE / seconds / MIB)


def clusterkit_text(seconds: np.ndarray) -> bytes:
    """latency.txt, whose figures have one digit behind the point."""
    n, us = len(seconds), np.nan_to_num(seconds * 1e6)
    lines = ["Rank:" + "".join(f"{rank:10}" for rank in range(n))]
    lines += [f"{rank:4} ({HOSTS[rank]}):" + "".join(f"{one:10.1f}" for one in us[rank]) for rank in range(n)]
    return "\n".join([*lines, f"Minimum latency: {us.max():.1f} usec between a and b", ""]).encode()


def clusterkit_json(seconds: np.ndarray) -> bytes:
    rows = np.nan_to_num(seconds * 1e6).tolist()
    return json.dumps({"test": {"nodes": HOSTS[: len(seconds)], "latency": rows}}).encode()


def csv_times(seconds: np.ndarray) -> bytes:
    lines = [f"{HOSTS[i]},{HOSTS[j]},{SIZE},{seconds[i, j]!s}" for i, j in pairs(len(seconds))]
    return "\n".join(["src,dst,size,time", *lines, ""]).encode()


def csv_rates(seconds: np.ndarray) -> bytes:
    """Other order of columns, one more, blanks, a remark."""
    lines = [f"{SIZE / seconds[i, j] / 1e6:.6f}, {HOSTS[i]}, {HOSTS[j]}, {SIZE}, x" for i, j in pairs(len(seconds))]
    return "\n".join(["# by hand", "bandwidth, src, dst, size, remark", *lines, ""]).encode()


LAYOUTS = {  # name -> renderer, kernel of the row, relative error of the digits that are printed
    "osu latency": (osu_per_pair, "latency", 1e-4),
    "osu mbw_mr": (osu_rates, "bandwidth", 1e-5),
    "net_sanitizer": (net_sanitizer, "bandwidth", 1e-3),
    "linktest log": (linktest_serial, "latency", 1e-6),
    "linktest sion": (linktest_sion, "latency", 1e-6),
    "mpigraph": (mpigraph, "bandwidth", 1e-6),
    "hp2p page": (hp2p_page, "exchange", 1e-5),
    "hp2p bin": (hp2p_bin, "exchange", 1e-6),
    "clusterkit text": (clusterkit_text, "latency", 1e-3),
    "clusterkit json": (clusterkit_json, "latency", 1e-6),
    "csv times": (csv_times, "latency", 1e-6),
    "csv rates": (csv_rates, "bandwidth", 1e-6),
}
