"""Logs of LinkTest 1.2 and 2.x: the right numbers, in seconds and bytes/s."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st
from import_cases import text_of, texts

from fablint.errors import UsageError
from fablint.store.importing import parse_linktest
from fablint.store.importing.linktest_cells import read_linktest

ALL = texts("linktest")
MIB, GIB = 2**20, 2**30


def log(name):
    return parse_linktest(text_of("linktest", f"linktest-{name}.txt"))


def test_the_published_lines_of_release_2():
    found = log("2.x-step-lines")
    (step,) = found.steps
    assert (step.line, step.number, step.serial) == (1, 3, False)
    assert (step.min.seconds, step.min.rate) == pytest.approx((11.64910e-6, 20.9579 * GIB))
    assert (step.avg.seconds, step.avg.rate) == pytest.approx((11.68455e-6, 20.8943 * GIB))
    assert (step.max.seconds, step.max.rate) == pytest.approx((11.77200e-6, 20.7391 * GIB))
    assert step.bisection == pytest.approx(83.5783 * GIB)
    (total,) = found.aggregated
    assert (total.avg.seconds, total.bisection) == pytest.approx((11.68784e-6, 83.5584 * GIB))
    assert found.elapsed == pytest.approx((24.52618e-3,))
    assert found.foreign == ()


@pytest.mark.parametrize("pairs", [1, 4, 16, 1000])
def test_the_number_of_ranks_of_release_2_is_that_of_its_sums(pairs):
    text = text_of("linktest", "linktest-2.x-step-lines.txt")
    for per_pair, total in ((20.8943, 83.5783), (20.8884, 83.5584)):
        text = text.replace(f"{total} GiB/s", f"{per_pair * pairs:.4f} GiB/s")
    assert len(read_linktest(text.encode(), ()).rank_names) == 2 * pairs
    assert len(read_linktest(text.encode(), [f"n{rank}" for rank in range(2 * pairs)]).rank_names) == 2 * pairs


def test_parallel_steps_of_release_1_divide_by_mib():
    found = log("1.2p1-np4.stdout")
    assert [step.number for step in found.steps] == [1, 2, 3]
    last = found.steps[-1]
    assert (last.line, last.avg.seconds, last.avg.rate) == pytest.approx((33, 3.920e-6, 249.12 * MIB))
    assert last.avg.rate == pytest.approx(1024 / 3.920e-6, rel=1e-3)  # a message of 1024 bytes: it is MiB/s indeed
    assert found.facts["Message length"] == "1024 Bytes"
    assert found.facts["Number of Iter. (Warmup)"] == "5"
    assert found.timings["work"] == 0.005491


def test_serial_steps_list_their_pairs():
    found = log("1.2p1-serial-np4.stdout")
    assert [step.serial for step in found.steps] == [True] * 3
    assert found.steps[1].max.seconds == pytest.approx(3.995e-6)
    assert [(pair.src, pair.dst) for pair in found.pairs][:4] == [(0, 3), (1, 2), (2, 1), (3, 0)]
    assert found.pairs[-1].figure.seconds == pytest.approx(3.66343e-6)


def test_results_and_slowest_pairs():
    found = log("1.2p1-np8.stdout")
    assert found.results["Min Time"].seconds == pytest.approx(9.23214520e-6)
    assert found.results["Max Time"].rate == pytest.approx(96.95 * MIB)
    assert found.results["Avg Time Stest"].seconds == pytest.approx(7.49268730e-6)
    assert len(found.slowest) == 8
    worst = found.slowest[0]
    assert (worst.line, worst.src, worst.dst) == (48, 3, 4)
    assert (worst.first.seconds, worst.second.seconds) == pytest.approx((10.0732e-6, 7.4519e-6))


@pytest.mark.parametrize("name", ALL)
def test_every_line_with_a_figure_is_read(name):
    """What is left over holds no bandwidth."""
    assert not [one for one in parse_linktest(text_of("linktest", name)).foreign if "B/s" in one.text]


@pytest.mark.parametrize("kept", range(1, 160, 3))
def test_a_cut_last_line_gives_no_figure_that_was_not_printed(kept):
    text = text_of("linktest", "linktest-2.x-step-lines.txt")
    start = text.index("Aggregated")
    whole, found = log("2.x-step-lines"), parse_linktest(text[: start + kept])
    assert found.steps == whole.steps
    assert [replace(one, bisection=whole.aggregated[0].bisection) for one in found.aggregated] in (
        [],
        [*whole.aggregated],
    )
    assert bool(found.aggregated) != bool(found.foreign)


@pytest.mark.parametrize("text", ["", "hello\n", "RESULT: none\n"])
def test_a_text_of_something_else_is_refused(text):
    with pytest.raises(UsageError, match="the text has no log of LinkTest"):
        parse_linktest(text)


@settings(max_examples=100)
@given(st.sampled_from(ALL), st.data())
def test_no_damage_makes_it_fail(name, data):
    text = text_of("linktest", name)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    put = data.draw(st.text(max_size=30) | st.sampled_from([text[start:end] * 2, "\nlinktest: ", "9" * 5000, "->"]))
    try:
        parse_linktest(text[:start] + put + text[end:])
    except UsageError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("line", "carrier"),
    [
        ("linktest: Virtual-Cluster Implementation: tcp\n", {"transport": "tcp"}),
        ("Virtual-Cluster Implementation: UCP\n", {"transport": "ucx"}),
        ("Virtual-Cluster Implementation: psm2\n", {"transport": "ofi", "ofi_provider": "psm2"}),
        ("Virtual-Cluster Implementation: pigeons\n", {"transport": "pigeons"}),
        ("", {"transport": "unknown"}),
    ],
)
def test_a_log_of_release_2_states_the_transport(line, carrier):
    imported = read_linktest((line + text_of("linktest", "linktest-2.x-step-lines.txt")).encode(), ())
    assert imported.bodies
    assert all(carrier.items() <= body.facts.items() for body in imported.bodies)


def test_release_1_has_mpi_only():
    imported = read_linktest(text_of("linktest", "linktest-1.2p1-np4.stdout.txt").encode(), ())
    assert {body.facts["transport"] for body in imported.bodies} == {"mpi"}


def steps_of_2(steps, iterations):
    """The lines of the steps of LinkTest 2, as its log has them after its head."""
    text, left = "", steps * iterations
    for at in range(left):
        left -= 1
        figures = "min: 11.6 us ( 20.9 GiB/s) avg: 11.7 us ( 20.8 GiB/s) max: 11.8 us ( 20.7 GiB/s)"
        text += f"Parallel Results for step {at % steps + 1}: {figures} avg. bisection bw: 83.5 GiB/s\n"
        text += (
            f"Timing Summary: Elapsed time: {8 * (at + 1)} ms ( 8 ms/step). Estimated time remaining for iteration: "
        )
        text += f"{8 * (left % steps)} ms ({left % steps} steps). Estimated total time remaining: {8 * left} ms\n"
    return text


@pytest.mark.parametrize("iterations", [1, 3])
@pytest.mark.parametrize("steps", [3, 7])
def test_a_second_log_without_its_head_is_refused(steps, iterations):
    text = steps_of_2(steps, iterations)
    assert len(parse_linktest(text).steps) == steps * iterations
    with pytest.raises(UsageError, match="a second run of LinkTest"):
        parse_linktest(text * 2)
