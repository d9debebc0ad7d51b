"""Parsers of amd-smi and rocm-smi: errors of the blocks of AMD GPUs and bad pages, by PCI address.

Read are `amd-smi list` or `static`, `metric --ecc --ecc-blocks`, `bad-pages` and `firmware`, as JSON, text or CSV. JSON
is a list of GPUs, since ROCm 7 the mapping `{"gpu_data": [...]}`; a figure that the GPU lacks is `"N/A"`, a list of
pages may be `"No bad pages found."`, and a list of one page is the page itself. A GPU without address has its number.
The JSON of rocm-smi has no RAS information: its tables are read.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fablint.snapshot.parsers.amd_ras import BadPages, BlockErrors
from fablint.snapshot.parsers.amd_smi_output import gpu_entries
from fablint.snapshot.parsers.documents import dicts

_ADDRESS = re.compile(r"(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.IGNORECASE)
_GPU = re.compile(r"GPU\[(\d{1,4})\]")
_BUS = re.compile(r"PCI Bus: (\S{1,20})$")
_BLOCK = re.compile(r"\s*([A-Z][A-Z0-9_]{1,20})\s+(?:ENABLED|DISABLED|[A-Z ]{4,20}?)\s+(\d{1,18})\s+(\d{1,18})\s*$")
_PAGE = re.compile(r"\s*0x[0-9a-f]+\s+0x[0-9a-f]+\s+(reserved|pending|unreservable)\s*$", re.IGNORECASE)
_STATES = ("reserved", "pending", "unreservable")
_COLUMN = re.compile(r"([a-z0-9_]{1,40}?)_((?:correctable|uncorrectable|deferred)_count)")
_SUMS = ("total", "cache")
_MOST_DIGITS = 19
_LISTS = {"retired": "reserved", "pending": "pending", "un_res": "unreservable"}  # of bad-pages: state of their pages


_SETTINGS = {  # by name: sections and keys of `static`, of which the first that is there counts
    "driver": [("driver", "version"), ("driver", "driver_version")],
    "VBIOS": [("vbios", "version"), ("ifwi", "version")],
    "compute partition": [("partition", "compute_partition"), ("partition", "accelerator_partition")],
    "memory partition": [("partition", "memory_partition")],
}


@dataclass
class AmdGpuErrors:
    """Errors of a GPU since its driver was loaded."""

    blocks: dict[str, BlockErrors] = field(default_factory=dict)  # by the name of the block in lower case
    pages: BadPages = field(default_factory=lambda: BadPages(0, 0, 0))


def amd_smi_errors(gpus: str, metric: str, bad_pages: str) -> Mapping[str, AmdGpuErrors]:
    """Return the errors of GPUs by PCI address.

    Parameters
    ----------
    gpus
        Output of `amd-smi list` or `static`.
    metric
        Output of `amd-smi metric`.
    bad_pages
        Output of `amd-smi bad-pages`.
    """
    outputs = [list(gpu_entries(text)) for text in (gpus, metric, bad_pages)]
    addresses: dict[int, str] = {}
    for entry in itertools.chain(*outputs):
        address = _first(_address(part.get("bdf")) for part in (entry, *dicts(entry.get("bus"))))
        addresses.setdefault(entry["gpu"], "")
        addresses[entry["gpu"]] = addresses[entry["gpu"]] or address
    errors = {gpu: AmdGpuErrors() for gpu in addresses}
    for entry in outputs[1]:
        errors[entry["gpu"]].blocks.update(_blocks(entry))
    for entry in outputs[2]:
        errors[entry["gpu"]].pages = _pages(_states(entry))
    return {addresses[gpu] or str(gpu): error for gpu, error in errors.items()}


def amd_smi_settings(static: str, firmware: str) -> Mapping[str, Mapping[str, str]]:
    """Parse the outputs of `amd-smi static` and `firmware`: settings and versions by PCI address, else by number."""
    addresses: dict[int, str] = {}
    settings: dict[int, dict[str, str]] = {}
    for entry in gpu_entries(static):
        addresses[entry["gpu"]] = _first(_address(part.get("bdf")) for part in dicts(entry.get("bus")))
        of_gpu = settings.setdefault(entry["gpu"], {})
        for name, paths in _SETTINGS.items():
            if value := _first(_text(part.get(key)) for section, key in paths for part in dicts(entry.get(section))):
                of_gpu[name] = value
    for entry in gpu_entries(firmware):
        for listed in dicts(entry.get("fw_list")):
            for part in (listed, *(value for value in listed.values() if isinstance(value, dict))):
                if (name := _text(part.get("fw_id"))) and (version := _text(part.get("fw_version"))):
                    settings.setdefault(entry["gpu"], {})[f"firmware {name}"] = version
    return {addresses.get(gpu) or str(gpu): of_gpu for gpu, of_gpu in settings.items()}


def _first(texts: Iterable[str]) -> str:
    return next(filter(None, texts), "")


def _text(value: object) -> str:
    return str(value) if isinstance(value, str | int) and value != "N/A" else ""


def rocm_smi_errors(text: str) -> Mapping[str, AmdGpuErrors]:
    """Parse `rocm-smi --showbus --showrasinfo all --showretiredpages`: errors by PCI address."""
    if not text:
        return {}
    addresses: dict[str, str] = {}
    blocks: dict[str, dict[str, BlockErrors]] = {}
    states: dict[str, Counter[str]] = {}
    number = ""
    for line in text.splitlines():
        gpu, bus, block, page = _GPU.match(line), _BUS.search(line), _BLOCK.match(line), _PAGE.match(line)
        number = gpu[1] if gpu else number
        if bus:
            addresses[number] = _address(bus[1])
        elif block:
            blocks.setdefault(number, {})[block[1].lower()] = BlockErrors(int(block[3]), int(block[2]), 0)
        elif page:
            states.setdefault(number, Counter())[page[1].lower()] += 1
    return {
        address: AmdGpuErrors(blocks.get(number, {}), _pages(states.get(number, {})))
        for number, address in addresses.items()
        if address
    }


def _blocks(entry: Mapping[str, Any]) -> dict[str, BlockErrors]:
    """Return the errors of the blocks of a GPU, or else their total."""
    counts = {name: part for blocks in dicts(entry.get("ecc_blocks")) for name, part in blocks.items()}
    counts = counts or _columns(entry)
    blocks = {
        name: errors
        for name, part in counts.items()
        if isinstance(part, dict) and (errors := _errors(part, "")) is not None
    }
    total = next((errors for part in (*dicts(entry.get("ecc")), entry) if (errors := _errors(part, "total_"))), None)
    return blocks or ({} if total is None else {"total": total})


def _columns(entry: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the figures of each block in the columns of a line of CSV."""
    counts: dict[str, dict[str, Any]] = {}
    for name, value in entry.items():
        column = _COLUMN.fullmatch(name)
        if column and column[1] not in _SUMS:
            counts.setdefault(column[1], {})[column[2]] = value
    return counts


def _errors(counts: Mapping[str, Any], prefix: str) -> BlockErrors | None:
    uncorrectable, corrected, deferred = (
        _count(counts.get(f"{prefix}{kind}_count")) for kind in ("uncorrectable", "correctable", "deferred")
    )
    return None if uncorrectable is None else BlockErrors(uncorrectable, corrected or 0, deferred or 0)


def _count(value: object) -> int | None:
    if isinstance(value, str) and value.isdecimal() and len(value) < _MOST_DIGITS:
        return int(value)
    return value if isinstance(value, int) else None


def _states(entry: Mapping[str, Any]) -> Counter[str]:
    """Count the pages in each state. In CSV several pages are a list of Python, and a single one has columns."""
    states: Counter[str] = Counter()
    for name, state in _LISTS.items():
        pages = entry.get(name)
        listed = pages if isinstance(pages, str) else [name for page in dicts(pages) for name in page]
        states[state] += listed.count("page_address")
    single = str(entry.get("status")).lower()
    states[single] += "page_address" in entry and single in _STATES
    return states


def _pages(states: Mapping[str, int]) -> BadPages:
    return BadPages(*(states.get(state, 0) for state in _STATES))


def _address(value: object) -> str:
    """Return a PCI address as in /sys; '' for other texts."""
    text = value.lower() if isinstance(value, str) and _ADDRESS.fullmatch(value) else ""
    return text if text.count(":") != 1 else f"0000:{text}"
