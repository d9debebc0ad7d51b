"""The verb `bench`: a benchmark by its name, with the options of the program that it comes from."""

from __future__ import annotations

from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fablint.cli.bench_options import SECTIONS, SETTINGS
from fablint.cli.options import mpicxx_option, output_option, with_options
from fablint.cli.session import Session, verb
from fablint.errors import UsageError

if TYPE_CHECKING:
    from fablint.plan import Benchmark

_NAMED, _COMMON = "fablint.benchmark", "Common options"
_NAME_WIDTH = 23


class _BenchCommand(click.Command):
    """A command whose help has sections, and for the name of a benchmark only the options that apply to it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            named = self.make_parser(ctx).parse_args([*args])[0].get("name")
        except click.UsageError:
            named = None
        ctx.meta[_NAMED] = named if isinstance(named, str) else None
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        titles = {setting.parameter: title for title, section in SECTIONS.items() for setting in section}
        applicable = _applicable_options(ctx.meta.get(_NAMED))
        records: dict[str, list[tuple[str, str]]] = {title: [] for title in (*SECTIONS, _COMMON)}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx) if isinstance(option, click.Option) else None
            if record is not None and (option.name not in titles or option.name in applicable):
                records[titles.get(str(option.name), _COMMON)].append(record)
        for title, lines in records.items():
            if lines:
                with formatter.section(title):
                    formatter.write_dl(lines)


def _applicable_options(name: str | None) -> set[str]:
    """Options that apply to a benchmark; all options without a name."""
    if name is None:
        return {*SETTINGS}
    from fablint.plan import every_row, find_benchmark
    from fablint.workflows.benchmark import benchmark_registry

    registry = benchmark_registry()
    benchmark, rows = find_benchmark(name, registry), every_row(name, registry)
    return {setting.parameter for setting in SETTINGS.values() if not setting.why_refused(benchmark, rows)}


@verb(cls=_BenchCommand, short_help="Run a benchmark by its name; output as OSU prints it.")
@click.argument("name", required=False)
@with_options(*(setting.decorate for setting in SETTINGS.values()))
@click.option("--list", "listing", is_flag=True, help="List all benchmarks and the options each stands for.")
@output_option
@mpicxx_option
def bench(
    session: Session, name: str | None, listing: bool, output: Path | None, mpicxx: Path | None, **values: Any
) -> int:
    """Measure the benchmark NAME and print its table.

    NAME is a kernel (latency, bandwidth, put_latency, ...), measured until the figure is stable, or a benchmark of OSU
    (with or without osu_), LinkTest, net_sanitizer, HPE, SDSC or GPCNeT, with the protocol and the counts of the
    original. --list shows all. NAME --help shows the options of NAME; others are refused.

    \b
    Examples:
      fablint bench latency --sizes 1:4K --percentiles 50,99,99.9
      fablint bench osu_mbw_mr -n 8 -V -m 4K
      fablint bench osu_put_latency -w create -s lock_all -c
      fablint bench linktest --bisection --bidirectional -n 8
      fablint bench net_sanitizer --servers 'server[2-3]' --clients 'client[1-4]'
    """
    from fablint.cli.bench_request import bench_request
    from fablint.plan import bench_plan, measured_as
    from fablint.workflows import benchmark, measurement

    if listing:
        return _list(session)
    if name is None:
        raise UsageError("no benchmark is named", "fablint bench --list names them all")
    system = session.machine()
    registry = benchmark.benchmark_registry()
    request, table_columns, options = bench_request(name, values, registry, system.now())
    plan = bench_plan(request, registry)
    if output is not None:
        output = measurement.free_output(system, output)
    with session.context(mpicxx) as context:
        table_of = measured_as(request, registry)
        result = benchmark.bench(context, plan, table_of, table_columns, output, options)
    session.result(result.table.text, {"format": 1, **result.table.as_dict()})
    if result.damage:
        session.warn(result.damage)
    return result.exit_code


def _list(session: Session) -> int:
    from fablint.plan import list_benchmarks
    from fablint.workflows.benchmark import benchmark_registry

    benchmarks = list_benchmarks(benchmark_registry())
    families = groupby(benchmarks, lambda benchmark: benchmark.family)
    text = "\n\n".join("\n".join([family, *map(_entry, members)]) for family, members in families)
    session.result(text, {"format": 1, "benchmarks": [asdict(one) for one in benchmarks]})
    return 0


def _entry(benchmark: Benchmark) -> str:
    """Return two lines: what the benchmark is, and its row."""
    lines = [f"  {benchmark.name:<{_NAME_WIDTH}} {benchmark.what}"]
    if benchmark.row != benchmark.name:
        lines.append(f"  {'':<{_NAME_WIDTH}} {benchmark.row}")
    return "\n".join(lines)
