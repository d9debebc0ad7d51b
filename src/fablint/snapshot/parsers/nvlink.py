"""Parser of `nvidia-smi nvlink`: speeds and errors of the links of each GPU."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

_GPU = re.compile(r"^GPU (\d{1,3}):", re.MULTILINE)
_SPEED = re.compile(r"^\s+Link \d{1,3}: (?:([\d.]{1,12} [KMGT]B/s)|<?inactive>?)", re.MULTILINE)
_ERRORS = re.compile(r"^\s+Link (\d{1,3}): ([\w ]{1,40}?) Errors?: (\d{1,18})\s*$", re.MULTILINE)


def nvlink_speeds(text: str) -> Mapping[str, Sequence[str]]:
    """Return the speeds of the links of each GPU with links, `gpu0`; '' for an inactive link."""
    words = {gpu: _SPEED.findall(of_gpu) for gpu, of_gpu in _by_gpu(text)}
    return {gpu: speeds for gpu, speeds in words.items() if speeds}


def nvlink_errors(text: str) -> Mapping[str, Mapping[tuple[str, str], Sequence[int]]]:
    """Return the counts of errors by link and kind of each GPU, `gpu0`: one of each reading."""
    result: dict[str, dict[tuple[str, str], list[int]]] = defaultdict(lambda: defaultdict(list))
    for gpu, of_gpu in _by_gpu(text):
        for link, kind, count in _link_errors(of_gpu.partition("\n")[2]):
            result[gpu][link, kind].append(count)
    return result


@lru_cache(maxsize=1024)  # equal texts: most GPUs of a fleet count nothing
def _link_errors(text: str) -> Sequence[tuple[str, str, int]]:
    return [(link, kind, int(count)) for link, kind, count in _ERRORS.findall(text)]


def _by_gpu(text: str) -> Iterator[tuple[str, str]]:
    parts = _GPU.split(text)
    yield from ((f"gpu{number}", of_gpu) for number, of_gpu in zip(parts[1::2], parts[2::2], strict=True))
