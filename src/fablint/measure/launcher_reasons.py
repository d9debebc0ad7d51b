"""The line of a launcher's output that says why ranks did not start: of Open MPI, Hydra, srun and ssh.

Launchers print warnings before the reason, and the consequences of it at length afterwards. Samples of what they print,
with their origin, are in tests/fixtures/launchers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

# Reasons, those that explain others first: a missing library also makes the daemons and the start of MPI fail.
_REASONS = tuple(
    re.compile(pattern)
    for pattern in (
        r"error while loading shared libraries|symbol lookup error|version `\S+' not found",
        r"execvp error|execve\(\): |Exec format error|Executable: +\S|unable to change wdir"
        r"|Working directory: +/|command not found|: not found$|Permission denied \(|Host key verification failed",
        r"^(\S+: )?ssh: |kex_exchange_identification|^Connection (closed|reset) by ",
        r"OUT[-_]OF[-_]RESOURCE|No space left|not enough space|quota exceeded|Cannot allocate memory|NO[-_]PERMISSIONS",
        r"unable to create the desired directory|listener thread failed|not enough slots|not built with SLURM's PMI",
        r"connect\(\) to \S+ failed",
        r"srun: error: (?!.*: tasks? [\d,-]+: )",
    )
)
# Less informative than the death of a rank that was killed.
_CRASHES = tuple(map(re.compile, (r"\] Signal: |EXIT STRING: ", r"Fatal error in ", r"PMIX ERROR|PMIX_ERR")))
_NOISE = re.compile(
    r"\bwarning: |more process(es)? ha(s|ve) sent help message|Set MCA parameter|couldn't chdir to"
    r"|lacks support for cpu binding|job \d+ has been allocated resources|^(srun|salloc): Nodes \S+ are ready for job",
    re.IGNORECASE,
)
_CONSEQUENCE = re.compile(
    r"Primary job|a non-zero exit code|BAD TERMINATION|CLEANING UP|YOU CAN IGNORE|It looks like \S+ failed"
    r"|unable to reliably start|An error occurred in MPI_Init|on a NULL communicator|MPI_ERRORS_ARE_FATAL"
    r"|exited with non-zero status|processes failed to start|HYDT_|HYD_p|HYDU_sock|main \(|control_cb"
    r"|ERROR_LOG|Job step aborted|Terminating StepId"
)
_STACK = re.compile(
    r"\w+\(\d+\)\.*: (?P<text>.*)"
)  # below a fatal error of MPICH and Intel MPI: the last one is the cause
_RULER = re.compile(r"-{70,}")
_ROW = re.compile(r"\s*(?P<label>[A-Z][\w ]*?)\s*:\s+(?P<value>\S.*)")  # of a table in a message of Open MPI
_LABEL = re.compile(r"^Message: +")
# A host does not start the daemon of the launcher. Open MPI ends soon after it, Hydra waits without end.
_NO_DAEMON = re.compile(
    r"(\S+: )?ssh: (Could not resolve|connect to host) |Host key verification failed|.*: Permission denied \("
    r"|(ORTE|PRTE) has lost communication with a remote daemon"
    r"|.*\b(hydra_pmi_proxy|hydra_bstrap_proxy|orted|prted): (command not found|not found|No such file|error while)"
)


def is_without_daemon(lines: Sequence[str]) -> bool:
    """Tell whether a launcher reports a host on which its daemon did not start."""
    return any(map(_NO_DAEMON.match, lines))


def launcher_reason(lines: Sequence[str], killed: str = "") -> str:
    """Return the reason in the output of a launcher on one line; '' if the output has no words.

    Parameters
    ----------
    lines
        The output.
    killed
        Report of the launcher about a rank that was killed: the rank itself prints nothing. '' if there is none.
    """
    worded = [index for index, line in enumerate(lines) if any(map(str.isalpha, line))]
    candidates = [index for index in worded if not _NOISE.search(lines[index])]
    reason = _first_match(_REASONS, lines, candidates) or killed or _first_match(_CRASHES, lines, candidates)
    if reason:
        return reason
    causes = [index for index in candidates if not _CONSEQUENCE.search(_whole(lines, index))]
    return next((_whole(lines, indices[0]) for indices in (causes, candidates, worded) if indices), "")


def _first_match(patterns: Sequence[re.Pattern[str]], lines: Sequence[str], candidates: Sequence[int]) -> str:
    """Return the message with the first line that matches the first of the patterns; '' if none matches."""
    matches = (index for pattern in patterns for index in candidates if pattern.search(lines[index].strip()))
    return next((_whole(lines, index) for index in matches), "")


def _whole(lines: Sequence[str], index: int) -> str:
    """Return the message that a line is part of: of a message between two rulers its first sentence and its table."""
    line = lines[index].strip()
    if _LABEL.match(line):
        return _LABEL.sub("", line)
    if "Fatal error in " in line:
        stack = [match["text"] for match in map(_STACK.match, map(str.strip, lines[index + 1 :])) if match]
        return ": ".join([line.partition(", error stack")[0], *stack[-1:]])
    rulers = [at for at, text in enumerate(lines) if _RULER.match(text)]
    before, after = [at for at in rulers if at < index], [at for at in rulers if at > index]
    if len(before) % 2 == 0 or not after:  # outside of a message
        return line
    message = lines[before[-1] + 1 : after[0]]
    heading = " ".join(text.strip() for text in takewhile(_is_of_heading, message))
    sentence = re.split(r"(?<=[\w)])[.:](?: |$)", heading)[0]
    rows = [f"{row['label']}: {row['value'].strip()}" for row in _rows(message)]
    return f"{sentence}: {', '.join(rows)}" if rows and sentence else sentence or line


def _is_of_heading(line: str) -> bool:
    return bool(line.strip()) and not _ROW.fullmatch(line)


def _rows(message: Sequence[str]) -> Iterator[re.Match[str]]:
    """Yield the rows of the table in a message."""
    return filter(None, map(_ROW.fullmatch, message))
