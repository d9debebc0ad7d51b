"""One call of fablint: the common options of all verbs, and printing of results."""

from __future__ import annotations

import functools
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fablint.errors import INTERRUPTED, IncompleteError, UsageError
from fablint.model.facts.json_objects import document_of

if TYPE_CHECKING:
    from fablint.measure import ConsoleProgress
    from fablint.model import Diagnosis, Run
    from fablint.model.preflight_results import Fitness
    from fablint.report.exports.formats import ResultFormat
    from fablint.system import System
    from fablint.workflows.check.check_run import CheckOutcome
    from fablint.workflows.context import Context
    from fablint.workflows.measurement import MeasurementResult

Verb = TypeVar("Verb", bound=Callable[..., Any])
_WIDTH = 80
_SHOWN = 5  # excluded lines of an imported file that are shown on stderr
_LINE_WIDTH = 60  # characters of such a line


def _machine() -> System:
    from fablint.system import System

    return System()


@dataclass
class Session:
    """One call of fablint: the common options, and the machine (tests give another)."""

    debug: bool = False
    quiet: bool = False
    json: bool = False
    is_json_lines: bool = False  # progress and result are lines of JSON on standard output
    is_stdout_written: bool = False  # a file is written to standard output: all else goes to stderr
    is_full: bool = False  # everything that a verdict says, also on a terminal
    machine: Callable[[], System] = field(default=_machine)
    result_files: dict[str, Path] = field(default_factory=dict)  # files to write with the result, by format
    shown: ConsoleProgress | None = field(default=None, init=False)  # progress display of a long verb
    has_result: bool = field(default=False, init=False)  # the result is printed: no other JSON may follow on stdout

    @contextmanager
    def context(self, mpicxx: Path | None = None, launcher: str = "") -> Iterator[Context]:
        """Context of a workflow, with the progress display on stderr."""
        from fablint.measure import ConsoleProgress, JsonLinesProgress, NoProgress
        from fablint.workflows.context import Context

        system = self.machine()
        if self.is_json_lines:
            yield Context(system, JsonLinesProgress(system), mpicxx, launcher)
            return
        if self.quiet:
            yield Context(system, NoProgress(), mpicxx, launcher)
            return
        with ConsoleProgress(system) as self.shown:
            yield Context(system, self.shown, mpicxx, launcher)

    @contextmanager
    def working(self, task: str) -> Iterator[Callable[[int, int], None] | None]:
        """Show on stderr a long task of the block, for how long it has run, and the time left by its steps."""
        from fablint.measure import ConsoleProgress

        if self.quiet:
            yield None
            return
        with ConsoleProgress(self.machine()).working(task) as step:
            yield step

    # ------------------------------------------------------------------------------------------------ printing

    def print(self, text: str, *, err: bool = False, nl: bool = True) -> None:
        """Print on separate lines: the progress display on the terminal is erased before."""
        if self.shown is not None:
            self.shown.erase()
        self.has_result |= not err
        if self.is_stdout_written and not err:
            if self.quiet:
                return
            err = True
        click.echo(text, err=err, nl=nl)
        (sys.stderr if err else sys.stdout).flush()  # a reader of a pipe sees each line of a long verb

    def result(self, text: str, facts: Mapping[str, Any]) -> None:
        """Print the result: `text` for people, `facts` as JSON for programs, in a format with a number."""
        document = {"format": 1, **facts}
        self.print(json.dumps(document, indent=2, default=str) if self.json else text.rstrip("\n"))

    def say(self, text: str) -> None:
        """Print a message on stderr, unless --quiet was given."""
        if not self.quiet:
            self.print(f"fablint: {text}", err=True)

    def error(self, line: str, code: int) -> None:
        """Print the error that ends the call: a line on stderr, with --json and without a result also JSON."""
        if self.is_json_lines:
            from fablint.measure import write_event

            write_event("error", text=line, exit_code=code)
        elif self.json and not self.has_result:
            click.echo(json.dumps({"format": 1, "error": line, "exit_code": code}, indent=2))
        click.echo(f"fablint: {line}", err=True)

    def warn(self, text: str) -> None:
        """Print a message on stderr about something that failed although there is a result."""
        self.print(f"fablint: {text}", err=True)

    def verdict(self, run: Run, diagnosis: Diagnosis) -> int:
        """Print a verdict; return its exit code."""
        from fablint.report import console_summary, verdict_json

        if self.is_json_lines:
            self.print(json.dumps({"event": "verdict", **json.loads(verdict_json(diagnosis))}))
        elif self.json:
            self.print(verdict_json(diagnosis), nl=False)
        else:
            is_terminal = sys.stdout.isatty()
            width = columns() if is_terminal else None
            is_full = self.is_full or not is_terminal
            summary = console_summary(run, diagnosis, width=width, color=in_colour(), is_full=is_full)
            self.print(summary, nl=False)
        self._write_result_files(lambda form: form.verdict(run, diagnosis))
        return diagnosis.verdict.exit_code

    def _write_result_files(self, render: Callable[[ResultFormat], str]) -> None:
        if self.result_files:
            from fablint.cli.written_files import write_file
            from fablint.report.exports.formats import RESULT_FORMATS

            for name, path in self.result_files.items():
                write_file(path, render(RESULT_FORMATS[name]))

    def outcome(self, outcome: CheckOutcome) -> int:
        """Print the outcome of a check; return its exit code."""
        if outcome.error:
            self.warn(outcome.error)
        code = self.verdict(outcome.run, outcome.diagnosis)
        if outcome.page is not None:
            self.say(f"report: {outcome.page}")
        return code if outcome.exit_code is None else outcome.exit_code

    def measurement(self, result: MeasurementResult) -> int:
        """Print what a launch measured; return its exit code."""
        from fablint.workflows.run_files import missing_levels

        run = result.run
        levels = missing_levels(run)
        code = self.with_missing_levels(run.path, result.exit_code, levels)
        facts = {
            "run": str(run.path),
            "state": run.state,
            "exit_code": code,
            "missing_levels": levels,
            "lost": [document_of(entry) for entry in run.facts.lost],
            "error": result.error or None,
        }
        self.result(f"{run.path}: {run.state}", facts)
        if result.error:
            self.warn(": ".join(filter(None, (result.error, result.next_step))))
        return code

    def with_missing_levels(self, run: Path | None, code: int, levels: Sequence[str]) -> int:
        """Return the exit code, 3 in place of 0 where a check never began some of its levels; warn of these."""
        if not levels:
            return code
        names = ", ".join(levels)
        self.warn(f"{run}: {names}: levels planned and never begun; measure them with a new fablint check")
        return code or IncompleteError.exit_code

    def fitness(self, level: str, fitness: Fitness, moment: float) -> int:
        """Print the results of preflight, which began at a moment (seconds since 1970); return its exit code."""
        from fablint.report import fitness_json, fitness_table

        self.has_result = True
        if self.json:
            sys.stdout.writelines(fitness_json(level, fitness))
            sys.stdout.flush()
        else:
            self.print(fitness_table(fitness, columns(), color=in_colour()), nl=False)
        self._write_result_files(lambda form: form.fitness(fitness, moment))
        return fitness.exit_code

    def refuse_unwritable_files(self) -> None:
        """Raise UsageError where a file for the result cannot be written; called before the verb begins."""
        if self.is_stdout_written and (self.json or self.is_json_lines):
            option = "--json" if self.json else "--json-lines"
            raise UsageError(f"{option} and a file on standard output contradict each other", "name a file")
        if self.result_files:
            from fablint.cli.written_files import refuse_unwritable

            for path in self.result_files.values():
                refuse_unwritable(path)

    # ------------------------------------------------------------------------------------------------ reading

    def read(self, runs: tuple[Path, ...]) -> Run:
        """Read a run, or files of another tool; lines of these that are not part of the format are named on stderr."""
        from fablint.workflows.run_formats import read

        run = read(*runs)
        if run.path is None:
            self.say_excluded_lines(run)
        return run

    def say_excluded_lines(self, run: Run) -> None:
        """Name the first lines of an imported file that are not part of its format."""
        lines = run.facts.imported.lines_left_out if run.facts.imported else ()
        for line in lines[:_SHOWN]:
            text = line.text if len(line.text) <= _LINE_WIDTH else f"{line.text[: _LINE_WIDTH - 3]}..."
            place = f"{line.file}:{line.line}" if line.line else line.file
            self.say(f"{place}: excluded, {line.why}: {text!r}")
        if len(lines) > _SHOWN:
            self.say(f"and {len(lines) - _SHOWN} more lines excluded: fablint import --json has all")


def columns() -> int:
    """Columns of the terminal."""
    return shutil.get_terminal_size((_WIDTH, 24)).columns


def in_colour() -> bool:
    """Return whether stdout shows colours."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _set_in_session(name: str) -> Callable[[click.Context, click.Parameter, bool], None]:
    """Return the callback of a switch that may be given before or after the verb."""

    def remember(context: click.Context, _: click.Parameter, value: bool) -> None:
        session = context.ensure_object(Session)
        setattr(session, name, value or getattr(session, name))

    return remember


def common_options(verb: Verb) -> Verb:
    """Add `--json`, `--quiet` and `--debug`."""
    switches = (
        (("--debug",), "debug", "Show a traceback when something fails."),
        (("-q", "--quiet"), "quiet", "No progress and no messages on stderr."),
        (("--json",), "json", "Print the result as JSON."),
    )
    for names, attribute, words in switches:
        callback = _set_in_session(attribute)
        option = click.option(*names, is_flag=True, expose_value=False, is_eager=True, callback=callback, help=words)
        verb = option(verb)
    return verb


all_option = click.option(
    "--all",
    "is_full",
    is_flag=True,
    expose_value=False,
    callback=_set_in_session("is_full"),
    help="Print every finding and note in full, as into a pipe or a file [25 lines on a terminal].",
)


json_lines_option = click.option(
    "--json-lines",
    "is_json_lines",
    is_flag=True,
    expose_value=False,
    callback=_set_in_session("is_json_lines"),
    help="Print progress, findings as they become certain, and the verdict as lines of JSON.",
)


def verb(**settings: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a function a command of fablint: with the common options, and the `Session` as its first argument."""

    def decorate(function: Callable[..., Any]) -> click.Command:
        @functools.wraps(function)
        def interruptible(session: Session, *values: Any, **named: Any) -> Any:
            try:
                session.refuse_unwritable_files()
                return function(session, *values, **named)
            except KeyboardInterrupt:  # click would print an empty line
                return INTERRUPTED

        command: click.Command = click.command(**settings)(common_options(click.pass_obj(interruptible)))
        return command

    return decorate
