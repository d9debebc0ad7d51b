"""What errors about TCP connections say to do."""

from __future__ import annotations

import pytest

from fablint.text.connection_steps import connection_step


@pytest.mark.parametrize(
    ("error", "step"),
    [
        ("no TCP connection to n2 (10.0.0.2) for 16 s: requests are not answered", "firewall that drops packets"),
        ("rank 1 on n2 failed (no TCP connection (10.0.0.2: Connection refused))", "no process listens there"),
        ("no TCP connection to n2 for 16 s: requests fail at once", "no process listens there"),
        ("no TCP connection (10.0.0.2: No route to host)", "ip neigh"),
        ("no TCP connection (10.0.0.2: Network is unreachable)", "ip route"),
    ],
)
def test_each_cause_of_a_missing_connection_has_its_own_step(error, step):
    assert step in connection_step(error)


def test_other_errors_have_none():
    assert connection_step("rank 2 on n2 was ended by signal 9 (Killed)") == ""
    assert connection_step("cannot write a.run/zarr.json: Permission denied: write elsewhere") == ""
