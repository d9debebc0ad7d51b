"""The command line. `main` is the only place where an error becomes a line on stderr and an exit code."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from keyword import iskeyword

import click

from fablint.cli.session import Session, common_options
from fablint.errors import EXIT_CODES, INTERRUPTED, FablintError, IncompleteError, InternalError, UsageError

_CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)


# The verbs in the order in which data flows. Each is in the module of its name.
_VERBS = (
    "discover",
    "preflight",
    "check",
    "measure",
    "bench",
    "resume",
    "retest",
    "status",
    "wait",
    "plan",
    "import",
    "analyse",
    "compare",
    "history",
    "report",
    "show",
    "act",
    "export",
    "engine",
    "doctor",
    "simulate",
    "demo",
)


class _Verbs(click.Group):
    """Verbs in their order, each imported on first use: a verb does not pay for the options of the others."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.commands and self.commands[cmd_name] is None:
            module = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
            self.commands[cmd_name] = getattr(import_module(f"{__name__}.{module}"), module)
        return super().get_command(ctx, cmd_name)


def _print_version(context: click.Context, _: click.Parameter, is_given: bool) -> None:
    if is_given and not context.resilient_parsing:
        from fablint.cli.program_version import print_version

        print_version(context)


@click.group(
    cls=_Verbs,
    commands=dict.fromkeys(_VERBS),
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=False,
    epilog="\b\nExit codes:\n" + "\n".join(f"  {code:<4} {meaning}" for code, meaning in EXIT_CODES.items()),
    invoke_without_command=True,
)
@common_options
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the versions of fablint, of its engine and of MPI, and exit.",
)
@click.pass_context
def cli(context: click.Context) -> None:
    """Measure the fabric of an HPC or AI cluster and localise faulty components.

    \b
    Example:
      fablint check --local 8
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main(argv: Sequence[str] | None = None) -> None:
    """Run a verb and exit with its code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    session = Session(json="--json" in arguments)  # known before the options are parsed, which may fail
    sys.exit(_exit_code(session, arguments))


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
        verb = next((word for word in argv if word in cli.commands), "")  # where a value is missing, click has none
        where = error.ctx.command_path if error.ctx else f"fablint {verb}".rstrip()
        return _fail(session, f"{_sentence(error)}: see {where} --help", UsageError.exit_code)
    except click.ClickException as error:
        return _fail(session, _sentence(error), UsageError.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:  # the reader of stdout has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _CANNOT_WRITE:
            line = f"cannot write {error.filename or 'the result'}: {error.strerror}: free space, or write elsewhere"
            return _fail(session, line, IncompleteError.exit_code)
        description = f"{type(error).__name__}: {error}".splitlines()[0]
        return _fail(
            session, f"internal error: {description}: rerun with --debug and report it", InternalError.exit_code
        )


def _sentence(error: click.ClickException) -> str:
    """Return the message of click as one line without a full stop."""
    return " ".join(error.format_message().split()).rstrip(".")


def _fail(session: Session, line: str, code: int) -> int:
    if session.debug:
        traceback.print_exc()
    session.error(line, code)
    return code
