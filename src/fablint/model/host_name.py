"""One identity per host, NIC and GPU: the forms of their names, and which names of two sources mean the same host.

Sites, launchers, name services and fabric managers spell a host in different forms: `nid001000`,
`nid001000.hpc.example`, `NID001000.hpc.example.`. A device of a host is written HOST/DEVICE. No other module takes such
a name apart.

A name that lacks the domain, or the end of it, agrees with the longer one. Letter case and a trailing dot do not
matter, as in DNS. Two names of one list that have different domains are two hosts, whatever their first labels are.
An IP address has no shorter form.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise, repeat
from typing import Self

_NUMERIC = re.compile(r"[\d.]+")


@dataclass(frozen=True)
class HostName:
    """The name of a host, or of a switch, as a source spells it."""

    text: str

    @cached_property
    def is_address(self) -> bool:
        """True if it is an IP address, of version 4 or 6."""
        return ":" in self.text or _NUMERIC.fullmatch(self.text) is not None

    @property
    def full(self) -> str:
        """The name without the dot that ends an absolute name; an IPv6 address without brackets."""
        return self.text.strip("[]") if self.is_address else self.text.rstrip(".") or self.text

    @property
    def short(self) -> str:
        """The first label, as Slurm calls its nodes; an address as a whole."""
        return self.full if self.is_address else self.full.partition(".")[0] or self.full

    @cached_property
    def key(self) -> str:
        """Equal for spellings that differ in letter case, a trailing dot or the zeros of an address."""
        if self.is_address:
            from ipaddress import ip_address

            with suppress(ValueError):
                return str(ip_address(self.full))
        return self.full.lower()

    def is_same(self, other: HostName) -> bool:
        """Return whether both can be names of one host: they are equal, or one lacks the domain or the end of it."""
        first, second = sorted((self.key, other.key), key=len)
        return first == second or (not (self.is_address or other.is_address) and second.startswith(f"{first}."))

    @property
    def stems(self) -> list[str]:
        """The key and the keys of its shorter forms, the longest first: `n1.a.org`, `n1.a`, `n1`."""
        if "." not in self.text or self.is_address:
            return [self.key if ":" in self.text else self.text.lower()]
        labels = self.key.split(".")
        return [".".join(labels[:count]) for count in range(len(labels), 0, -1)]


class DeviceRef(str):
    """A device of a host, or the host as a whole: `h05/hsn0`, `h05`.

    It is a text, so that it is a name among the other names of a table: it sorts, folds into node sets and is a key of
    JSON. The device may have a slash (`h05/mlx5_0/1` is port 1 of a card), the name of a host has none.
    """

    __slots__ = ()

    @classmethod
    def of(cls, host: str, device: str = "") -> Self:
        """Return the reference to a device of a host; to the host if no device is named."""
        return cls(f"{host}/{device}" if device else host)

    @property
    def host(self) -> str:
        """The host, `h05` of `h05/hsn0`."""
        return self.partition("/")[0]

    @property
    def device(self) -> str:
        """The device, `hsn0` of `h05/hsn0`; '' for the host as a whole."""
        return self.partition("/")[2]


class NicRef(DeviceRef):
    """A NIC or one of its ports: `h05/hsn0`, `h05/mlx5_0/1`."""

    __slots__ = ()


class GpuRef(DeviceRef):
    """A GPU, by its number or PCI address on the host: `h05/gpu3`."""

    __slots__ = ()


class HostNames:
    """The hosts of a list, which can be looked up by any of their names.

    A name means the host with that spelling; else the only host that it agrees with (`HostName.is_same`); else, in a
    list that is `complete`, the only host with the same first label: the networks of a site may have domains of their
    own. A list is complete if it has every host that a name can mean.
    """

    def __init__(self, hosts: Iterable[str], *, complete: bool = False) -> None:
        self._hosts = dict.fromkeys(hosts)
        self._complete = complete

    @cached_property
    def _stems(self) -> tuple[dict[str, str | None], dict[str, str | None]]:
        """Hosts by their keys, and by the shorter forms of these; None: of several hosts."""
        keys: dict[str, str | None] = {}
        longer: dict[str, str | None] = {}
        for host in self._hosts:
            for index, stem in zip(chain([keys], repeat(longer)), HostName(host).stems, strict=False):
                index[stem] = None if stem in index else host
        return keys, longer

    def find(self, name: str) -> str | None:
        """Return the host as the list spells it; None if it is not listed, or if the name means several hosts."""
        if name in self._hosts:
            return name
        keys, longer = self._stems
        stems = HostName(name).stems
        for index in (keys, longer):
            if stems[0] in index:
                return index[stems[0]]
        nearest = next((keys[stem] for stem in stems if stem in keys), None)
        return nearest or (longer.get(stems[-1]) if self._complete else None)

    def owner(self, name: str) -> str:
        """Return the host that a name such as `n3-hsn0` or `n3.site.org` belongs to; '' if it resembles none."""
        label = HostName(name).short
        shorter = (label[:end] for end in range(len(label) - 1, 0, -1) if not label[end].isalnum())
        return next((host for form in (name, *shorter) if (host := self.find(form))), "")

    def shortest(self, host: str) -> str:
        """Return the short name of a host of the list, as Slurm calls it; the full one if others have it too."""
        name = HostName(host)
        return name.short if self.find(name.short) == host else name.full

    def matched(self, names: Iterable[str]) -> Mapping[str, str]:
        """Return the host of each name of another list; of two names that mean the same host only the better one.

        Names that mean no host, or that mean it as well as another name, are left out: names of one list are different
        hosts.
        """
        names = dict.fromkeys(names)
        if names.keys() <= self._hosts.keys():
            return {name: name for name in names}
        candidates: dict[str, list[str]] = defaultdict(list)
        for name in names:
            if (host := self.find(name)) is not None:
                candidates[host].append(name)
        best = {_best(host, meaning): host for host, meaning in candidates.items()}
        return {name: best[name] for name in names if name in best}


def _best(host: str, names: list[str]) -> str | None:
    """Return the only name that means a host best: with the same spelling, the same key, an agreeing or any domain."""
    if len(names) == 1 or host in names:
        return names[0] if len(names) == 1 else host
    of_host = HostName(host)
    parsed = [HostName(name) for name in names]
    equal = [name.text for name in parsed if name.key == of_host.key]
    same = equal or [name.text for name in parsed if name.is_same(of_host)]
    return same[0] if len(same) == 1 else None


def unified(names: Iterable[str]) -> Mapping[str, str]:
    """Return one spelling for each host of a list whose sources may use several spellings: the first one.

    `n1` and `n1.site.org` are one host if no other name of the list begins with `n1.`; else all of them stay.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for name in dict.fromkeys(names):
        groups[HostName(name).stems[-1]].append(name)
    spelled: dict[str, str] = {}
    for group in groups.values():
        is_one_host = _is_one_host(group)
        spelled |= {name: group[0] if is_one_host else name for name in group}
    return spelled


def _is_one_host(names: list[str]) -> bool:
    """Return whether all names can be those of the same host."""
    by_length = sorted(map(HostName, names), key=lambda name: len(name.key)) if len(names) > 1 else []
    return all(shorter.is_same(longer) for shorter, longer in pairwise(by_length))


def one_spelling(requested: Iterable[str], reported: Iterable[str]) -> Callable[[str], str]:
    """Return a function that makes `nid1.site.org` and `nid1` one name: the requested one, else the shorter.

    Parameters
    ----------
    requested
        Names as the user or the launcher gave them.
    reported
        Names as hosts and sources spell them.
    """
    given, listed = HostNames(requested), dict.fromkeys(requested)
    names = {name: given.find(name) for name in (*listed, *reported)}
    meanings: dict[str, list[str]] = defaultdict(list)
    for name, host in names.items():
        if host is not None:
            meanings[host].append(name)
    spelled = dict(unified(sorted((name for name, host in names.items() if host is None), key=len)))
    for host, group in meanings.items():
        spelled |= {name: host if name not in listed and _is_one_host(group) else name for name in group}

    def spell(name: str) -> str:
        return spelled.get(name) or given.find(name) or name

    return spell
