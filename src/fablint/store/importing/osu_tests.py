"""Tests of OSU, by the titles that its programs print."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from fablint.model.registry import KERNELS, KernelInfo, directions_counted
from fablint.store.importing.cells import BANDWIDTH, LATENCY, Kernel
from fablint.store.importing.osu import OsuTable

LATENCIES = ("Latency (us)", "Latency(us)", "Avg Latency(us)", "Avg Latency (us)")  # columns
RECORDED = Kernel("collective", "latency", "both")  # a collective that no kernel measures

_MEMORIES = {  # in titles, behind `MPI` or behind the name of a one-sided operation
    **{"CUDA": "cuda", "CUDA MANAGED": "cuda", "MANAGED": "cuda"},
    **{"ROCM": "hip", "OPENACC": "device", "CXL": "cxl"},
}
_ACCELERATOR = re.compile(rf"-({'|'.join(sorted(_MEMORIES, key=len, reverse=True))})(?= )")
_LETTERS = re.compile(r"\s([DHM]) ([DHM])\s*$")  # arguments of a command line
_BUFFERS = {"D": "DEVICE", "H": "HOST", "M": "MANAGED"}
_COLLECTIVE = re.compile(r"reduce|gather|scatter|all-?to-?all|barrier|broadcast|bcast|neighb")


@dataclass(frozen=True)
class OsuTest:
    """A test that a title names. `directions`: of its bandwidth; `many`: it may be of many pairs."""

    kernel: Kernel
    directions: int = 1
    many: bool = False
    collective: bool = False
    name: str = ""  # of its row; '' for that of the kernel


_TITLE = re.compile(  # of C; of Python; of Java, whose names of tests are one word
    r"(?:OSU (?:One Sided )?(?:MPI|[NR]CCL)[ _]|OMB[- ]Py(?:thon)? MPI |OSU (?:Open MPI )?(?=[\w-]+ Test$))"
    r"(.+?)(?: Test)?$"
)
_LANGUAGES = {"OMB": "Python", "OSU MPI": "", "OSU One": "", "OSU NCCL": "", "OSU RCCL": ""}  # by the first words


def _words_of_title(title: str) -> str:
    """The words of a title between `OSU MPI` and `Test`; empty where it is not a title of OSU."""
    match = _TITLE.match(_ACCELERATOR.sub("", title))
    words = match[1].lower().replace("_", " ").replace("bidirect", "bi-direct").split() if match else []
    words = ["bi-directional", "bandwidth"] if words == ["bi-bandwidth"] else words
    return " ".join(word for word in words if word != "test")  # 7.5: `Latency Test Persistent`


def _of_kernel(kernel: KernelInfo) -> OsuTest:
    measured = Kernel(kernel.name, kernel.quantity, kernel.payload)
    return OsuTest(measured, directions_counted(kernel.name), collective=kernel.is_collective)


# By the words of the title. Tests whose figure is not the time of a message are missing.
_TESTS: Mapping[str, OsuTest] = {
    "multi latency": OsuTest(LATENCY, many=True),
    "multiple bandwidth / message rate": OsuTest(BANDWIDTH, many=True),
    "get multi latency": replace(_of_kernel(KERNELS["get_latency"]), many=True),
    "get multiple bandwidth bandwidth": replace(_of_kernel(KERNELS["get_bandwidth"]), many=True),
    **{words: _of_kernel(kernel) for kernel in KERNELS.values() if (words := _words_of_title(kernel.osu_title))},
}


def test_of(table: OsuTable) -> tuple[OsuTest | None, Mapping[str, str]]:
    """Test of a title, and the memory and the transport that it names. Without a title the column decides."""
    if not table.title:
        latency = bool(table.columns) and table.columns[0] in LATENCIES
        return (_TESTS["latency"] if latency and len(table.columns) == 1 else None), {}
    words, accelerator = _words_of_title(table.title), _ACCELERATOR.search(table.title)
    test = _TESTS.get(words) or _TESTS.get(f"{words} latency")
    if test is None and _COLLECTIVE.search(words):  # recorded: no kernel measures it
        name = "-".join(re.findall(r"[a-z0-9]+", words.removesuffix(" latency")))
        test = OsuTest(RECORDED, collective=True, name=name)
    memory = _MEMORIES[accelerator[1]] if accelerator and buffers_of(table) != "HOST HOST" else ""
    transport = "nccl" if re.match("OSU [NR]CCL", table.title) else ""
    return test, {key: word for key, word in (("memory", memory), ("transport", transport)) if word}


def language_of(title: str) -> str:
    """Return the language of a program that is not written in C; '' for C."""
    first = re.match(r"OMB|OSU [A-Za-z]+", title)
    return _LANGUAGES.get(first[0], "Java") if first else ""


def buffers_of(table: OsuTable) -> str:
    """Return where the buffers of sender and receiver were: by the line that says it, the command line or the title."""
    letters = _LETTERS.search(table.caption)
    titled = "MANAGED MANAGED" if re.search(r"[- ]MANAGED ", table.title) else ""
    stated = " ".join(_BUFFERS[letter] for letter in letters.groups()) if letters else titled
    return table.facts.get("buffers", stated)
