"""Parsers of amd-smi and rocm-smi: errors of the blocks of AMD GPUs and bad pages, by PCI address.

`amd-smi list`, `metric --ecc --ecc-blocks` and `bad-pages` with `--json` print a list of GPUs, since ROCm 7 the mapping
`{"gpu_data": [...]}`; a figure that the GPU lacks is `"N/A"`, a list of pages may be `"No bad pages found."`, and a
list of one page is the page itself. The JSON of rocm-smi has no RAS information: its tables are read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fablint.snapshot.parsers.amd_ras import BadPages, BlockErrors
from fablint.snapshot.parsers.documents import dicts, documents

_ADDRESS = re.compile(r"(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.IGNORECASE)
_GPU = re.compile(r"GPU\[(\d{1,4})\]")
_BUS = re.compile(r"PCI Bus: (\S{1,20})$")
_BLOCK = re.compile(r"\s*([A-Z][A-Z0-9_]{1,20})\s+(?:ENABLED|DISABLED|[A-Z ]{4,20}?)\s+(\d{1,18})\s+(\d{1,18})\s*$")
_PAGE = re.compile(r"\s*0x[0-9a-f]+\s+0x[0-9a-f]+\s+(reserved|pending|unreservable)\s*$", re.IGNORECASE)
_STATES = ("reserved", "pending", "unreservable")
_LISTS = {"retired": "reserved", "pending": "pending", "un_res": "unreservable"}  # of bad-pages: state of their pages


@dataclass
class AmdGpuErrors:
    """Errors of a GPU since its driver was loaded."""

    blocks: dict[str, BlockErrors] = field(default_factory=dict)  # by the name of the block in lower case
    pages: BadPages = field(default_factory=lambda: BadPages(0, 0, 0))


def amd_smi_errors(gpus: str, metric: str, bad_pages: str) -> Mapping[str, AmdGpuErrors]:
    """Parse the outputs of `amd-smi list`, `metric` and `bad-pages`: errors by PCI address."""
    addresses = {entry["gpu"]: address for entry in _entries(gpus) if (address := _address(entry.get("bdf")))}
    errors = {address: AmdGpuErrors() for address in addresses.values()}
    for entry in _entries(metric):
        if entry["gpu"] in addresses:
            errors[addresses[entry["gpu"]]].blocks.update(_blocks(entry))
    for entry in _entries(bad_pages):
        if entry["gpu"] in addresses:
            states = {state: len(dicts(entry.get(name))) for name, state in _LISTS.items()}
            errors[addresses[entry["gpu"]]].pages = _pages(states)
    return errors


def rocm_smi_errors(text: str) -> Mapping[str, AmdGpuErrors]:
    """Parse `rocm-smi --showbus --showrasinfo all --showretiredpages`: errors by PCI address."""
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


def _entries(text: str) -> Iterator[dict[str, Any]]:
    """Yield the entry of each GPU in an output of amd-smi."""
    for document in documents(text):
        whole = document.get("gpu_data", document) if isinstance(document, dict) else document
        yield from (entry for entry in dicts(whole) if isinstance(entry.get("gpu"), int))


def _blocks(entry: Mapping[str, Any]) -> dict[str, BlockErrors]:
    """Return the errors of the blocks of a GPU, or else their total."""
    blocks = {
        name.lower(): errors
        for part in dicts(entry.get("ecc_blocks"))
        for name, counts in part.items()
        if isinstance(counts, dict) and (errors := _errors(counts, "")) is not None
    }
    total = next((_errors(counts, "total_") for counts in dicts(entry.get("ecc"))), None)
    return blocks or ({} if total is None else {"total": total})


def _errors(counts: Mapping[str, Any], prefix: str) -> BlockErrors | None:
    uncorrectable, corrected, deferred = (
        value if isinstance(value := counts.get(f"{prefix}{kind}_count"), int) else None
        for kind in ("uncorrectable", "correctable", "deferred")
    )
    return None if uncorrectable is None else BlockErrors(uncorrectable, corrected or 0, deferred or 0)


def _pages(states: Mapping[str, int]) -> BadPages:
    return BadPages(*(states.get(state, 0) for state in _STATES))


def _address(value: object) -> str:
    """Return a PCI address as in /sys; '' for other texts."""
    text = value.lower() if isinstance(value, str) and _ADDRESS.fullmatch(value) else ""
    return text if text.count(":") != 1 else f"0000:{text}"
