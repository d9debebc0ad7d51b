"""All options of all verbs: one meaning for a name, and sections of the help."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import click
import pytest

from fablint.cli import cli
from fablint.errors import UsageError
from fablint.plan import find_benchmark

# Names with several forms of a value that mean the same: a file of the verb's own kind, or a list of it.
FORMS = {"--output": {"FILE", "RUN"}}
# Options that several verbs define, and what all of them mean by it.
MEANINGS = {
    "--all": "print everything",
    "--all-columns": "columns of a table that it has not by default",
    "--budget": "limit of time",
    "--full": "all pairs",
    "--hostfile": "hosts of a file",
    "--hosts": "hosts by their names",
    "--kernel": "a kernel by its name",
    "--local": "ranks of this machine",
    "--margin": "share of a figure",
    "--output": "what is written",
    "--percentiles": "percentiles of the time of a message",
    "--ranks": "number of ranks",
    "--ranks-per-nic": "ranks near each NIC",
    "--row": "a row",
    "--site": "site file",
    "--sizes": "sizes of messages",
    "--suite": "a suite by its name",
    "--to": "a format by its name",
    "--topology": "topology file",
}


def verbs(command: click.Command, path: str = "fablint") -> Iterator[tuple[str, click.Command]]:
    """Commands that have no commands of their own, with their names."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from verbs(command.get_command(context, name), f"{path} {name}")
    else:
        yield path, command


def options() -> dict[str, dict[str, click.Option]]:
    """Options by their spelling and the verb."""
    found: dict[str, dict[str, click.Option]] = defaultdict(dict)
    for name, verb in verbs(cli):
        for parameter in verb.params:
            if isinstance(parameter, click.Option):
                for spelling in parameter.opts:
                    found[spelling][name] = parameter
    return found


@pytest.mark.parametrize("spelling", sorted(options()))
def test_a_name_has_one_form_of_value_and_one_long_name(spelling):
    found = options()[spelling]
    forms = {"a switch" if option.is_flag else option.metavar or "its type" for option in found.values()}
    forms -= {"its type"} if len(forms) > 1 else set()
    assert len(forms) == 1 or forms <= FORMS.get(max(next(iter(found.values())).opts, key=len), set()), found
    if len(spelling) == 2:
        assert len({max(option.opts, key=len) for option in found.values()}) == 1, found


def test_names_of_several_verbs_have_a_meaning():
    shared = {name for name, found in options().items() if len({option.help for option in found.values()}) > 1}
    assert {name for name in shared if name.startswith("--")} == {*MEANINGS}


@pytest.mark.parametrize("verb", ["check", "bench"])
def test_a_verb_with_many_options_has_sections(verb, fablint):
    page = fablint(verb, "--help").stdout
    command = cli.get_command(click.Context(cli), verb)
    for option in (parameter for parameter in command.params if isinstance(parameter, click.Option)):
        assert page.count(f"\n  {', '.join(option.opts)}") >= 1 or option.opts[-1] in page
    assert sum(line.endswith(":") and not line.startswith(" ") for line in page.splitlines()) > 4


def test_every_option_of_check_has_one_section(fablint):
    command = cli.get_command(click.Context(cli), "check")
    named = [spelling for spellings in command.sections.values() for spelling in spellings]
    has = [option.opts[-1] for option in command.params if isinstance(option, click.Option)]
    assert len(named) == len({*named}) and {*named} <= {*has}
    assert {*has} - {*named} <= {"--json", "--quiet", "--debug"}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("osu_latncy", "did you mean osu_latency"),
        ("pingpong", "latency or osu_latency may be what you mean"),
        ("throughput", "bandwidth or osu_bw may be"),
        ("message-rate", "osu_mbw_mr may be"),
        ("ib_atomic_bw", "fop or cas may be"),
        ("rdma_write", "put_bandwidth or put_latency may be"),
        ("my_all2all_test", "alltoall or osu_alltoall may be"),
        ("incast", "osu_bw_fan_in may be"),
        ("one-sided", "put_bandwidth or put_latency may be"),
        ("reduction", "reduce or osu_reduce may be"),
        ("barrier-latency", "barrier or osu_barrier may be"),
        ("point2point", "latency or bandwidth may be"),
        ("sendrecv_perf", "fablint does not measure this program of nccl-tests"),
        ("osu_ineighbor_alltoall", "fablint does not measure collectives of neighbours"),
        ("osu_reduce_persistent", "fablint does not measure persistent collectives"),
        ("nosuch", "fablint bench --list shows all"),
    ],
)
def test_a_name_that_does_not_exist_is_understood_by_its_meaning(name, hint):
    from fablint.workflows.benchmark import benchmark_registry

    with pytest.raises(UsageError) as caught:
        find_benchmark(name, benchmark_registry())
    assert caught.value.hint.startswith(hint)


def test_what_is_suggested_exists():
    from fablint.plan.rows.benchmarks import _MEANINGS
    from fablint.workflows.benchmark import benchmark_registry

    for meant in _MEANINGS.values():
        for name in meant.split(" or "):
            assert find_benchmark(name, benchmark_registry()).name == name
