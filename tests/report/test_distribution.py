"""The distribution behind the report's histograms."""

import numpy as np
from hypothesis import given, strategies as st

from fablint.report.survey.row_survey import Distribution


@given(st.lists(st.floats(1e-6, 1.02e-6), min_size=1, max_size=40), st.integers(2, 80))
def test_every_pair_is_in_one_bin_however_narrow_the_bins_are(times, bins):
    distribution = Distribution()
    distribution.add(np.log(np.array(times)), np.zeros(len(times), dtype=np.int64))
    (scope,) = distribution.scopes()
    counts = distribution.histogram(scope, np.geomspace(0.999 * min(times), 1.001 * max(times), bins + 1))
    assert counts.sum() == len(times)
    assert (counts == np.rint(counts)).all()
    assert counts.max() >= 1
