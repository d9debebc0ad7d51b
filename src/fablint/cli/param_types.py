"""Types of values on the command line: each is parsed once, here."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class RunPath(click.Path):
    """A run directory, or output of another tool. A shell completes run directories, and files where there is none."""

    def __init__(self, *, allow_dash: bool = False) -> None:
        super().__init__(path_type=Path, allow_dash=allow_dash)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return what a shell offers at the Tab key."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(path) for path in _runs(incomplete)] or super().shell_complete(ctx, param, incomplete)


class WrittenFile(click.Path):
    """A file that a verb writes. `-` is standard output; what a verb prints goes to stderr then."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, allow_dash=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path."""
        from fablint.system.written_files import STANDARD_OUTPUT, is_standard_output

        path = STANDARD_OUTPUT if str(value) == "-" else Path(os.fsdecode(super().convert(value, param, ctx)))
        if ctx is not None and ctx.obj is not None and is_standard_output(path):
            ctx.obj.is_stdout_written = True
        return path


def _runs(incomplete: str) -> Iterator[str]:
    """Paths of run directories that begin with a text: those in the folder that it names."""
    folder, slash, name = incomplete.rpartition("/")
    try:
        entries = sorted(Path(f"{folder}{slash}" or ".").expanduser().iterdir())
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith(name) and (entry / "zarr.json").is_file():
            yield f"{folder}{slash}{entry.name}"


class Duration(click.ParamType[float]):
    """`20s`, `2m`, `1.5h` or plain seconds; as seconds."""

    name = "duration"
    _UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}  # noqa: RUF012

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)", str(value))
        if not match or match[2] not in self._UNITS or not 0 < float(match[1]) < math.inf:
            self.fail(f"'{value}' is not a duration above 0: write 20s, 2m or 1h", param, ctx)
        return float(match[1]) * self._UNITS[match[2]]


class Loss(click.ParamType[float]):
    """`8%` or `8`, between 0 and 100; as a share. `least`: 0 includes 0."""

    name = "loss"

    def __init__(self, least: float = 1e-5) -> None:
        self.least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"(\d{1,2}(?:\.\d{1,3})?)\s*%?", str(value).strip())
        if not match or float(match[1]) < self.least:
            self.fail(f"'{value}' is not a loss between 0% and 100%: write 8%", param, ctx)
        return float(match[1]) / 100


class Sizes(click.ParamType[tuple[int, ...]]):
    """Message sizes `8`, `1K:4M` (doubling) or `8,1K,1M`; as bytes."""

    name = "sizes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        from fablint.errors import UsageError
        from fablint.model.registry.option_values import parse_sizes

        if isinstance(value, tuple):
            return value
        try:
            return tuple(parse_sizes(str(value)))
        except UsageError as error:
            self.fail(str(error), param, ctx)


class RowOption(click.ParamType[Any]):
    """The value of an option of a row; transports and memories may be several with commas between them, as a tuple."""

    name = "value"

    def __init__(self, option: str) -> None:
        self.option = option

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from fablint.plan.rows.row_text import read_value
        from fablint.plan.rows.side_by_side import COMPARED

        if self.option in COMPARED and isinstance(value, str):
            return tuple(read_value(self.option, word) for word in value.split(","))
        return read_value(self.option, value) if isinstance(value, str) else value


class Workers(RowOption):
    """`[S:]R`: senders, by default one, and receivers."""

    def __init__(self) -> None:
        super().__init__("workers")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        is_short = isinstance(value, str) and ":" not in value
        return super().convert(f"1:{value}" if is_short else value, param, ctx)


class MessageCount(click.IntRange):
    """A number of messages of any size, for an option of a row that counts repetitions of small and of large ones."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        return number, number


class Buffers(click.Choice[str]):
    """Buffers of a window; OSU's `multiple` is `distinct`."""

    def __init__(self) -> None:
        super().__init__(("single", "multiple", "distinct"))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        kind = super().convert(value, param, ctx)
        return "distinct" if kind == "multiple" else kind


class DataType(click.ParamType[str]):
    """A data type of OSU; messages are bytes."""

    name = "type"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if str(value).lower() != "mpi_char":
            self.fail(f"'{value}' is not mpi_char; MPI moves the same bytes for every type", param, ctx)
        return str(value)


class Percentiles(click.ParamType[tuple[float, ...]]):
    """`50,90,99.9`; as a tuple of numbers."""

    name = "list"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        if isinstance(value, tuple):
            return value
        try:
            numbers = tuple(float(word) for word in str(value).split(","))
        except ValueError:
            numbers = (math.nan,)
        if not all(0 <= number <= 100 for number in numbers):
            self.fail(f"'{value}': give numbers between 0 and 100, such as 50,90,99.9", param, ctx)
        return numbers


class HostShare(click.ParamType[tuple[int | None, float]]):
    """`10%` or `5`: a number of hosts or None, and a share of all hosts from 0 to 1."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int | None, float]:
        if isinstance(value, tuple):
            return value
        match = re.fullmatch(r"(\d{1,7})|(\d{1,3}(?:\.\d{1,3})?)%", str(value).strip())
        if not match or (match[2] and float(match[2]) > 100):
            self.fail(f"'{value}' is neither a number of hosts nor a share: write 5 or 10%", param, ctx)
        return (int(match[1]), 0.0) if match[1] else (None, float(match[2]) / 100)
