"""The verb `bench`: a benchmark by its name, with the options of the program that it comes from."""

from __future__ import annotations

from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fablint.cli.bench_options import SECTIONS, SETTINGS
from fablint.cli.common import Session, mpicxx_option, output_option, verb
from fablint.errors import UsageError

if TYPE_CHECKING:
    from fablint.plan import Benchmark

_NAMED, _COMMON = "fablint.benchmark", "Common options"
_NAME_WIDTH = 23


class _BenchCommand(click.Command):
    """Its help has sections; with the name of a benchmark, only what means something for that."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            named = self.make_parser(ctx).parse_args([*args])[0].get("name")
        except click.UsageError:
            named = None
        ctx.meta[_NAMED] = named if isinstance(named, str) else None
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        titles = {setting.parameter: title for title, section in SECTIONS.items() for setting in section}
        meant = _meant(ctx.meta.get(_NAMED))
        records: dict[str, list[tuple[str, str]]] = {title: [] for title in (*SECTIONS, _COMMON)}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx) if isinstance(option, click.Option) else None
            if record is not None and (option.name not in titles or option.name in meant):
                records[titles.get(str(option.name), _COMMON)].append(record)
        for title, lines in records.items():
            if lines:
                with formatter.section(title):
                    formatter.write_dl(lines)


def _meant(name: str | None) -> set[str]:
    """The options that mean something for a benchmark; all of them where none is named."""
    if name is None:
        return {*SETTINGS}
    from fablint.workflows import flow

    benchmark, rows = flow.find_benchmark(name)
    return {setting.parameter for setting in SETTINGS.values() if not setting.no_meaning(benchmark, rows)}


def _settings(function: Any) -> Any:
    for setting in reversed(SETTINGS.values()):
        function = setting.decorate(function)
    return function


@verb(cls=_BenchCommand, short_help="A benchmark by its name, as OSU prints it.")
@click.argument("name", required=False)
@_settings
@click.option("--list", "listing", is_flag=True, help="Name all benchmarks, and the rows that they are.")
@output_option
@mpicxx_option
def bench(
    session: Session, name: str | None, listing: bool, output: Path | None, mpicxx: Path | None, **values: Any
) -> int:
    """Measure the benchmark NAME and print its table.

    NAME is a kernel (latency, bandwidth, put_latency, ...), measured until the figure is sure, or a benchmark of OSU
    (with or without osu_), LinkTest, net_sanitizer, HPE, SDSC or GPCNeT, with the protocol and the counts of the
    original. --list names them all. NAME --help shows the options that NAME has; others are refused.

    \b
    Examples:
      fablint bench latency --sizes 1:4K --percentiles 50,99,99.9
      fablint bench osu_mbw_mr -n 8 -V -m 4K
      fablint bench osu_put_latency -w create -s lock_all -c
      fablint bench linktest --bisection --bidirectional -n 8
      fablint bench net_sanitizer --servers 'server[2-3]' --clients 'client[1-4]'
    """
    from fablint.cli.bench_request import requested
    from fablint.workflows import flow

    if listing:
        return _list(session)
    if name is None:
        raise UsageError("which benchmark?", "fablint bench --list names them")
    system = session.machine()
    request, wanted, options = requested(name, values, system.now())
    plan, measured_as = flow.bench_plan(request)
    if output is not None:
        output = flow.free_output(system, output)
    with session.surroundings(mpicxx) as around:
        benched = flow.bench(around, plan, measured_as, wanted, output, options)
    session.result(benched.table.text, {"format": 1, **benched.table.as_dict()})
    if benched.damage:
        session.warn(benched.damage)
    return benched.exit_code


def _list(session: Session) -> int:
    from fablint.workflows import flow

    found = flow.list_benchmarks()
    families = groupby(found, lambda benchmark: benchmark.family)
    text = "\n\n".join("\n".join([family, *map(_entry, members)]) for family, members in families)
    session.result(text, {"format": 1, "benchmarks": [asdict(one) for one in found]})
    return 0


def _entry(benchmark: Benchmark) -> str:
    """Two lines: what it is, and the row."""
    lines = [f"  {benchmark.name:<{_NAME_WIDTH}} {benchmark.what}"]
    if benchmark.row != benchmark.name:
        lines.append(f"  {'':<{_NAME_WIDTH}} {benchmark.row}")
    return "\n".join(lines)
