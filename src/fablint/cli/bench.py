"""The verb `bench`: a benchmark by its name, with the options of the program that it comes from."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fablint import __version__
from fablint.cli.bench_options import ONLY_START, SECTIONS, SETTINGS
from fablint.cli.many_ranks import confirm_ranks, yes_option
from fablint.cli.option_sections import COMMON, write_sections
from fablint.cli.options import launcher_option, mpicxx_option, output_option, with_options
from fablint.cli.peers import Peer, peer_line, peer_of
from fablint.cli.peers.peer_options import PeerOption
from fablint.cli.session import Session, verb
from fablint.cli.table_output import TableOutput
from fablint.errors import FablintError, UsageError

if TYPE_CHECKING:
    from fablint.plan import Benchmark
    from fablint.report import Table
    from fablint.workflows.benchmark import BenchmarkResult

_NAMED, _NOTES = "fablint.benchmark", "fablint.notes"
_NAME_WIDTH = 23


class _BenchCommand(click.Command):
    """A command whose help has sections, and for the name of a benchmark only the options that apply to it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        named = args[0] if args and not args[0].startswith("-") else self._values(ctx, args).get("name")
        named = named if isinstance(named, str) else None
        if named and (peer := _peer_of(named)):
            line = peer_line(peer, named, args, lambda words: self._free_words(ctx, words))
            named, args = line.name, [line.name, *line.words]
            ctx.meta[_NOTES] = line.notes
        ctx.meta[_NAMED] = named
        try:
            return super().parse_args(ctx, args)
        except click.UsageError:
            _benchmark_of(ctx)  # raises for a name that does not exist, whose options do not exist either
            raise

    def _values(self, ctx: click.Context, args: list[str]) -> dict[str, Any]:
        """Return the values of the line by parameter; none of a line with an error, which click reports later."""
        try:
            return self.make_parser(ctx).parse_args([*args])[0]
        except click.UsageError:
            return {}

    def invoke(self, ctx: click.Context) -> Any:
        for note in ctx.meta.get(_NOTES, ()):
            ctx.ensure_object(Session).say(note)
        if words := ctx.params.pop("words"):
            hint = "options begin with - or --"
            raise UsageError(f"bench {ctx.params['name']}: unexpected word '{words[0]}'", hint)
        return super().invoke(ctx)

    def _free_words(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Return the words of the line that are neither options nor the name."""
        words = self._values(ctx, args).get("words")
        return [*words] if isinstance(words, tuple) else []

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        named = _benchmark_of(ctx)
        if named is None:
            super().format_usage(ctx, formatter)
        else:
            formatter.write_usage(ctx.command_path, f"{named.name} [OPTIONS]")

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        named = _benchmark_of(ctx)
        if named is None:
            super().format_help_text(ctx, formatter)
            return
        from fablint.cli.bench_page import defaults, introduction
        from fablint.plan import BenchRequest, bench_rows, every_row
        from fablint.plan.rows.benchmarks import COMPOSED
        from fablint.workflows.benchmark import benchmark_registry

        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(introduction(named))
        if named.name in ONLY_START:
            return
        registry = benchmark_registry()
        rows = every_row(named.name, registry) if named in COMPOSED else bench_rows(BenchRequest(named.name), registry)
        for title, lines in defaults(rows).items():
            with formatter.section(title):
                formatter.write_dl(lines)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        titles = {setting.parameter: title for title, section in SECTIONS.items() for setting in section}
        named = _benchmark_of(ctx)
        applicable = _applicable_options(named.name if named else None)
        peer = peer_of(named.name, named.family) if named else None
        theirs = peer.options_of(named.name) if peer and named else {}
        peer_titles = [f"{peer.name} options"] if peer else []
        records: dict[str, list[tuple[str, str]]] = {title: [] for title in (*SECTIONS, *peer_titles, COMMON)}
        if peer:
            records[peer_titles[0]] += [
                _peer_record(option) for option in dict.fromkeys(theirs.values()) if option.is_here
            ]
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx) if isinstance(option, click.Option) else None
            if record is not None and (option.name not in titles or option.name in applicable):
                names = _without(record[0], theirs)
                records[titles.get(str(option.name), COMMON)].append((names, record[1]))
        write_sections(formatter, records)


def _peer_record(option: PeerOption) -> tuple[str, str]:
    return f"{', '.join(option.spellings.split())} {option.form}".rstrip(), option.meaning


def _without(spellings: str, others: Collection[str]) -> str:
    """Return the spellings of an option, and its value, without those that mean something else: `-n, --ranks N`."""
    names = spellings.split(", ")
    return ", ".join(name for name in names if name.split()[0] not in others) or names[-1]


def _peer_of(name: str) -> Peer | None:
    """Return the program whose options a benchmark of `bench`, or the program `name`, has."""
    from fablint.plan import find_benchmark
    from fablint.workflows.benchmark import benchmark_registry

    if peer := peer_of(name, ""):
        return peer
    with suppress(UsageError):
        return peer_of(name, find_benchmark(name, benchmark_registry()).family)
    return None


def _benchmark_of(ctx: click.Context) -> Benchmark | None:
    """Benchmark that the command line names; None without a name. Raises UsageError for an unknown name."""
    from fablint.plan import find_benchmark
    from fablint.workflows.benchmark import benchmark_registry

    name = ctx.meta.get(_NAMED)
    return find_benchmark(name, benchmark_registry()) if name else None


def _applicable_options(name: str | None) -> set[str]:
    """Options that apply to a benchmark; all options without a name."""
    if name is None:
        return {*SETTINGS}
    from fablint.plan import every_row, find_benchmark
    from fablint.workflows.benchmark import benchmark_registry

    registry = benchmark_registry()
    benchmark, rows = find_benchmark(name, registry), every_row(name, registry)
    return {setting.parameter for setting in SETTINGS.values() if not setting.why_refused(benchmark, rows)}


def _complete_name(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    from fablint.plan import list_benchmarks
    from fablint.workflows.benchmark import benchmark_registry

    benchmarks = list_benchmarks(benchmark_registry())
    return [benchmark.name for benchmark in benchmarks if benchmark.name.startswith(incomplete)]


@verb(cls=_BenchCommand, short_help="Run a benchmark by its name; output as OSU prints it.")
@click.argument("name", required=False, shell_complete=_complete_name)
@click.argument("words", nargs=-1, metavar="[WORD]...")
@with_options(*(setting.decorate for setting in SETTINGS.values()))
@click.option("--list", "listing", is_flag=True, help="List all benchmarks and the options each stands for.")
@output_option
@mpicxx_option
@launcher_option
@yes_option
def bench(session: Session, name: str | None, listing: bool, output: Path | None, **values: Any) -> int:
    """Measure the benchmark NAME and print its table.

    NAME is a kernel (latency, bandwidth, put_latency, ...), measured until the figure is stable, or a benchmark of OSU
    (with or without osu_), LinkTest, net_sanitizer, HPE, SDSC, GPCNeT or nccl-tests, with the protocol and the counts
    of the original. --list shows all. NAME --help shows the options of NAME; others are refused. The options of
    nccl-tests follow NAME as nccl-tests has them. Lines of IMB, mpiGraph and perftest are measured with the kernel
    that does the same, which a line on stderr names.

    \b
    Examples:
      fablint bench latency --sizes 1:4K --percentiles 50,99,99.9
      fablint bench osu_bw -m 4194304 -x 10 -i 1000 -d cuda D D
      fablint bench all_reduce_perf -b 8 -e 128M -f 2 -g 8
      fablint bench IMB-MPI1 PingPong -msglog 3:20
      fablint bench ib_write_bw -d mlx5_0 --hosts n001,n002
      fablint bench osu_put_latency -w create -s lock_all -c
      fablint bench linktest --bisection --bidirectional -n 8
      fablint bench net_sanitizer --servers 'server[2-3]' --clients 'client[1-4]'
    """
    if listing:
        return _list(session)
    if name is None:
        raise UsageError("no benchmark is named", "fablint bench --list names them all")
    return _measured(session, name, output, values)


def _measured(session: Session, name: str, output: Path | None, values: dict[str, Any]) -> int:
    """Measure a benchmark, print its table, and return the exit code."""
    from fablint.cli.bench_request import bench_request
    from fablint.plan import bench_plan, find_benchmark, measured_as
    from fablint.workflows import benchmark, measurement

    system, registry = session.machine(), benchmark.benchmark_registry()
    if values["version"] and find_benchmark(name, registry).family == "OSU":
        return _version(session, find_benchmark(name, registry).name)
    programs, is_confirmed = (values.pop("mpicxx"), values.pop("launcher")), values.pop("yes")
    request, table_columns, options = bench_request(name, values, registry, system.now())
    plan = bench_plan(request, registry)
    confirm_ranks(session, 0 if plan.slots else plan.ranks, is_confirmed=is_confirmed)  # slots: on other hosts
    output = output and measurement.free_output(system, output)
    with session.context(*programs) as context:
        run = partial(benchmark.bench, context, plan, measured_as(request, registry), table_columns, output, options)
        result = _shown(session, run)
    if result.damage:
        session.warn(result.damage)
    return result.exit_code


def _shown(session: Session, run: Callable[[Callable[[Table], None]], BenchmarkResult]) -> BenchmarkResult:
    """Return what a benchmark measured, after its table was printed size by size."""
    output = TableOutput(session)
    try:
        result = run(output.show_part)
    except (KeyboardInterrupt, FablintError):
        output.finish()
        raise
    output.finish(result.table)
    return result


def _version(session: Session, name: str) -> int:
    from fablint.report.tables.osu_names import VERSION

    text = f"{name}: protocol and format of OSU Micro-Benchmarks {VERSION}, fablint {__version__}"
    session.result(text, {"benchmark": name, "osu": VERSION, "fablint": __version__})
    return 0


def _list(session: Session) -> int:
    from fablint.plan import list_benchmarks
    from fablint.workflows.benchmark import benchmark_registry

    benchmarks = list_benchmarks(benchmark_registry())
    families = groupby(benchmarks, lambda benchmark: benchmark.family)
    text = "\n\n".join("\n".join([family, *map(_entry, members)]) for family, members in families)
    session.result(text, {"benchmarks": [asdict(one) for one in benchmarks]})
    return 0


def _entry(benchmark: Benchmark) -> str:
    """Return two lines: what the benchmark is, and its row."""
    lines = [f"  {benchmark.name:<{_NAME_WIDTH}} {benchmark.what}"]
    if benchmark.row != benchmark.name:
        lines.append(f"  {'':<{_NAME_WIDTH}} {benchmark.row}")
    return "\n".join(lines)
