"""OSU text of releases 4 to 7: the right numbers, with the lines they stand on, whatever stands between them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings, strategies as st
from import_cases import text_of, texts

from fablint.errors import UsageError
from fablint.store.importing import parse_osu

ALL = texts("osu")
QUIET = "osu_latency-7.4-openmpi4.1.4-np2-quiet.txt"


def only(name):
    """The one table of a file."""
    (table,) = parse_osu(text_of("osu", name)).tables
    return table


@pytest.mark.parametrize("name", ALL)
def test_every_line_of_figures_is_found_with_its_numbers(name):
    """Against a reader that knows nothing of headers: lines that begin with figures, split at blanks."""
    text = text_of("osu", name)
    expected = {
        number: [float(word) for word in line.split() if word not in ("Pass", "passed")]
        for number, line in enumerate(text.split("\n"), 1)
        if re.match(r" *[0-9.]+ +[0-9.]", line)
    }
    found = {
        row.line: [*([] if row.size is None else [row.size]), *row.values]
        for table in parse_osu(text).tables
        for row in table.rows
        if table.title != "OSU MPI Init Test"
    }
    assert found == expected


@pytest.mark.parametrize("name", ALL)
def test_columns_are_as_many_as_the_values_and_files_are_whole(name):
    parsed = parse_osu(text_of("osu", name))
    assert not parsed.truncated
    assert all(len(row.values) == len(table.columns) for table in parsed.tables for row in table.rows)


def test_title_version_and_facts_of_the_header():
    table = only("osu_put_latency-7.4-openmpi4.1.4-np2-fence-z.txt")
    assert (table.title, table.version, table.line) == ("OSU MPI_Put Latency Test", "7.4", 1)
    assert table.facts == {
        "Window creation": "MPI_Win_create",
        "Synchronization": "MPI_Win_fence",
        "Datatype": "MPI_CHAR",
    }
    assert table.columns == ("Latency (us)", "P50 Tail Lat(us)", "P90 Tail Lat(us)", "P99 Tail Lat(us)")
    assert table.column("P99 Tail Lat(us)")[:2] == (3.37, 5.44)


def test_validation_is_a_verdict_and_not_a_column_of_figures():
    table = only("osu_mbw_mr-7.4-openmpi4.1.4-np2-c-z.txt")
    assert table.columns == ("MB/s", "Messages/s", "P50 Tail BW(MB/s)", "P90 Tail BW(MB/s)", "P99 Tail BW(MB/s)")
    assert {row.valid for row in table.rows} == {True}
    failed = text_of("osu", "osu_mbw_mr-7.4-openmpi4.1.4-np2-c-z.txt").replace(
        "              Pass", "              Fail", 1
    )
    assert [row.valid for row in parse_osu(failed).tables[0].rows][:2] == [False, True]


def test_release_7_1_prints_its_title_twice_and_the_datatype_behind_the_columns():
    parsed = parse_osu(text_of("osu", "osu_mbw_mr-7.1-slingshot-64nodes.txt"))
    (table,) = parsed.tables
    assert (table.version, table.facts["pairs"], table.facts["Datatype"]) == ("7.1", "1024", "MPI_CHAR")
    assert table.rows[-1].values == (5457474.28, 1301163.26)
    foreign = {one.text: one.line for one in parsed.foreign}
    assert foreign["Number of nodes: 64"] == 2
    assert foreign["cxi7 rx 115884598"] == 49


def test_one_file_of_many_tables_as_the_latency_test_writes_it():
    parsed = parse_osu(text_of("osu", "osu_latency-4.4.1-comet-21.txt"))
    assert len(parsed.tables) == 38
    assert {(table.title, table.version) for table in parsed.tables} == {("OSU MPI Latency Test", "4.4.1")}
    first = parsed.tables[0]
    assert (first.rows[0].size, first.rows[0].values) == (0, (1.04,))
    # the hosts of a table stand in the line above its title
    launch = parsed.launches[first.launch]
    assert (launch.line, launch.hosts) == (first.line - 1, ("comet-21-01", "comet-21-02"))
    assert (len(parsed.launches), parsed.foreign) == (153, ())


def test_several_datatypes_are_several_tables_of_one_program():
    tables = parse_osu(text_of("osu", "osu_latency-7.4-openmpi4.1.4-np2-c-Tall.txt")).tables
    assert [table.facts["Datatype"] for table in tables] == ["MPI_CHAR", "MPI_INT", "MPI_FLOAT"]
    assert [table.rows[0].size for table in tables] == [1, 4, 4]
    assert {table.title for table in tables} == {"OSU MPI Latency Test"}


def test_facts_before_the_title_belong_to_it():
    several = text_of("osu", QUIET) + text_of("osu", "osu_latency_mt-7.4-openmpi4.1.4-np2.txt")
    one, threads = parse_osu(several).tables
    assert one.facts == {"Datatype": "MPI_CHAR"}
    assert (threads.facts["Number of Sender threads"], threads.facts["Number of Receiver threads"]) == ("1", "2")


def test_tests_without_sizes():
    barrier, init = only("osu_barrier-7.4-openmpi4.1.4-np2.txt"), only("osu_init-7.4-openmpi4.1.4-np2.txt")
    assert (barrier.rows[0].size, barrier.rows[0].values) == (None, (0.41, 0.41, 0.41, 1000.0))
    assert dict(zip(init.columns, init.rows[0].values, strict=True)) == {
        "nprocs": 2,
        "min (ms)": 257,
        "max (ms)": 263,
        "avg (ms)": 260,
    }


def test_a_column_without_a_name_is_kept():
    table = only("osu_get_mbw-7.4ext-openmpi4.1.4-np2.txt")
    assert table.columns == ("Bandwidth (MB/s)", "unnamed 1")
    assert table.rows[0].values == (41.22, 41220911883860.09)


VARIED = """# OSU MPI Multiple Bandwidth / Message Rate Test v7.4
# [ pairs: 2 ] [ window size: varied ]

# Uni-directional Bandwidth (MB/sec)
# Datatype: MPI_CHAR.
#                 1           2
1              1.25        2.50
2              2.50        5.00

# Message Rate Profile
#                 1           2
1        1250000.00  2500000.00
2        1250000.00  2500000.00
"""


def test_the_matrices_of_varied_windows_are_distinguished():
    bandwidth, rate = parse_osu(VARIED).tables
    assert bandwidth.windows == rate.windows == (1, 2)
    assert bandwidth.columns == ("MB/s, window 1", "MB/s, window 2")
    assert rate.columns == ("Messages/s, window 1", "Messages/s, window 2")
    assert bandwidth.rows[1].values == (2.5, 5.0)
    assert rate.rows[0].values == (1250000.0, 2500000.0)
    assert rate.facts["window size"] == "varied"


def test_lines_of_others_between_the_figures_are_named_and_change_nothing():
    lines = text_of("osu", QUIET).splitlines()
    noise = ["slurmstepd: error: step killed", "1 two", "12", "1 2 3 4", "# a remark"]
    mixed = parse_osu("\n".join([*lines[:8], *noise, *lines[8:], ""]))
    assert [row.values for row in mixed.tables[0].rows] == [row.values for row in only(QUIET).rows]
    assert {one.text for one in mixed.foreign} >= set(noise[:4])
    assert [one.line for one in mixed.foreign][:2] == [9, 10]


@pytest.mark.parametrize("kept", range(1, 28))
def test_a_row_that_was_cut_off_is_no_row(kept):
    """Whatever is left of the last line, its number is not taken for another, smaller one."""
    head, last = text_of("osu", QUIET).rstrip("\n").rsplit("\n", 1)
    parsed = parse_osu(f"{head}\n{last[:kept]}")
    assert len(parsed.tables[0].rows) == 22
    assert [one.text.strip() for one in parsed.foreign] == [last[:kept].strip()]


def test_a_last_line_without_an_end_counts_where_it_is_whole():
    parsed = parse_osu(text_of("osu", QUIET).rstrip("\n"))
    assert (len(parsed.tables[0].rows), parsed.truncated) == (23, False)


def test_figures_that_are_none_are_missing():
    text = (
        "# OSU MPI Bandwidth Test v7.4\n# Size      Bandwidth (MB/s)\n1                       -nan\n2    -\n4    inf\n"
    )
    assert parse_osu(text).tables[0].column("Bandwidth (MB/s)") == (None, None, None)


@pytest.mark.parametrize("text", ["", "\n", "hello\n1 2\n", "# OSU MPI Latency Test v7.4\n", "\x00\x01"])
def test_a_text_without_a_table_is_refused_in_one_line(text):
    with pytest.raises(UsageError, match="the text has no table of an OSU program: give the output of such a program"):
        parse_osu(text)


@settings(max_examples=150)
@given(st.sampled_from(ALL), st.data())
def test_no_damage_makes_it_fail(name, data):
    """Cut, doubled, overwritten: a table or one UsageError, and every line accounted for at most once."""
    text = text_of("osu", name)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    put = data.draw(
        st.text(max_size=30) | st.sampled_from([text[start:end] * 2, "\n# ", "9" * 5000, "1e999 ", "# Size"])
    )
    try:
        parsed = parse_osu(text[:start] + put + text[end:])
    except UsageError:
        return
    lines = [row.line for table in parsed.tables for row in table.rows] + [one.line for one in parsed.foreign]
    assert len(lines) == len(set(lines))


@given(st.text())
def test_no_text_makes_it_fail(text):
    for maybe in (text, f"# OSU MPI Latency Test v7.4\n# Size   Latency (us)\n{text}"):
        try:
            parse_osu(maybe)
        except UsageError as error:
            assert "\n" not in str(error)
