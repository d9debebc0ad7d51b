"""What launchers and libraries add to the output of a program: labels before its lines, and lines of their own.

A label is removed from every line of a file only if the file has a known format without it (`formats.recognise`), so
that a label which looks like data does no harm.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Sequence

_CLOCK = rb"[0-9]{2}:[0-9]{2}:[0-9]{2}"
_DATE = rb"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]"

_TAG = rb"\[[\w.@,-]*[0-9]+,[0-9]+\](?:\[[^\]\n]*\])?<std(?:out|err|diag)>: ?"

# Labels at the start of a line, those that no data resemble first.
LABELS = tuple(
    re.compile(rb"(?m)^" + label)
    for label in (
        # Open MPI, PRRTE: [1,0]<stdout>:  [prterun-n1-42@1,0]<stdout>:  [1,0][n1:42]<stderr>:  Tue Nov  3 ...<stdout>:
        # A tag may also be within a line that was written in pieces.
        rb"[^<>\n]{0,200}<std(?:out|err|diag)>: ?|" + _TAG,
        # kubectl logs --timestamps, ts, files of containers
        rb"(?:%s)?%s(?:[.,][0-9]+)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?[ \t](?:std(?:out|err) [FP] )?" % (_DATE, _CLOCK),
        rb"(?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} [ 0-9][0-9] %s(?: [0-9]{4})?:? " % _CLOCK,  # ts, syslog
        rb"[A-Za-z0-9][\w.-]* [\w./-]+\[[0-9]+\]: ",  # journalctl, syslog: host, program, process
        rb"\[[^\]\n]{1,200}\]:? ?",  # rank, host, time: mpiexec -l of Hydra, mpirun_rsh, kubectl logs --prefix
        rb"\([0-9]+\)[: ] ?",
        rb" *[0-9]+: ?",  # srun -l
        rb"[A-Za-z0-9][\w.-]* [0-9]+: ",  # mpiexec -l of PALS: host, rank
        rb"[A-Za-z0-9][\w.-]* *[|>] ?",  # docker compose
        rb"[A-Za-z0-9][\w.-]*: ?",  # pdsh, clush: host
        rb"[0-9]+:[A-Za-z][\w.-]* ",  # `-prepend-pattern '%r:%h '`
        rb"(?:> ?)+",  # of a mail
        rb"\\(?=# )",  # of Markdown
        rb"[ \t]+",
    )
)

_SOURCE = re.compile(
    rb"(?<=,)[0-9]+(?=\])|^[A-Za-z0-9][\w.-]*(?= [\w./-]+\[[0-9]+\]: )"
)  # rank of a tag, host of a log
_TIMES = re.compile(  # they differ from line to line
    _DATE + rb"|" + _CLOCK + rb"(?:[.,][0-9]+)?(?:Z|[+-][0-9:]{4,6})?|\b[0-9]{9,}(?:\.[0-9]+)?|\b[0-9]{4}\b"
    rb"|(?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} [ 0-9][0-9] |\bstd(?:out|err) [FP]\b"
)
_TERMINAL = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]")  # colours and movements of the cursor


def as_plain(data: bytes) -> bytes:
    """Return a text as the program wrote it: UTF-8, without the colours of a terminal and the blanks of a web page."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        data = data.decode("utf-16", errors="replace").encode()
    if b"\n" not in data:
        data = data.replace(b"\r", b"\n")
    return _TERMINAL.sub(b"", data).replace("\N{NO-BREAK SPACE}".encode(), b" ")


def by_source(labels: Sequence[re.Pattern[bytes]], data: bytes) -> Mapping[bytes, bytes]:
    """Return the lines of each rank, host or container that labels name, without the labels."""
    lines: dict[bytes, list[bytes]] = {}
    for line in data.split(b"\n"):
        names, rest = list[bytes](), line
        for label in labels:
            if match := label.match(rest):
                rest = rest[match.end() :]
                names += [_source(match[0])]
        if any(names):
            lines.setdefault(b" ".join(names), []).append(rest)
    return {source: b"\n".join(each) for source, each in lines.items()}


def _source(label: bytes) -> bytes:
    """Return the rank, host or container that a label names; empty where it is a time or a mark."""
    match = _SOURCE.search(label)
    return match[0] if match else _TIMES.sub(b"", label).strip(b" \t:|>[]()")


_NOISE = re.compile(
    r"\S+:\d+:\d+ \[\d+\] .*\bNCCL (?:INFO|WARN|TRACE|CALL)|(?:NCCL|RCCL) version |rccl-tests: |RCCL library path"
    r"|#Using [NR]CCL\b|(?:HIP|ROCm) version|Hostname +:|Librccl path"
    r"|\[\d+\.\d+\] \[\S+ *:\d+ *(?::\d+)?\] .*\bUCX +[A-Z]+|libfabric:\d+:|\[\S+:\d+\] |\[\S+:\d+:\d+:\d+\] "
    r"|(?:\([A-Za-z0-9][\w.-]*:\d+(?:,\d+)*\))+$|cpu[-_]bind[=-]|\[PE_\d+\]:"
    r"|=+ +JOB MAP|Data for (?:JOB|node)[ :]| *(?:Mapping policy|Cpu set|Process (?:jobid|OMPI jobid)|PPR|Bound):? "
    r"|(?:MPI startup|\[\d+\] MPI startup)\(\)|\[(?:mpiexec|proxy)[@:]|impi: |MPID?[A-Z]*_?[A-Z]*: "
    r"|(?:srun|salloc|sbatch|slurmstepd\S*|mpirun|mpiexec|orterun|prterun|aprun|palsd?|jsrun)(?:\.\w+)?: "
    r"|(?:Loading|Unloading|Activating|Inactive|Currently Loaded|Due to MODULEPATH|The following have been) "
    r"|Proc <\d+> on <|\d+ started on <|PE \d+: |MPICH |MPI VERSION|CXI |OFI |Warning: |(?:WARNING|INFO|NOTE|DEBUG)\b"
    r"|[$+#>] ?\S*(?:mpirun|mpiexec|srun|prterun|osu_|IMB|_perf)\b|(?:real|user|sys)\t"
    r"|[-=*_+~. ]{4,}$"
)
# What launchers, MPI libraries, batch systems and shells say of a program that did not end by itself.
_ABORT = re.compile(
    r"BAD TERMINATION|APPLICATION TERMINATED WITH|MPI_ABORT was invoked|application called MPI_Abort"
    r"|^Abort\(-?\d+\) on node|MPI_ERRORS_ARE_FATAL|Process received signal|\]: aborting job"
    r"|(?:mpirun|mpiexec|orterun|prterun|prun|PRTE|ORTE)\S* (?:noticed that|detected that one|has lost communication)"
    r"|process(?:es)? (?:returned$|terminated with signal)|\brank \d+ (?:died from|exited with|exited due to) "
    r"|^srun: error: .*(?:Killed|Exited|Segmentation|Aborted|Terminated|Out Of Memory|Bus error|Floating)"
    r"|Job step aborted|\*\*\* (?:STEP|JOB) \S+ (?:ON \S+ )?CANCELLED|DUE TO TIME LIMIT|oom[-_]kill|PBS: job killed"
    r"|^TERM_\w+: "
    r"|(?:Segmentation fault|Bus error|Aborted|Killed|Terminated|Illegal instruction)(?: *\(core dumped\))?$"
)
_DECIMAL = re.compile(r"[0-9]+\.[0-9]{2,}")  # alone on a line: behind a message that divided a row
_NUMERIC = re.compile(r"[-+]?[0-9][0-9.,:eE+-]*%?")


def is_noise(line: str) -> bool:
    """Return whether a launcher, a library or a shell prints such a line beside the output of any program."""
    return _NOISE.match(line) is not None


def is_abort(line: str) -> bool:
    """Return whether a line says that a program was stopped, so that its output may end early."""
    return _ABORT.search(line) is not None


def has_figures(line: str) -> bool:
    """Return whether a line is a row of numbers: of a table, or of what is left of one."""
    words = line.split()
    if len(words) == 1:
        return _DECIMAL.fullmatch(words[0]) is not None
    return len(words) > 1 and all(map(_NUMERIC.fullmatch, words))


def is_mostly_figures(line: str) -> bool:
    """Return whether a line is a row of a table: numbers, and fewer words than numbers. Comments are none."""
    words = line.split()
    numbers = sum(_NUMERIC.fullmatch(word) is not None for word in words)
    return 2 * numbers >= max(len(words), 2) and not words[0].startswith("#")
