"""A firewall between two hosts: what a rank reports whose library requests a TCP connection in vain."""

from __future__ import annotations

import re
import subprocess

import pytest

from fablint.system import System
from tested_mpis import built_engine, tested_mpis as selected_mpis

TOKEN = "0123456789abcdef"
LIMIT_S = 60

_BLOCKED = """set -e
transport=$1
mount -t sysfs sysfs /sys  # where UCX looks for interfaces
ip link set lo up
for part in "control 10.9.7.1" "data 10.9.8.1"; do
    set -- $part
    ip link add $1 type veth peer name $1-peer
    ip address add $2/24 dev $1
    ip link set $1 up
    ip link set $1-peer up
done
nft add table inet blocked
nft 'add chain inet blocked out { type filter hook output priority 0; }'
nft 'add rule inet blocked out ip daddr 10.9.8.1 tcp flags syn / syn,ack ACTION'
for rank in 1 0; do
    "$ENGINE" --rendezvous 10.9.7.1:20000 --ranks 2 --rank $rank --watchdog 8 \
        latency --transport $transport --device data --sizes 8 &
done
wait
"""


@pytest.mark.long
def test_a_library_that_requests_a_connection_in_vain_is_not_waited_for() -> None:
    """libfabric repeats a request without an answer, and at once one that is refused; UCX waits in one call."""
    blocked = subprocess.run(["unshare", "-rnm", "nft", "add table inet blocked"], capture_output=True, text=True)
    if blocked.returncode:
        pytest.skip(f"a network name space cannot block a connection: {blocked.stderr}")
    engine = built_engine(selected_mpis()[0]).path
    environ = {**System().environ, "FABLINT_TOKEN": TOKEN, "FI_TCP_IFACE": "data", "UCX_TLS": "tcp"}
    environ["ENGINE"] = str(engine)
    of_rank_0 = r"rank 1 \(.*\), round 0, partner 0"
    of_either = (
        r"rank [01] \(.*\), round 0, partner [01]"  # both ranks request a connection: the first report ends both
    )
    unanswered = r"no TCP connection to \S+ \(10.9.8.1\) for \d+ s: requests are not answered"
    cases = (
        ("ofi", "drop", f"{of_rank_0}: {unanswered}"),
        ("ofi", "reject with tcp reset", rf"{of_rank_0}: no TCP connection to \S+ for \d+ s: requests fail at once"),
        ("ucx", "drop", f"{of_either}: {unanswered}"),
        ("ucx", "reject with tcp reset", rf"{of_either}: UCX: no endpoint: .* \(Connection refused\)"),
    )
    runs = [
        subprocess.Popen(
            ["unshare", "-rnm", "sh", "-c", _BLOCKED.replace("ACTION", action), "sh", transport],
            stderr=subprocess.PIPE,
            text=True,
            env=environ,
        )
        for transport, action, _ in cases
    ]
    for (_, _, report), run in zip(cases, runs, strict=True):
        said = run.communicate(timeout=LIMIT_S)[1]
        if re.search("install (libfabric|UCX)|headers of", said):
            pytest.skip(said)
        assert re.search(f"failed: {report}", said), said
