"""What the verbs share: the options that all have, the types of arguments, how results are printed."""

from __future__ import annotations

import functools
import json
import math
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from fablint.measure import Shown
    from fablint.model import Diagnosis, Run
    from fablint.model.preflight_results import Fitness
    from fablint.system import System
    from fablint.workflows.flow import Surroundings

Verb = TypeVar("Verb", bound=Callable[..., Any])
INTERRUPTED = 130  # as a shell reports a program ended by Ctrl-C
_WIDTH = 80
_WIDEST = 120


def _machine() -> System:
    from fablint.system import System

    return System()


@dataclass
class Session:
    """One call of fablint: what the options that all verbs have say, and the machine (tests give another)."""

    debug: bool = False
    quiet: bool = False
    json: bool = False
    machine: Callable[[], System] = field(default=_machine)
    shown: Shown | None = field(default=None, init=False)  # progress, while a verb takes its time

    @contextmanager
    def surroundings(self, mpicxx: Path | None = None) -> Iterator[Surroundings]:
        """The machine with progress on stderr, for the verbs that take their time."""
        from fablint.measure import Shown, Silent
        from fablint.workflows.flow import Surroundings

        system = self.machine()
        if self.quiet:
            yield Surroundings(system, Silent(), mpicxx)
            return
        with Shown(system) as self.shown:
            yield Surroundings(system, self.shown, mpicxx)

    def _print(self, text: str, *, err: bool = False, nl: bool = True) -> None:
        """Print on lines of its own: a bar on the terminal is erased before."""
        if self.shown is not None:
            self.shown.erase()
        click.echo(text, err=err, nl=nl)

    def result(self, text: str, facts: Any) -> None:
        """Print the result: `text` for people, `facts` as JSON for programs."""
        self._print(json.dumps(facts, indent=2, default=str) if self.json else text.rstrip("\n"))

    def verdict(self, run: Run, diagnosis: Diagnosis) -> int:
        """Print a verdict; returns its exit code."""
        from fablint.report import console_summary, verdict_json

        if self.json:
            self._print(verdict_json(diagnosis), nl=False)
        else:
            self._print(console_summary(run, diagnosis, width=_columns(), color=in_colour()), nl=False)
        return diagnosis.verdict.exit_code

    def fitness(self, level: str, fitness: Fitness) -> int:
        """Print what preflight found; returns its exit code."""
        from fablint.report import fitness_json, fitness_table

        if self.json:
            sys.stdout.writelines(fitness_json(level, fitness))
            sys.stdout.flush()
        else:
            click.echo(fitness_table(fitness, _columns(), color=in_colour()), nl=False)
        return fitness.exit_code

    def say(self, text: str) -> None:
        """Chatter."""
        if not self.quiet:
            self._print(f"fablint: {text}", err=True)

    def warn(self, text: str) -> None:
        """Something that went wrong although there is a result."""
        self._print(f"fablint: {text}", err=True)


def _columns() -> int:
    """Columns of the terminal."""
    return min(shutil.get_terminal_size((_WIDTH, 24)).columns, _WIDEST)


def in_colour() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _switch_on(name: str) -> Callable[[click.Context, click.Parameter, bool], None]:
    """Given before or after the verb, a switch means the same."""

    def remember(context: click.Context, _: click.Parameter, value: bool) -> None:
        session = context.ensure_object(Session)
        setattr(session, name, value or getattr(session, name))

    return remember


def common_options(verb: Verb) -> Verb:
    """`--json`, `--quiet` and `--debug`."""
    switches = (
        (("--debug",), "debug", "Show a traceback when something fails."),
        (("-q", "--quiet"), "quiet", "No progress and no chatter on stderr."),
        (("--json",), "json", "Print the result as JSON."),
    )
    for names, attribute, words in switches:
        callback = _switch_on(attribute)
        verb = click.option(*names, is_flag=True, expose_value=False, is_eager=True, callback=callback, help=words)(
            verb
        )
    return verb


def verb(**settings: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """A command of fablint: with the common options, and the `Session` as its first argument."""

    def decorate(function: Callable[..., Any]) -> click.Command:
        @functools.wraps(function)
        def interruptible(*values: Any, **named: Any) -> Any:
            try:
                return function(*values, **named)
            except KeyboardInterrupt:  # click would print an empty line
                return INTERRUPTED

        command: click.Command = click.command(**settings)(common_options(click.pass_obj(interruptible)))
        return command

    return decorate


class Duration(click.ParamType[float]):
    """`20s`, `2m`, `1.5h` or plain seconds; as seconds."""

    name = "duration"
    _UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}  # noqa: RUF012

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        found = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)", str(value))
        if not found or found[2] not in self._UNITS or not 0 < float(found[1]) < math.inf:
            self.fail(f"'{value}' is no duration above 0: write 20s, 2m or 1h", param, ctx)
        return float(found[1]) * self._UNITS[found[2]]


class Percentiles(click.ParamType[tuple[float, ...]]):
    """`50,90,99.9`; as a tuple of figures."""

    name = "list"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        if isinstance(value, tuple):
            return value
        try:
            figures = tuple(float(word) for word in str(value).split(","))
        except ValueError:
            figures = (math.nan,)
        if not all(0 <= figure <= 100 for figure in figures):
            self.fail(f"'{value}': give figures between 0 and 100, such as 50,90,99.9", param, ctx)
        return figures


def _nic_names(_: click.Context, __: click.Parameter, text: str | None) -> tuple[str, ...]:
    """The names in `NAME[,NAME]`. Raises UsageError."""
    from fablint.errors import UsageError
    from fablint.text.names import plain

    names = tuple(name.strip() for name in text.split(",")) if text is not None else ()
    if bad := [name for name in names if not name or plain(name) != name or "/" in name]:
        raise UsageError(f"--nic: '{bad[0]}' is no name of a NIC", "write --nic ens3f0np0,ens3f1np1")
    return names


nic_option = click.option(
    "--nic",
    "nics",
    metavar="NAME[,NAME]",
    callback=_nic_names,
    help="NICs that messages take, such as ens3f0np0 or mlx5_0 [found out].",
)
run_argument = click.argument("run", type=click.Path(path_type=Path))
output_option = click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="RUN", help="Run directory to write."
)
topology_option = click.option(
    "--topology",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Which host hangs on which switch (YAML) [the run's own].",
)
site_option = click.option(
    "--site",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Site file (TOML): what pairs should reach, what hosts should have [the run's own].",
)
# Which hosts, and what is known of the fabric besides what they say.
fabric_options = (
    click.option("-x", "--exclude", metavar="LIST", help="Leave these hosts out."),
    click.option("--hostfile", type=click.Path(path_type=Path), metavar="FILE", help="Take the hosts in FILE."),
    click.option(
        "--from",
        "files",
        multiple=True,
        metavar="[NAME=]FILE",
        help="Saved output of a tool, or a topology file; NAME: of which switch or host it is. May be repeated.",
    ),
    click.option("--blocks", type=int, metavar="N", help="Where nobody tells: N hosts in a row share a switch."),
)
findings_option = click.option(
    "--findings",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Verdict of loopback tests or the like (JSON): tells host, NIC, cable and port apart.",
)
mpicxx_option = click.option(
    "--mpicxx", type=click.Path(path_type=Path), metavar="PROGRAM", help="MPI C++ compiler to build the engine with."
)
ranks_option = click.option("-n", "--ranks", type=int, default=2, show_default=True, help="Number of ranks.")
