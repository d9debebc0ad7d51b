"""What `nvidia-smi -q -x` prints: an XML document, whose names differ with the driver's version."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from xml.etree import ElementTree

from fablint.text.sanitise import shortened

_WATTS = re.compile(r"(\d{1,6}(?:\.\d{1,3})?) W")
_REASON = re.compile(r"^clocks_(?:event|throttle)_reason_(\w{1,60})$")
_UNCORRECTABLE = ("sram_uncorrectable", "sram_uncorrectable_parity", "sram_uncorrectable_secded", "dram_uncorrectable")


@dataclass(frozen=True)
class Gpu:
    """One GPU; texts by the path of their tags below <gpu>, as in `ecc_mode/current_ecc`."""

    name: str  # `gpu0`, in the order of the document
    product: str
    texts: Mapping[str, str]

    def text(self, *paths: str) -> str:
        """The first of these that is there and known; empty where none is."""
        return next((self.texts[path] for path in paths if self.texts.get(path, "N/A") not in ("N/A", "")), "")

    def watts(self, *paths: str) -> float | None:
        found = _WATTS.fullmatch(self.text(*paths))
        return float(found[1]) if found else None

    @property
    def reasons(self) -> Sequence[str] | None:
        """Why clocks are lowered now: `hw_slowdown`, `gpu_idle`; None where it is not told."""
        told = {}
        for path, text in self.texts.items():
            found = _REASON.match(path.rpartition("/")[2])
            if found:
                told[found[1]] = text
        return [reason for reason, text in told.items() if text == "Active"] if told else None

    @property
    def uncorrectable(self) -> int | None:
        """Memory errors since the driver was loaded that could not be corrected; None where they are not counted."""
        counts = [self.text(f"ecc_errors/volatile/{kind}") for kind in _UNCORRECTABLE]
        known = [int(count) for count in counts if count.isdecimal() and len(count) <= 18]
        return sum(known) if known else None


@lru_cache(maxsize=64)
def gpus_of(text: str) -> Sequence[Gpu] | None:
    """The GPUs in an output; None where it cannot be understood."""
    if "<!ENTITY" in text:  # no output of nvidia-smi has any; a short one can stand for a very long text
        return None
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError):
        return None
    if root.tag != "nvidia_smi_log":
        return None
    return [_gpu(index, element) for index, element in enumerate(root.findall("gpu"))]


def _gpu(index: int, element: ElementTree.Element) -> Gpu:
    texts = dict(_texts(element, ""))
    return Gpu(f"gpu{index}", shortened(texts.get("product_name", ""), 40), texts)


def _texts(element: ElementTree.Element, path: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """The path and text of each element without children. What is nested more deeply than any GPU is left out."""
    for child in element:
        below = f"{path}/{child.tag}" if path else child.tag
        if len(child) == 0:
            yield below, shortened(child.text or "", 80)
        elif depth < 8:
            yield from _texts(child, below, depth + 1)
