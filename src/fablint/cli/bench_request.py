"""The request of `fablint bench`: options become rows to measure, columns to print and options of the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from fablint.cli.bench_options import SECTIONS, SETTINGS, Setting, engine_options
from fablint.cli.param_types import MessageCount
from fablint.errors import UsageError
from fablint.model import RowSpec, Slots
from fablint.model.registry import TRANSPORTS
from fablint.model.registry.linktest_modes import LINKTEST_MODES
from fablint.plan import BenchRequest, bench_rows, find_benchmark, joined, parse_slots
from fablint.plan.rows.benchmarks import KERNEL_FAMILY, Benchmark
from fablint.plan.rows.side_by_side import media
from fablint.text.suggestions import alternatives
from fablint.workflows.benchmark import TableColumns

RANKS = 2
KERNEL_PERCENTILES = (50.0, 99.0)

Given = Mapping[str, Any]  # parameter -> value, of the options that were given


def bench_request(
    name: str, values: Given, registry: Mapping[str, Benchmark], now: datetime
) -> tuple[BenchRequest, TableColumns, list[str]]:
    """Return what to measure, the columns to print, and the options of the engine.

    Raises
    ------
    UsageError
        There is no such benchmark, an option does not apply to it, or two options contradict each other.
    """
    given = {parameter: value for parameter, value in values.items() if value is not None and value is not False}
    benchmark = find_benchmark(name, registry)
    slots, servers = _slots(given, benchmark)
    row_values = _row_values(given)
    message_size = row_values.pop("sizes") if "message_size" in given else None
    if "mode" in given:
        row_values |= _transport_of_mode(given["mode"], row_values)
    if servers:
        row_values["servers"] = servers
    if "randomize" in given:
        row_values["seed"] = int(now.timestamp())
    is_comparison = len(media(row_values)) > 1
    if is_comparison:
        _refuse_in_comparisons(given)
    has_percentiles = benchmark.family == KERNEL_FAMILY and not is_comparison
    percentiles = given.get("percentiles", KERNEL_PERCENTILES if has_percentiles else ())
    request = BenchRequest(
        name=benchmark.name,
        ranks=_ranks(given, slots),
        values=row_values,
        messages=frozenset(
            SETTINGS[parameter].row for parameter in given if isinstance(SETTINGS[parameter].type, MessageCount)
        ),
        message_size=message_size,
        adaptive="adaptive" in given,
        vary_window="vary_window" in given,
        histogram=bool(percentiles),
        sends=_sends(given),
        alltoall="all_to_all" in given,
        slots=slots,
    )
    _refuse_inapplicable(given, benchmark, bench_rows(request, registry))
    columns = TableColumns(percentiles, full="all_columns" in given or "verbose" in given)
    return request, columns, engine_options(counters="counters" in given, ranks_per_nic=given.get("ranks_per_nic"))


def _row_values(given: Given) -> dict[str, Any]:
    """Return the values of options of the row; sizes as OSU writes them are among them."""
    values: dict[str, Any] = {}
    setters: dict[str, Setting] = {}
    for parameter, value in given.items():
        setting = SETTINGS[parameter]
        if not setting.row:
            continue
        if setting.row in setters:
            other = setters[setting.row].spelling
            raise UsageError(f"{other} and {setting.spelling} are the same option", "give one of them")
        setters[setting.row] = setting
        values[setting.row] = setting.text or value
    return values


def _transport_of_mode(mode: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options of the transport that LinkTest's mode uses. Raises UsageError where there is none."""
    options = LINKTEST_MODES[mode]
    if options["transport"] not in TRANSPORTS:
        modes = [name for name, words in LINKTEST_MODES.items() if words["transport"] in TRANSPORTS]
        raise UsageError(
            f"--mode {mode}: there is no transport {options['transport']}",
            f"choose {alternatives(modes)}",
        )
    if twice := next((name for name in options if name != "transport" and name in values), None):
        raise UsageError(f"--mode {mode} means --{twice} {options[twice]}", f"omit --{twice}")
    return {**options, "transport": (options["transport"],)}


def _refuse_in_comparisons(given: Given) -> None:
    """Raise UsageError for a column that the table of several transports does not have."""
    for parameter in ("percentiles", "all_columns", "verbose"):
        if parameter in given:
            spelling = SETTINGS[parameter].spelling
            raise UsageError(f"{spelling} does not apply to several transports", "measure one transport")


def _sends(given: Given) -> str:
    if "bidirectional" in given and "unidirectional" in given:
        raise UsageError("--bidirectional and --unidirectional contradict each other", "give one of them")
    return "both" if "bidirectional" in given else "one" if "unidirectional" in given else "turns"


def _slots(given: Given, benchmark: Benchmark) -> tuple[tuple[Slots, ...], int]:
    """Return the ranks on each host, and how many of the first ranks are servers (0: not given by hosts)."""
    for count, hosts in (("ppn", "hosts"), ("servers_nranks", "servers"), ("clients_nranks", "clients")):
        if count in given and hosts not in given:
            raise UsageError(f"--{count.replace('_', '-')} requires --{hosts}", f"give --{hosts} as well")
    _refuse_together(given, "hosts", "clients")
    _refuse_together(given, "hosts", "servers")
    _refuse_together(given, "nservers", "servers")
    if "servers" in given and "clients" not in given:
        raise UsageError("--servers requires --clients", "give --clients as well")
    if "clients" in given and "servers" not in given and benchmark.name in ("netsan_put", "netsan_get"):
        raise UsageError("--clients requires --servers", "give --servers as well")
    if "hosts" in given:
        return parse_slots(given["hosts"], given.get("ppn", 1)), 0
    if "clients" not in given:
        return (), 0
    servers = parse_slots(given["servers"], given.get("servers_nranks", 1)) if "servers" in given else ()
    clients = parse_slots(given["clients"], given.get("clients_nranks", 1))
    return joined(servers, clients), sum(slot.ranks for slot in servers)


def _refuse_together(given: Given, item: str, other: str) -> None:
    if item in given and other in given:
        raise UsageError(f"--{item} and --{other} are the same option", "give one of them")


def _ranks(given: Given, slots: tuple[Slots, ...]) -> int:
    """Number of ranks that the hosts, the pairs and -n give. Raises UsageError if they differ."""
    sources = {}
    if slots:
        sources["the hosts"] = sum(slot.ranks for slot in slots)
    if "pairs" in given:
        sources[f"--pairs {given['pairs']}"] = 2 * given["pairs"]
    if "ranks" in given:
        sources["-n"] = given["ranks"]
    ranks = next(iter(sources.values()), RANKS)
    for option, count in sources.items():
        if count != ranks:
            raise UsageError(f"{next(iter(sources))} means {ranks} ranks, {option} {count}", "omit one of them")
    return ranks


def _refuse_inapplicable(given: Given, benchmark: Benchmark, rows: Sequence[RowSpec]) -> None:
    """Raise UsageError for an option that does not apply to the benchmark."""
    for parameter in given:
        setting = SETTINGS[parameter]
        if why := setting.why_refused(benchmark, rows):
            sections = [section for title, section in SECTIONS.items() if title not in ("Options", "OSU options")]
            has = [
                setting_of_section.spelling
                for section in sections
                for setting_of_section in section
                if not setting_of_section.why_refused(benchmark, rows)
            ]
            options = f"{', '.join(has)} and the common options" if has else "the common options only"
            why = f"{why}; {benchmark.name} has {options}"
            raise UsageError(f"{setting.spelling} does not apply to {benchmark.name}", why)
