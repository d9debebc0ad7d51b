"""`resume` and `retest` measure with the options of the check: each option of it is tried, also those to come.

The options are those that `fablint check` has. What starts the ranks is a fake that keeps what it is given.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import click
import pytest
from fake_launches import fabric
from test_retest_verb import HOST, a_run

import fablint.measure
from fablint.cli import main
from fablint.cli.bench_options import MEDIA
from fablint.cli.check import check as check_verb
from fablint.cluster import JobOptions
from fablint.discover import write_topology
from fablint.errors import UsageError
from fablint.model import Allocation, Finding, Medium, Plan, Slots, State
from fablint.model.preflight_results import Fitness, Outcome, Result
from fablint.snapshot import CollectedSnapshots
from fablint.store import read_run, set_state
from fablint.system import System
from fablint.text import notes as noted
from fablint.workflows import fabric_discovery, host_preflight, measurement, programs, retest_run
from fablint.workflows.check import cluster_check
from fablint.workflows.check.check_record import CheckRecord, load_check, save_check
from fablint.workflows.check.exclusions import Exclusion
from fablint.workflows.check.request import CheckRequest
from fablint.workflows.context import LAUNCH, Context, KeptLaunch, load_launch, save_launch
from finding_cases import finding
from pinned import pinned_by

PINNED = pinned_by("workflows.toml", __file__)

HOSTS = [f"n{number}" for number in range(1, 7)]

# A value of each option of a check. A new option needs one: a test below then shows whether a resumed check has it.
VALUES: Mapping[str, Sequence[str]] = {
    "hosts": ("-w", "n[1-4]"),
    "exclude": ("-x", "n2"),
    "hostfile": ("--hostfile", "hosts"),
    "files": ("--from", "fabric.yaml"),
    "topology": ("--topology", "fabric.yaml"),
    "blocks": ("--blocks", "2"),
    "nics": ("--nic", "hsn1"),
    "ppn": ("--ppn", "2"),
    "suite": ("--suite", "edge"),
    "full": ("--full",),
    "unequal": ("--unequal",),
    "exclude_unfit": ("--exclude-unfit",),
    "include_unfit": ("--include-unfit",),
    "site": ("--site", "site.toml"),
    "budget": ("--budget", "77s"),
    "until": ("--until", "8%"),
    "transport": ("--transport", "tcp,mpi"),
    "device": ("--transport", "tcp", "--device", "hsn1"),
    "streams": ("--transport", "tcp", "--streams", "3"),
    "ofi_provider": ("--transport", "ofi", "--ofi-provider", "cxi"),
    "memory": ("--memory", "cuda"),
    "mpicxx": ("--mpicxx", "/opt/mpi/bin/mpicxx"),
    "launcher": ("--launcher", "/opt/mpi/bin/mpiexec"),
}
# Options of a request that are not tried here.
ELSEWHERE = {
    "output",
    "baseline",  # a baseline becomes a part of the site file
    *("ranks", "ranks_per_nic"),  # --local: below; the number of NICs is that of real snapshots: check_record
}
OF_THE_CALL = {"request_file", "yes", "submit", "dry_run", "detach", *(one.name for one in fields(JobOptions))}


A_FINDING = finding(State.NOT_JUDGED, "host", "n9", evidence="excluded: drained")


class Launched(BaseException):
    """The first launch: what follows is not of interest here, and the front end is gone."""


@pytest.fixture
def launches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """What each launch was given: compiler, launcher, words of the engine, rows and hosts."""
    given: list[dict[str, Any]] = []

    def choose(context: Context, plan: Plan) -> tuple[None, SimpleNamespace]:
        given.append({"mpicxx": context.mpicxx, "launcher": context.launcher, "slots": plan.slots})
        return None, SimpleNamespace(launchers=())

    def launch(*values: Any, options: Any) -> NoReturn:
        *_, plan, _ = values
        given[-1] |= {"words": [one for one in options.words], "rows": [row.spec.text for row in plan.rows]}
        raise Launched

    def usable(_: System, request: fabric_discovery.FabricRequest, **__: bool) -> tuple[Allocation, list[Finding]]:
        if request.hostfile:
            return Allocation(tuple(request.hostfile.read_text().split()), "test"), []
        from fablint.plan.rows.host_lists import parse_hosts

        hosts = parse_hosts(request.hosts or "")
        return Allocation(tuple(host for host in hosts if host not in (request.exclude or "")), "test"), []

    def preflight(_: System, allocation: Allocation, **__: Any) -> host_preflight.PreflightResult:
        return host_preflight.PreflightResult(CollectedSnapshots(), Fitness(allocation.hosts, (), {}))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(measurement, "_engine_and_launchers", choose)
    monkeypatch.setattr(fablint.measure, "run_on_first", launch)
    monkeypatch.setattr(programs, "with_programs", lambda context, _: context)
    monkeypatch.setattr(fabric_discovery, "usable_hosts", usable)
    monkeypatch.setattr(host_preflight, "preflight_hosts", preflight)
    monkeypatch.setattr(cluster_check, "refuse_unshared", lambda *_: None)
    (tmp_path / "hosts").write_text("n3\nn4\n")
    topology = fabric(3, 2)
    names = dict(zip(topology.host_switch, HOSTS, strict=True))
    places = {names[host]: switch for host, switch in topology.host_switch.items()}
    (tmp_path / "fabric.yaml").write_text(write_topology(replace(topology, host_switch=places)))
    site = 'format = 1\n[[threshold]]\nscope = "global"\nkernel = "latency"\nsize = 8\nvalue = "1 us"\n'
    (tmp_path / "site.toml").write_text(site)
    yield given


def asked(launches: list[dict[str, Any]], run: str, *words: str) -> tuple[dict[str, Any], CheckRecord | None]:
    """What the first launch of a call was given, and the request that its run keeps."""
    with pytest.raises(Launched):
        main(words)
    return launches[-1], load_check(Path(run))


# What the function of the verb gets: not `--json`, `--all`, `--junit` and the like, which say how the result is shown.
OPTIONS = {str(one.name) for one in check_verb.params if isinstance(one, click.Option) and one.expose_value}


def test_each_option_of_a_check_is_in_the_request() -> None:
    of_media = {one.name for one in fields(Medium)} & OPTIONS
    assert {one.name for one in fields(CheckRequest)} - {"media"} | of_media == OPTIONS - OF_THE_CALL
    assert of_media == {*MEDIA}


def test_the_record_of_a_check_repeats_no_option_of_its_request() -> None:
    """The topology and the site file are kept as texts: their files may change before the check is resumed."""
    assert {one.name for one in fields(CheckRecord)} & {one.name for one in fields(CheckRequest)} == {
        "topology",
        "site",
    }


def test_each_path_of_a_request_is_valid_in_any_folder() -> None:
    """A path that is added to the request is made absolute as well."""
    paths = {one.name: Path(one.name) for one in fields(CheckRequest) if one.type == "Path | None"}
    paths |= {"mpicxx": Path("bin/mpicxx")}
    request = CheckRequest(**paths, files=("a=b", "c"), launcher="bin/mpiexec").in_any_folder()
    assert {name: getattr(request, name) for name in paths} == {name: path.absolute() for name, path in paths.items()}
    assert request.sources == (str(Path("topology").absolute()), f"a={Path('b').absolute()}", str(Path("c").absolute()))
    assert request.launcher == str(Path("bin/mpiexec").absolute())
    assert CheckRequest(mpicxx=Path("mpicxx"), launcher="srun").in_any_folder() == CheckRequest(
        mpicxx=Path("mpicxx"), launcher="srun"
    )


@pytest.mark.parametrize("name", sorted(OPTIONS - OF_THE_CALL - ELSEWHERE))
def test_a_check_that_goes_on_has_each_option_of_the_check(launches: list[dict[str, Any]], name: str) -> None:
    hosts = () if name in ("hosts", "hostfile") else ("-w", "n[1-6]")
    plain = asked(launches, "plain.run", "check", "-w", "n[1-6]", "-o", "plain.run")
    first = asked(launches, "a.run", "check", *hosts, *VALUES[name], "-o", "a.run")
    assert first != plain, "the option changes neither the launch nor the request that the run keeps"
    assert asked(launches, "a.run", "resume", "a.run") == first
    Path("a.run", LAUNCH).unlink()  # of a check that was killed while its engine was built
    assert asked(launches, "a.run", "resume", "a.run") == first


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [None, 1, 2.5, "always"])
def test_the_figure_of_a_result_is_written_without_a_warning(tmp_path: Path, value: float | str | None) -> None:
    result = Result("log.kernel", "n1", "", Outcome.WARN, "out of memory", value, value)
    save_check(CheckRecord(CheckRequest(), warnings=(result,)), tmp_path)
    read = load_check(tmp_path)
    assert read is not None
    assert [one.message for one in read.warnings] == ["out of memory"]


@pytest.mark.parametrize("field", [one.name for one in fields(CheckRecord)])
def test_each_part_of_the_request_is_read_as_it_was_written(tmp_path: Path, field: str) -> None:
    """A part that is added needs a value here, other than that of an empty record."""
    values: dict[str, Any] = {
        "request": CheckRequest(suite="edge", unequal=True, ranks_per_nic=2, budget=77.0, media=(Medium("tcp"),)),
        "slots": (Slots("n1", 2), Slots("n2", 2)),
        "topology": "format: 1\n",
        "site": "format = 1\n",
        "warnings": (Result("thp", "n1", "", Outcome.WARN, "always"),),
        "exclusions": {"n3": Exclusion("edge", A_FINDING)},
        "findings": (A_FINDING,),
        "inside": (A_FINDING,),
        "notes": (noted.slow_login(hosts=("n1", "n2"), longest_s=8.25, usual_s=0.5), noted.few_cables()),
        "network": ("not pinged",),
        "ended": True,
    }
    record = replace(CheckRecord(CheckRequest()), **{field: values[field]})
    assert record != CheckRecord(CheckRequest())
    save_check(record, tmp_path)
    read = load_check(tmp_path)
    assert getattr(read, field) == getattr(record, field)


MEASURING = {
    "measure": ("measure", "-n", "4", "-r", "latency --pattern all-pairs", "--counters", "--ranks-per-nic", "2"),
    "bench": ("bench", "latency", "-n", "2", "--counters"),
    "check --local": ("check", "--local", "4"),
    "check": ("check", "-w", "n[1-4]", "--transport", "tcp"),
}


@pytest.mark.parametrize("verb", MEASURING)
def test_each_verb_keeps_how_it_starts_its_ranks(launches: list[dict[str, Any]], verb: str) -> None:
    chosen = ("--mpicxx", "bin/mpicxx", "--launcher", "mpirun.site", "-o", "a.run", "--yes")
    with pytest.raises(Launched):
        main((*MEASURING[verb], *chosen))
    kept = load_launch(Path("a.run"))
    assert (kept.mpicxx, kept.launcher) == (str(Path("bin/mpicxx").absolute()), "mpirun.site")
    of_engine = [word for word in launches[-1]["words"] if word not in ("--by-size", "--threads")]
    assert list(kept.options) == of_engine


@pytest.fixture
def run(tmp_path: Path, launches: list[dict[str, Any]]) -> Path:
    """A run of 64 hosts that lacks a row, and of which a host is slow."""
    path = a_run(tmp_path / "x.run", HOST)
    save_launch(KeptLaunch("/opt/mpi/bin/mpicxx", "prterun", ("--counters", "--ranks-per-nic", "2")), path)
    return path


def lacking_a_row(path: Path) -> Path:
    from fablint.store.checksums import ROOT, remove_checksums
    from fablint.store.metadata import change_attributes

    run = read_run(path)
    plan = [*(row.facts.options for row in run.rows), "latency --name more --pattern all-pairs"]
    remove_checksums(path, ROOT)
    change_attributes(path, rows=[*run.facts.rows, "more"], plan=plan)
    set_state(path, "interrupted")
    return path


def test_resume_and_retest_start_the_ranks_as_those_of_the_run(
    run: Path, launches: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retest_run, "slots_of_job", lambda _, slots: slots)
    monkeypatch.setattr(retest_run, "refuse_unshared", lambda *_: None)
    monkeypatch.setattr(measurement, "_slots_now", lambda _, slots: slots)
    monkeypatch.setattr(measurement, "refuse_unshared", lambda *_: None)
    (run / "site.toml").write_text("format = 1\n")
    for words in (("retest", "x.run", "-o", "y.run"), ("resume", str(lacking_a_row(run)))):
        with pytest.raises(Launched):
            main(words)
        given = launches[-1]
        assert (str(given["mpicxx"]), given["launcher"]) == ("/opt/mpi/bin/mpicxx", "prterun")
        assert given["words"][-3:] == ["--counters", "--ranks-per-nic", "2"]
    assert load_launch(Path("y.run")) == load_launch(run)  # of a retest of the retest


def test_a_retest_measures_over_the_transport_of_the_run(
    tmp_path: Path, launches: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retest_run, "slots_of_job", lambda _, slots: slots)
    monkeypatch.setattr(retest_run, "refuse_unshared", lambda *_: None)
    a_run(tmp_path / "x.run", HOST, transport="tcp")
    with pytest.raises(Launched):
        main(("retest", "x.run", "-o", "y.run"))
    assert launches[-1]["rows"] and all("--transport tcp" in row for row in launches[-1]["rows"])


def test_another_launcher_is_said_and_another_mpi_is_refused_by_resume_only(
    run: Path, launches: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(retest_run, "slots_of_job", lambda _, slots: slots)
    monkeypatch.setattr(retest_run, "refuse_unshared", lambda *_: None)
    with pytest.raises(Launched):
        main(("retest", "x.run", "-o", "y.run", "--mpicxx", "mpicxx.site", "--launcher", "srun"))
    assert (str(launches[-1]["mpicxx"]), launches[-1]["launcher"]) == ("mpicxx.site", "srun")
    said = capsys.readouterr().err
    assert PINNED["--mpicxx mpicxx.site replaces"] in said
    assert PINNED["--launcher srun replaces"] in said
    with pytest.raises(SystemExit) as ended:
        main(("resume", "x.run", "--mpicxx", "mpicxx.site"))
    assert ended.value.code == UsageError.exit_code
    assert PINNED["x.run is measured"] in (capsys.readouterr().err)


@pytest.mark.parametrize("text", ["{", "[]", "{}", json.dumps({"mpicxx": "", "launcher": "", "options": 1})])
def test_a_damaged_record_is_one_line(run: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    (run / LAUNCH).write_text(text)
    with pytest.raises(SystemExit):
        main(("resume", "x.run"))
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert PINNED["launch.json: is not the record"] in said
