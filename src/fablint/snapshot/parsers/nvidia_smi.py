"""Parser of `nvidia-smi -q -x`: an XML document, whose tags depend on the version of the driver."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from sys import intern
from xml.etree import ElementTree

from fablint.text.sanitise import shortened

_BUSY_PERCENT = 50
QUERY = "nvidia-smi-q"  # name of the output in a snapshot
_WATTS = re.compile(r"(\d{1,6}(?:\.\d{1,3})?) W")
_QUANTITY = re.compile(r"(\d{1,15})(?: (?:MHz|MiB|%|us))?")
_REASON = re.compile(r"^clocks_(?:event|throttle)_reason_(\w{1,60})$")
_UNCORRECTABLE = ("sram_uncorrectable", "sram_uncorrectable_parity", "sram_uncorrectable_secded", "dram_uncorrectable")


@dataclass(frozen=True)
class Gpu:
    """A GPU; `texts` by the path of their tags below <gpu>, as in `ecc_mode/current_ecc`."""

    name: str  # `gpu0`, in the order of the document
    product: str
    texts: Mapping[str, str]

    def text(self, *paths: str) -> str:
        """Return the first text that is present and not N/A; '' if there is none."""
        return next((self.texts[path] for path in paths if self.texts.get(path, "N/A") not in ("N/A", "")), "")

    def watts(self, *paths: str) -> float | None:
        """Return the first of these values in watts; None if it is unknown."""
        match = _WATTS.fullmatch(self.text(*paths))
        return float(match[1]) if match else None

    def number(self, *paths: str) -> int | None:
        """Return the first of these values as a number of MHz, MiB, percent, microseconds or events."""
        match = _QUANTITY.fullmatch(self.text(*paths))
        return int(match[1]) if match else None

    @property
    def is_busy(self) -> bool | None:
        """Tell whether programs run on it now; None if that is not reported."""
        share = self.number("utilization/gpu_util")
        return None if share is None else share >= _BUSY_PERCENT

    @property
    def has_processes(self) -> bool:
        """Tell whether a process has memory of it."""
        return any(path.startswith("processes/") for path in self.texts)

    @property
    def address(self) -> str:
        """PCI address as in /sys: `0000:3b:00.0`."""
        return self.text("pci/pci_bus_id").lower()[-len("0000:00:00.0") :]

    @property
    def reasons(self) -> Sequence[str] | None:
        """Active reasons for lowered clocks: `hw_slowdown`, `gpu_idle`; None if they are not reported."""
        states = {}
        for path, text in self.texts.items():
            match = _REASON.match(path.rpartition("/")[2])
            if match:
                states[match[1]] = text
        return [reason for reason, text in states.items() if text == "Active"] if states else None

    @property
    def uncorrectable(self) -> int | None:
        """Uncorrectable memory errors since the driver was loaded; None if they are not counted."""
        counts = [self.text(f"ecc_errors/volatile/{kind}") for kind in _UNCORRECTABLE]
        numbers = [int(count) for count in counts if count.isdecimal() and len(count) <= 18]
        return sum(numbers) if numbers else None


def gpus_of(text: str) -> Sequence[Gpu] | None:
    """Parse the GPUs in an output; None if it is malformed."""
    if "<!ENTITY" in text:  # never in output of nvidia-smi; an entity can expand to a very long text
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
    """Yield path and text of each element without children, up to a limited depth."""
    for child in element:
        below = f"{path}/{child.tag}" if path else child.tag
        if len(child) == 0:
            yield intern(below), intern(shortened(child.text or "", 80))  # equal for most GPUs of a fleet
        elif depth < 8:
            yield from _texts(child, below, depth + 1)
