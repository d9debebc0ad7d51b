"""CSV: when pairs were measured, which ran at the same time, and lines that cannot be read."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from import_cases import FAULTY, FIXTURES

from fablint.cli import main
from fablint.store import import_run, read_run, write_run
from pinned import pinned_by

PINNED = pinned_by("store.toml", __file__)

HOSTS = [f"h{number}" for number in range(8)]


def rounds(count: int) -> list[tuple[int, int, int]]:
    """(src, dst, round) of the first rounds in which 8 ranks can pair off: 7 are all of them."""
    return [(rank, rank ^ step, step - 1) for step in range(1, count + 1) for rank in range(8)]


def text(cells: list[tuple[int, int, int]], *more: str) -> str:
    """The measurement of cell k began 0.25 s after that of cell k - 1."""
    lines = [
        f"{HOSTS[src]},{HOSTS[dst]},8,{1 + at / 100},{number},{at / 4}" for at, (src, dst, number) in enumerate(cells)
    ]
    return "\n".join(["src,dst,size,time_us,round,started", *lines, *more, ""])


def imported(tmp_path, content):
    path = tmp_path / "pairs.csv"
    path.write_text(content)
    return import_run([path])


def complete(count: int = 8) -> list[str]:
    """Lines of a full matrix that fits every host equally well, without the columns of time."""
    return [
        f"{a},{b},1048576,{12000 + 7 * (at % 11)}" for at, (a, b) in enumerate(itertools.permutations(HOSTS[:count], 2))
    ]


def verdict(capsys, path) -> tuple[int, dict]:
    with pytest.raises(SystemExit) as end:
        main(["analyse", str(path), "--json", "--quiet"])
    return int(end.value.code or 0), json.loads(capsys.readouterr().out)


def test_a_full_matrix_keeps_rounds_and_starts(tmp_path):
    cells = rounds(7)
    (row,) = imported(tmp_path, text(cells)).rows
    assert (row.layout, row.facts.schedule.order, row.facts.schedule.rounds) == ("matrix", "parallel", 7)
    assert row.facts.state == "complete"
    for at, (src, dst, number) in enumerate(cells):
        assert row.arrays["round"][0, src, dst] == number
        assert row.arrays["started"][0, src, dst] == at / 4
    assert np.isnan(row.arrays["started"][0, 0, 0])


def test_rounds_of_one_pair_each_are_a_serial_row(tmp_path):
    """Both directions of the pair are in the round: no other message is in progress."""
    pairs = list(itertools.combinations(range(8), 2))
    cells = [(a, b, number) for number, pair in enumerate(pairs) for a, b in (pair, pair[::-1])]
    (row,) = imported(tmp_path, text(cells)).rows
    assert (row.layout, row.facts.schedule.order) == ("matrix", "serial")
    two_at_once = [(a, b, number // 2) for a, b, number in cells]
    (row,) = imported(tmp_path, text(two_at_once)).rows
    assert row.facts.schedule.order == "parallel"


def test_a_few_rounds_are_the_columns_of_a_list(tmp_path):
    cells = [(src, dst, 10 * number) for src, dst, number in rounds(3)]  # numbers that are not used are not rounds
    run = imported(tmp_path, text(cells))
    write_run(tmp_path / "a.run", run)
    (row,) = read_run(tmp_path / "a.run").rows
    assert (row.layout, row.facts.schedule.order, row.facts.schedule.pattern) == ("list", "parallel", "rounds")
    assert row.facts.schedule.cells_per_round == 8
    partner, started = np.asarray(row.arrays["dst"][:]), np.asarray(row.arrays["started"][:])
    for at, (src, dst, number) in enumerate(cells):
        assert partner[src, number // 10] == dst
        assert started[src, number // 10] == at / 4


def test_a_round_in_which_a_rank_has_two_partners_is_no_column(tmp_path):
    (row,) = imported(tmp_path, text([(0, 1, 0), (0, 2, 0), (3, 4, 1), (5, 6, 1), (7, 6, 1)])).rows
    assert (row.layout, row.facts.schedule.order) == ("matrix", "parallel")
    assert row.arrays["round"][0, 0, 2] == 0 and row.arrays["round"][0, 7, 6] == 1


def test_all_sizes_of_a_pair_started_with_the_first(tmp_path):
    lines = ["src,dst,size,time,started", "a,b,8,1e-6,2.5", "a,b,64,2e-6,3.5", "b,a,8,1e-6,"]
    (row,) = imported(tmp_path, "\n".join([*lines, ""])).rows
    assert row.arrays["started"][0, 0, 1] == 2.5
    assert np.isnan(row.arrays["started"][0, 1, 0]) and row.facts.state == "complete"


def test_without_rounds_the_order_is_unknown(tmp_path):
    lines = ["src,dst,size,bandwidth", *complete(), ""]
    (row,) = imported(tmp_path, "\n".join(lines)).rows
    assert row.facts.schedule.order == "unknown"


@pytest.mark.parametrize(
    ("family", "order"),
    [("hp2p", {"unknown", "parallel"}), ("clusterkit", {"unknown"}), ("mpigraph", {"parallel"})],
)
def test_only_a_known_order_is_parallel(family, order):
    """What HP2P prints for all pairs together is a row of its own."""
    found = set()
    for path in sorted((FIXTURES / family).iterdir()):
        if path.name != "README.md":
            rows = import_run([path]).rows
            found |= {row.facts.schedule.order for row in rows}
            assert all(
                row.facts.schedule.order == "unknown"
                for row in rows
                if row.kernel == "exchange" and row.pattern != "world"
            )
    assert found <= order


def test_net_sanitizer_does_not_say_which_pairs_met():
    path = FIXTURES / "net_sanitizer" / "net_sanitizer-readme-verbose.txt"
    assert {row.facts.schedule.order for row in import_run([path]).rows if row.pattern != "world"} == {"unknown"}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("h0,h1,8,1.0,-1,0", "round is not a non-negative integer"),
        ("h0,h1,8,1.0,1.5,0", "round is not a non-negative integer"),
        ("h0,h1,8,1.0,3,soon", "started is not a number of seconds"),
        ("h0,h1,8,1.0", "too few columns behind its pair"),
        ("h0,h1,8,timeout,3,0", "time_us is not a figure above 0"),
    ],
)
def test_a_line_that_cannot_be_read_makes_the_run_incomplete(tmp_path, line, why):
    run = imported(tmp_path, text(rounds(7), line))
    assert run.state == "interrupted"
    assert [one.why for one in run.facts.imported.lines_left_out] == [why]
    (row,) = run.rows
    assert row.facts.schedule.rounds >= 7 and np.asarray(row.arrays["round"])[0, 0, 1] == 0


def test_a_figure_of_the_same_pair_in_another_line_will_do_where_there_are_no_rounds(tmp_path):
    lines = ["src,dst,size,bandwidth", *complete(), "h0,h1,1048576,nan", ""]
    assert imported(tmp_path, "\n".join(lines)).state == "complete"
    assert imported(tmp_path, "\n".join([*lines[:-1], "h0,??,1048576,1.0", ""])).state == "interrupted"


def test_nine_of_ten_figures_that_cannot_be_read_are_too_many(tmp_path):
    lost = [f"{line.rpartition(',')[0]},nan" for line in complete() for _ in range(9)]
    run = imported(tmp_path, "\n".join(["src,dst,size,bandwidth", *complete(), *lost, ""]))
    assert run.state == "interrupted"
    assert run.facts.imported.missing == [PINNED["pairs.csv: 504 of 560 lines"]]


def test_the_hosts_of_unreadable_lines_are_in_the_run(tmp_path):
    lines = ["h8,h0,8", "h9,????,8,1.0,0,0", "slurmstepd: error: node12 lost", "done", "h10,h10,8,1.0,0,0"]
    run = imported(tmp_path, text(rounds(7), *lines))
    assert run.hosts == [*HOSTS, "h8", "h9", "h10"]


def test_unreadable_lines_are_never_a_pass(tmp_path, capsys):
    path = tmp_path / "pairs.csv"
    path.write_text("\n".join(["src,dst,size,bandwidth", *complete(), ""]))
    assert verdict(capsys, path)[0] == 0
    path.write_text("\n".join(["src,dst,size,bandwidth", *complete(), *["@@@@@"] * 1000, ""]))
    code, found = verdict(capsys, path)
    assert (code, found["verdict"]) == (3, "incomplete")
    assert any("1,000 of 1,056 lines cannot be read" in note["text"] for note in found["notes"])


def test_a_host_without_a_readable_figure_is_not_judged(tmp_path, capsys):
    path = tmp_path / "pairs.csv"
    path.write_text("\n".join(["src,dst,size,bandwidth", *complete(), "h8,h0,1048576,nan", "h0,h8,1048576,0", ""]))
    code, found = verdict(capsys, path)
    assert code == 3
    assert any(one["state"] == "NOT JUDGED" and "h8" in one["text"]["name"] for one in found["findings"])


def test_any_number_of_lines_of_others_may_follow_the_end_of_another_format(tmp_path):
    path = tmp_path / "mpigraph.txt"
    content = FAULTY.read_text()
    path.write_text("srun: job 17 queued\n" + content)
    assert import_run([path]).state == "complete"
    path.write_text(content + "\n".join(["0x7f 0x45 0x4c"] * 1000))
    assert import_run([path]).state == "complete"
