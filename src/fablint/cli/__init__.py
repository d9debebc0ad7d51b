"""The command line. `main` is the only place where an error becomes a line on stderr and an exit code."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence

import click

from fablint import __version__
from fablint.cli.act import act
from fablint.cli.bench import bench
from fablint.cli.check import check
from fablint.cli.checking import plan, retest
from fablint.cli.common import INTERRUPTED, Session, common_options
from fablint.cli.demo import demo
from fablint.cli.discovering import discover
from fablint.cli.importing import import_verb
from fablint.cli.jobs import status, wait
from fablint.cli.measuring import measure, resume
from fablint.cli.preflight import preflight
from fablint.cli.reading import analyse, export, report, show
from fablint.cli.setup import doctor, engine
from fablint.cli.simulating import simulate
from fablint.errors import FablintError, IncompleteError, InternalError, UsageError

_CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)


class _InOrder(click.Group):
    """Lists the verbs in the order in which they were added: the order of the flow."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(
    cls=_InOrder,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=False,
    invoke_without_command=True,
)
@common_options
@click.version_option(__version__, prog_name="fablint", message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Measure an HPC or AI cluster's fabric and name the part at fault.

    \b
    Exit codes: 0 pass, 1 fault found, 2 wrong usage, 3 incomplete or undecided,
    4 refused by preflight, 5 internal error.

    \b
    Example:
      fablint check --local 8
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for _verb in (
    discover,
    preflight,
    check,
    measure,
    bench,
    resume,
    retest,
    status,
    wait,
    plan,
    import_verb,
    analyse,
    report,
    show,
    act,
    export,
    engine,
    doctor,
    simulate,
    demo,
):
    cli.add_command(_verb)


def main(argv: Sequence[str] | None = None) -> None:
    """Run a verb and exit with its code."""
    session = Session()
    sys.exit(_exit_code(session, list(sys.argv[1:] if argv is None else argv)))


def _exit_code(session: Session, argv: list[str]) -> int:
    try:
        code = cli.main(argv, prog_name="fablint", standalone_mode=False, obj=session)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except FablintError as error:
        return _fail(session, str(error), error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 0
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "fablint"
        return _fail(session, f"{_sentence(error)}: see {where} --help", UsageError.exit_code)
    except click.ClickException as error:
        return _fail(session, _sentence(error), UsageError.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _CANNOT_WRITE:
            line = f"cannot write {error.filename or 'the result'}: {error.strerror}: make room, or write elsewhere"
            return _fail(session, line, IncompleteError.exit_code)
        what = f"{type(error).__name__}: {error}".splitlines()[0]
        return _fail(session, f"internal error: {what}: rerun with --debug and report it", InternalError.exit_code)


def _sentence(error: click.ClickException) -> str:
    """click's message as a part of our line."""
    return " ".join(error.format_message().split()).rstrip(".")


def _fail(session: Session, line: str, code: int) -> int:
    if session.debug:
        traceback.print_exc()
    click.echo(f"fablint: {line}", err=True)
    return code
