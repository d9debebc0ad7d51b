"""The format of a file is recognised by its contents; an unknown file is refused in one line, and soon."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from import_cases import COMET, FAULTY, FIXTURES, NETSAN_VERBOSE, by_host, files, means
from peer_layouts import LAYOUTS, csv_times

from fablint.errors import UsageError
from fablint.model.facts.run_attributes import ExcludedLine
from fablint.store import import_run
from fablint.store.importing.formats import FORMATS, HEAD, TOOLS, import_file, recognise

OWNER = {  # family -> the format of its files
    "osu": {"OSU"},
    "net_sanitizer": {"net_sanitizer"},
    "linktest": {"LinkTest"},
    "mpigraph": {"mpiGraph"},
    "hp2p": {"HP2P", "HP2P's page", "HP2P's binary file"},
    "imb": {"IMB"},
    "clusterkit": {"ClusterKit"},
    "nccl_tests": {"nccl-tests"},
}


@pytest.mark.parametrize("path", files(*OWNER), ids=lambda path: path.name)
def test_every_real_output_is_of_one_format(path):
    data = path.read_bytes()
    assert recognise(data[:HEAD], len(data))[0].name in OWNER[path.parent.name]


@pytest.mark.parametrize("name", LAYOUTS)
def test_so_is_every_layout_behind_what_a_job_prints(name):
    text = LAYOUTS[name][0](np.full((4, 4), 1e-4))
    plain, _ = recognise(text, len(text))
    if not plain.binary and "json" not in name and "csv" not in name:
        noise = b"Loading modules, please wait\r\nsrun: job 17 queued\n\n"
        assert recognise(noise + text, len(text))[0] is plain


def refused(path, *words):
    with pytest.raises(UsageError) as caught:
        import_run([path])
    line = str(caught.value)
    assert line.startswith(f"{path}: ") and "\n" not in line
    assert all(word in line for word in words), line


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "the file is empty"),
        (b" \n\t\n", "the file is blank"),
        (b"\x7fELF\0\0\1", "a binary file of unknown format"),
        (b"sion\0", "ends too early"),
        (b"hello world\n" * 100, "not the output of a known benchmark"),
        (b"a,b,c\n1,2,3\n", "not the output of a known benchmark"),
        ("größer\n".encode("latin-1"), "not the output of a known benchmark"),
        (b'{"latency": 3}', "not a result of ClusterKit"),
        (b'{"latency": ', "begins as JSON but is not JSON"),
        (b"src,dst,size,speed\n", "no column of figures"),
        (b"# OSU MPI Latency Test v7.4\n", "no table of an OSU program"),
        (b"# OSU MPI Init Test v7.4\nnprocs: 2, min: 1 ms, max: 2 ms, avg: 1 ms\n", "not a supported test of messages"),
        (b"# OSU MPI Barrier Latency Test v7.4\n# Avg Latency(us)\n  3.12\n", "name their hosts with --hosts"),
    ],
)
def test_other_files_are_refused_in_one_line(tmp_path, data, word):
    path = tmp_path / "unknown"
    path.write_bytes(data)
    refused(path, word)


def test_so_are_directories_and_files_that_are_not_there(tmp_path):
    refused(tmp_path, "is a directory")
    refused(tmp_path / "nothing", "No such file")


def test_two_formats_in_one_file_are_not_guessed(tmp_path):
    path = tmp_path / "both.out"
    path.write_bytes(FAULTY.read_bytes() + NETSAN_VERBOSE.read_bytes())
    refused(path, "output of net_sanitizer and of mpiGraph in one file")


def test_files_of_two_tools_are_not_one_run():
    with pytest.raises(UsageError, match=r"is output of mpigraph 1.5 and .* of net_sanitizer: import them separately"):
        import_run([FAULTY, NETSAN_VERBOSE])


def test_a_huge_file_of_something_else_is_refused_after_its_head(tmp_path):
    """2 GiB of text, as a sparse file with a page of text in front: reading it all would take its size in memory."""
    path = tmp_path / "huge.log"
    path.write_bytes(b"2015-10-19 12:00:00 kernel: nothing to see\n" * (HEAD // 43 + 1))
    os.truncate(path, 2 << 30)
    program = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "from pathlib import Path; from fablint.store import import_run\n"
        "import_run([Path(sys.argv[1])])"
    )
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=False)
    assert "UsageError" in done.stderr and "not the output of a known benchmark" in done.stderr
    os.truncate(path, 0)
    path.write_bytes(FAULTY.read_bytes())
    os.truncate(path, 3 << 30)
    refused(path, "a binary file of unknown format")


def test_a_known_file_larger_than_memory_allows_is_refused(tmp_path):
    path = tmp_path / "huge.csv"
    path.write_bytes(b"src,dst,size,time\n" + b"a,b,8,1e-6\n" * (HEAD // 10))
    os.truncate(path, (2 << 30) + 1)
    refused(path, "MiB exceed the largest file that is read", "split it")


def test_a_pipe_is_read_as_a_file(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with _writing(pipe, FAULTY):
        assert len(import_file(pipe).bodies) == 1


def _writing(pipe, path):
    return subprocess.Popen(["sh", "-c", f"cat '{path}' > '{pipe}'"])


# ------------------------------------------------------------------------------------------------ real files


def test_comet():
    """38 of 153 pairs, one program start for each, in the order of the file."""
    run = import_run([COMET])
    (row,) = run.rows
    hosts = [f"comet-21-{number:02}" for number in range(1, 19)]
    assert (run.state, run.hosts, run.facts.launch.allocations) == ("interrupted", hosts, [hosts])
    imported = run.facts.imported
    assert (imported.tool, imported.launch) == ("osu 4.4.1", "pair")
    assert len(imported.lines_left_out) == 115
    assert imported.lines_left_out[0] == ExcludedLine(str(COMET), 1027, "comet-21-03,comet-21-09", "no figures")
    assert (row.kernel, row.quantity, row.payload, row.directions) == ("latency", "latency", "both", "single")
    assert (row.facts.schedule.rounds, row.facts.schedule.cells_per_round, row.facts.schedule.order) == (
        153,
        1,
        "serial",
    )
    assert row.sizes == (0, *(1 << power for power in range(23)))
    assert means(row, 0)[0, 1] == pytest.approx(1.04e-6)
    assert means(row, 4 << 20)[0, 1] == pytest.approx(670.02e-6)
    measured = np.asarray(row.arrays["count"])[0] > 0
    assert measured.any(axis=2).sum() == measured.all(axis=2).sum() == 38
    order = np.asarray(row.arrays["round"])[0]
    assert [order[0, 1], order[0, 2], order[1, 2], order[2, 3]] == [0, 1, 17, 33]


def test_three_allocations_in_three_files(tmp_path):
    """As of Comet, whose other two files are not at hand: other host numbers in the same text."""
    paths = []
    for first in (0, 18, 36):
        text = COMET.read_text()
        for number in range(18, 0, -1):
            text = text.replace(f"comet-21-{number:02}", f"comet-21-{number + first:02}x")
        paths.append(tmp_path / f"rack-{first}.out")
        paths[-1].write_text(text.replace("x", ""))
    run = import_run(paths)
    (row,) = run.rows
    assert [len(one) for one in run.facts.launch.allocations] == [18, 18, 18]
    assert [one[0] for one in run.facts.launch.allocations] == ["comet-21-01", "comet-21-19", "comet-21-37"]
    assert (row.facts.schedule.rounds, row.facts.schedule.repeats, len(run.hosts)) == (459, 1, 54)
    measured = (np.asarray(row.arrays["count"])[0] > 0).all(axis=2)
    assert measured.sum() == 3 * 38
    assert not measured[:18, 18:].any()


def test_net_sanitizers_table_names_the_reporter_and_not_the_sender():
    run = import_run([NETSAN_VERBOSE])
    (row,) = run.rows
    hosts = ["client1", "client2", "client3", "client4"]
    assert sorted(run.hosts) == hosts
    assert (row.kernel, row.quantity, row.payload) == ("bandwidth", "bandwidth", "both")
    seconds = by_host(run, row, hosts, 4 << 20)
    assert seconds[1, 0] == pytest.approx((4 << 20) / (5911 * 2**20), rel=2e-4)
    assert seconds[2, 3] == pytest.approx(1 / 917, rel=1e-3)
    slow = seconds > 9e-4
    assert slow[2].sum() == slow[:, 2].sum() == 3 and slow.sum() == 6


def test_few_pairs_among_many_hosts_are_a_list(tmp_path):
    n = 3000
    path = tmp_path / "sparse.csv"
    lines = [f"h{i:04},h{(i + step) % n:04},8,{1e-6 * (i + step)}" for step in (1, 5, 77) for i in range(n)]
    path.write_text("\n".join(["src,dst,size,time", *lines, ""]))
    (row,) = import_run([path]).rows
    partner = np.asarray(row.arrays["dst"])
    assert (row.layout, row.pattern) == ("list", "rounds")
    assert (partner >= 0).sum() == 3 * n and partner.shape[1] < 8
    for column in partner.T:  # a matching: no rank has two partners
        leaders = np.flatnonzero(column >= 0)
        ends = np.concatenate([leaders, column[leaders]])
        assert len(ends) == len(set(ends))
    assert sum(row.facts.schedule.cells_per_round) == 3 * n


def test_names_of_the_user_for_ranks_without_hosts(tmp_path):
    path = FIXTURES / "osu" / "osu_latency-7.4-openmpi4.1.4-np2-quiet.txt"
    assert import_run([path]).hosts == ["rank0", "rank1"]
    assert import_run([path], ["n7", "n9"]).hosts == ["n7", "n9"]
    with pytest.raises(UsageError, match="--hosts names 3 hosts for 2 ranks"):
        import_run([path], ["a", "b", "c"])
    named = tmp_path / "named.csv"
    named.write_bytes(csv_times(np.full((3, 3), 1e-6)))
    with pytest.raises(UsageError, match="the file names its hosts: omit --hosts"):
        import_run([named], ["a", "b", "c"])


def test_every_tool_has_a_line_in_the_documentation():
    assert len({form.name for form in FORMATS}) == len(FORMATS)
    page = (FIXTURES.parents[1] / "docs" / "how-to" / "import.md").read_text()
    lines = page.partition("| tool |")[2].partition("\n\n")[0].splitlines()[2:]
    assert {line.split("|")[1].strip() for line in lines} == {*TOOLS}
    assert all(cell.strip() for line in lines for cell in line.strip("|").split("|"))
