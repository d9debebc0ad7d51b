"""The request of a check: made of the options of `fablint check`, and kept by the job and by the run of the check."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, PositiveInt, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from fablint.errors import UsageError
from fablint.model import Medium
from fablint.model.registry import MEMORIES, TRANSPORTS
from fablint.workflows.check.refinement import refuse_too_small
from fablint.workflows.context import from_any_folder
from fablint.workflows.fabric_discovery import FabricRequest

if TYPE_CHECKING:
    from fablint.plan.check.suites import Suite


def _refuse_unknown(medium: Medium) -> Medium:
    """Return the medium. Raises PydanticCustomError where the registry lacks its transport or its memory."""
    memory = medium.memory.partition(":")[0]
    for kind, name, names in (("transport", medium.transport, TRANSPORTS), ("memory", memory, MEMORIES)):
        if name not in names:
            raise PydanticCustomError("unknown", "{kind} '{name}' is unknown", {"kind": kind, "name": name})
    return medium


_KnownMedium = Annotated[Medium, AfterValidator(_refuse_unknown)]
UnfitPolicy = Literal["refuse", "exclude", "measure"]
_FORMAT = 1
_SPELLINGS = {"files": "from", "nics": "nic"}  # of options whose parameters have other names


@dataclass(frozen=True)
class ClusterRequest(FabricRequest):
    """Options that apply to several hosts only; the parameters of `fablint check` have the names of the fields."""

    ppn: PositiveInt | None = None
    ranks_per_nic: PositiveInt | None = None  # instead of `ppn`
    suite: str | None = None
    unequal: bool = False
    until: Annotated[float, Field(gt=0, lt=1)] | None = None  # relative loss that is to be named
    site: Path | None = None  # the site file
    baseline: str | None = None
    exclude_unfit: bool = False
    include_unfit: bool = False


@dataclass(frozen=True)
class CheckRequest(ClusterRequest):
    """What a check is to measure, where, and with which programs. Raises UsageError for options that contradict."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    ranks: Annotated[int, Field(ge=2)] | None = None  # of this machine; None: several hosts are checked
    full: bool = False
    output: Path | None = None  # run directory
    topology: Path | None = None
    budget: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None  # seconds
    media: Annotated[tuple[_KnownMedium, ...], Field(min_length=1)] = (Medium(),)  # transports and memories
    mpicxx: Path | None = None
    launcher: str = ""

    def __post_init__(self) -> None:
        """Refuse options that contradict each other."""
        if self.ranks is not None:
            self._refuse_options_of_clusters()
            return
        from fablint.plan.check.suites import find_suite
        from fablint.plan.rows.refusals import refuse_media_within_hosts

        for first, second in (("ppn", "ranks_per_nic"), ("include_unfit", "exclude_unfit")):
            if getattr(self, first) and getattr(self, second):
                raise contradiction(spelled(first), spelled(second))
        if self.full and self.suite not in (None, "full"):
            raise contradiction("--full", f"--suite {self.suite}")
        refuse_media_within_hosts(self.media)
        find_suite(self.suite or "quick")
        if self.until is not None:
            refuse_too_small(self.until)

    def _refuse_options_of_clusters(self) -> None:
        for field in fields(ClusterRequest):
            if getattr(self, field.name) != field.default:
                if field.name == "hosts":
                    raise contradiction("--local", "--hosts")
                raise inapplicable_to_local(spelled(field.name))

    @property
    def planned_suite(self) -> Suite:
        """Levels to measure. Raises UsageError for a name that no suite has."""
        from fablint.plan.check.suites import find_suite

        return find_suite("full" if self.full else self.suite or "quick", unequal=self.unequal)

    @property
    def unfit(self) -> UnfitPolicy:
        """Return what is done with hosts that preflight rejects."""
        return "measure" if self.include_unfit else "exclude" if self.exclude_unfit else "refuse"

    @property
    def sources(self) -> tuple[str, ...]:
        """Files about the fabric, each `FILE` or `NAME=FILE`."""
        return (*((str(self.topology),) if self.topology else ()), *self.files)

    def in_any_folder(self) -> CheckRequest:
        """Return the request with absolute paths, which is valid in another working directory."""
        paths = {name: getattr(self, name) for name in ("hostfile", "topology", "site", "output")}
        return replace(
            self,
            **{name: path and path.absolute() for name, path in paths.items()},
            files=tuple(map(_absolute_source, self.files)),
            mpicxx=self.mpicxx and Path(from_any_folder(self.mpicxx)),
            launcher=self.launcher and from_any_folder(Path(self.launcher)),
        )


def spelled(name: str) -> str:
    """Return the option of a field."""
    return f"--{_SPELLINGS.get(name, name).replace('_', '-')}"


def contradiction(first: str, second: str) -> UsageError:
    """Return the error about two options that contradict each other."""
    return UsageError(f"{first} and {second} contradict each other", "give one of them")


def inapplicable_to_local(option: str) -> UsageError:
    """Return the error about an option that ranks of one machine do not have."""
    return UsageError(f"{option} does not apply to --local", "it is for a cluster: give one of them")


def _absolute_source(text: str) -> str:
    name, mark, file = ("", "", text) if Path(text).exists() or "=" not in text else text.partition("=")
    return f"{name}{mark}{Path(file).absolute()}"


# ------------------------------------------------------------------------------------------------ as JSON


@cache
def _adapter() -> TypeAdapter[CheckRequest]:
    return TypeAdapter(CheckRequest)


def request_text(request: CheckRequest) -> str:
    """Return the request as JSON, without the options that have their default."""
    options = _adapter().dump_python(request, mode="json", exclude_defaults=True)
    return json.dumps({"format": _FORMAT, **options}, indent=1)


def read_request(path: Path) -> CheckRequest:
    """Read the JSON of a request. Raises UsageError where the file is damaged or holds something else."""
    try:
        document: Any = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(document, dict) or document.pop("format", None) != _FORMAT:
            raise ValueError
        return _adapter().validate_python(document)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}", "name the request of a check") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"{path}: {where}: {first['msg']}", "submit the check again") from None
    except (ValueError, RecursionError):
        raise UsageError(f"{path}: is not the request of a check", "submit the check again") from None
