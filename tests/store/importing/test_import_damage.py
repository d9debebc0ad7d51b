"""Whatever a file holds: a run whose numbers can be true, or one UsageError of one line."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from import_cases import COMET, NETSAN_VERBOSE, files
from peer_layouts import LAYOUTS

from fablint.errors import UsageError
from fablint.store import import_run
from fablint.store.importing.formats import FORMATS

pytestmark = pytest.mark.long  # many damaged files

REAL = files("mpigraph", "hp2p", "imb", "clusterkit", "sion", "nccl_tests", "linktest", "nvbandwidth")
OUTSIDE = [path for path in files("outside") if path.name[:2] in ("10", "20", "21", "45", "51", "52", "56")]
SMALL = [render(np.full((4, 4), 1e-4)) for render, *_ in LAYOUTS.values()]
SEEDS = [*(path.read_bytes() for path in (*REAL, *OUTSIDE, NETSAN_VERBOSE)), COMET.read_bytes()[:3000], *SMALL]
POISON = [
    b"9" * 5000,
    b"-1",
    b"0",
    b"1e999",
    b"nan",
    b"\xff\xfe",
    b"\0",
    b"\t",
    b"\n",
    b"999999999999999999",
    b'"',
    b"][",
]

quick = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def imported(folder, data):
    """Import `data`; checks what there is, or the error."""
    path = folder / "damaged.out"
    path.write_bytes(data)
    try:
        run = import_run([path])
    except UsageError as error:
        assert "\n" not in str(error) and str(path) in str(error)
        return
    for row in run.rows:
        measured = np.asarray(row.arrays["count"]) > 0
        assert measured.any()
        for statistic in row.statistics:
            times = np.asarray(row.arrays[f"time_{statistic}"])
            assert not (times <= 0).any() and not np.isinf(times).any()
            assert np.isnan(times[~measured]).all()


@pytest.mark.parametrize("seed", range(len(SEEDS)))
@quick
@given(data=st.data())
def test_no_damage_makes_it_fail(tmp_path, seed, data):
    text = SEEDS[seed]
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + data.draw(st.sampled_from([0, 1, 30, 10**6])))))
        put = data.draw(st.sampled_from(POISON) | st.binary(max_size=20) | st.just(text[start:end] * 2))
        text = text[:start] + put + text[end:]
    imported(tmp_path, text)


@quick
@given(data=st.binary(max_size=400))
def test_no_bytes_make_it_fail(tmp_path, data):
    for head in (
        b"",
        b"sion",
        b"src,dst,size,time\n",
        b"START mpiGraph v1.5\n",
        b"# Benchmarking PingPong\n",
        b'{"latency":',
    ):
        imported(tmp_path, head + data)


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
@quick
@given(data=st.binary(max_size=300), text=st.text(max_size=300))
def test_no_reader_fails_on_what_is_not_its_own(form, data, text):
    """A reader that was called by mistake."""
    for maybe in (data, text.encode()):
        try:
            form.read(maybe, ())
        except UsageError as error:
            assert "\n" not in str(error)


def numbers_doubled(text):
    """Every digit twice: counts of ranks, sizes and steps that fit nothing."""
    return bytes(byte for one in text for byte in ([one, one] if chr(one).isdigit() else [one]))


@pytest.mark.parametrize("seed", range(len(SEEDS)))
def test_numbers_that_fit_nothing(tmp_path, seed):
    imported(tmp_path, numbers_doubled(SEEDS[seed]))
