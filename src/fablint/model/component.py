"""Typed references to components: the only module that writes their labels. No module reads a label."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema, model_serializer

from fablint.model.host_name import DeviceRef
from fablint.model.names import expanded, fold

ComponentKind = Literal["host", "nic", "gpu", "cable", "link", "port", "switch", "group", "route", "config"]
Direction = Literal["tx", "rx", "both"]
OF_HOSTS: tuple[ComponentKind, ...] = ("host", "nic", "gpu", "cable", "config")  # kinds whose first end may be a host
MOST_LINKS = 6  # links, cables or paths that a finding names one by one


def _expanded(given: object) -> object:
    """The names of a node set."""
    return (expanded(given) if given else ()) if isinstance(given, str) else given


_NodeSet = Annotated[
    tuple[str, ...],
    BeforeValidator(_expanded),
    PlainSerializer(fold, return_type=str),
    WithJsonSchema({"type": "string"}),
]


class Data(BaseModel):
    """Immutable data whose default values are left out of the JSON form."""

    model_config = ConfigDict(frozen=True)

    @model_serializer(mode="wrap")
    def _without_defaults(self, serialise: Any) -> Any:
        fields = type(self).model_fields
        return {key: value for key, value in serialise(self).items() if getattr(self, key) != fields[key].default}


class Endpoint(Data):
    """An end of a component: hosts, switches or groups, and what of them."""

    nodes: _NodeSet = Field(
        default=(), description="hosts, switches or groups as a node set (`nid[001-064]`); absent: any"
    )
    part: str = Field(default="", description="NIC, GPU, device or port")
    rank: int | None = Field(default=None, description="one rank of the host")

    @property
    def label(self) -> str:
        """`h05`, `h05/hsn0`, `h05:3`, `nid[001-004]/hsn0`; `any` without nodes."""
        rank = "" if self.rank is None else f":{self.rank}"
        return f"{DeviceRef.of(fold(self.nodes) if self.nodes else 'any', self.part)}{rank}"


class ComponentRef(Data):
    """A component, or all components of one kind between two sets of nodes."""

    kind: ComponentKind
    ends: tuple[Endpoint, ...] = Field(
        default=(), description="two of a cable, link, route, or port whose cable is known; else one, or none"
    )
    directed: bool = Field(default=False, description="from the first end to the second only")
    title: str = Field(
        default="", description="what of the ends (`NIC`, `memory`), or the name where there are no ends"
    )
    count: int | None = Field(default=None, description="number of components, where they are too many to be named")
    direction: Direction | None = Field(default=None, description="of a member of an ambiguity group")

    @classmethod
    def of(cls, kind: ComponentKind, *ends: str | Endpoint | Iterable[str], **more: Any) -> ComponentRef:
        """The component of a kind with these ends; an end is one name, several names, or an `Endpoint`.

        A link is directed.
        """
        made = (
            end if isinstance(end, Endpoint) else Endpoint(nodes=(end,) if isinstance(end, str) else tuple(end))
            for end in ends
        )
        return cls(kind=kind, ends=tuple(made), **{"directed": kind == "link", **more})

    @classmethod
    def device(cls, kind: ComponentKind, name: str) -> ComponentRef:
        """The NIC or GPU `HOST/DEVICE`."""
        ref = DeviceRef(name)
        return cls.of(kind, Endpoint(nodes=(ref.host,), part=ref.device))

    @property
    def label(self) -> str:
        """`nid000231`, `h05/hsn0`, `s3>s5` (directed), `s3=s5`, `port of s3 to h05`, `memory of h05`, `56 links`."""
        ends = [end.label for end in self.ends]
        if self.count is not None:
            return f"{self.count:,} {self.kind}s"
        if self.kind == "port" and not self.title:
            first, *others = self.ends
            where = f"port {first.part} of {fold(first.nodes)}" if first.part else f"port of {ends[0]}"
            return where + (f" to {others[0].label}" if others and not first.part else "")
        name = (">" if self.directed else "=").join(ends)
        return f"{self.title} of {name}" if self.title and ends else self.title or name

    @property
    def text(self) -> str:
        """The kind and the label: `host h03 (rx)`, `cable s3=s5`, `NIC of h05`."""
        has_kind = (
            self.kind == "port" or self.count is not None or bool(self.title and self.ends) or self.kind in self.title
        )
        kind = "" if has_kind or (self.kind == "config" and self.title) else f"{self.kind} "
        return f"{kind}{self.label}{f' ({self.direction})' if self.direction else ''}"

    @property
    def nodes(self) -> frozenset[str]:
        """Hosts, switches and groups at its ends."""
        return frozenset(name for end in self.ends for name in end.nodes)

    @property
    def hosts(self) -> tuple[str, ...]:
        """Hosts of a component of hosts: those of its first end; none of other kinds."""
        return self.ends[0].nodes if self.kind in OF_HOSTS and self.ends else ()

    @property
    def directions(self) -> frozenset[tuple[str, str]]:
        """Ordered pairs of the nodes at its two ends; none of a component with one end."""
        if len(self.ends) != 2:
            return frozenset()
        first, second = (end.nodes for end in self.ends)
        there = {(a, b) for a in first for b in second}
        return frozenset(there if self.directed else there | {(b, a) for a, b in there})

    @property
    def cable(self) -> ComponentRef:
        """The cable of a link; both links of a cable have the same."""
        return ComponentRef(kind="cable", ends=tuple(sorted(self.ends, key=lambda end: end.label)))


def in_series(host: str) -> tuple[ComponentRef, ...]:
    """NIC, cable and switch port of a host whose cabling is not known."""
    parts: tuple[tuple[ComponentKind, str], ...] = (("nic", "NIC"), ("cable", "cable"), ("port", "switch port"))
    return tuple(ComponentRef.of(kind, host, title=title) for kind, title in parts)


def cause(title: str) -> ComponentRef:
    """Another cause than a component, as a member of an ambiguity group."""
    return ComponentRef(kind="config", title=title)


def label_of(components: Sequence[ComponentRef]) -> str:
    """The labels of several components, folded."""
    return fold((component.label for component in components), ", ")


def listed(components: Iterable[ComponentRef], count: int) -> tuple[ComponentRef, ...]:
    """The `count` components, or that number where they are more than `MOST_LINKS`: then only the first is made."""
    if count <= MOST_LINKS:
        return tuple(components)
    return (ComponentRef(kind=next(iter(components)).kind, count=count),)
