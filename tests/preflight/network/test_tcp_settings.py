"""Settings of TCP."""

from __future__ import annotations

from preflight_help import host, of, outcomes, wrong

from fablint.model.preflight_results import Outcome
from fablint.preflight.checks.network.tcp_settings import TCP_SETTINGS
from fablint.preflight.host import Host
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)


def tuned(name: str, **changed: str) -> Host:
    at = "/proc/sys/net"
    usual = {"core/rmem_max": "268435456", "core/wmem_max": "268435456", "core/netdev_max_backlog": "250000"}
    usual |= {"ipv4/tcp_rmem": "4096\t87380\t134217728", "ipv4/tcp_congestion_control": "cubic"}
    usual |= {f"{'ipv4' if key.startswith('tcp') else 'core'}/{key}": text for key, text in changed.items()}
    return host(name, {f"{at}/{key}": text for key, text in usual.items()})


def test_a_host_with_other_buffers() -> None:
    hosts = [tuned(f"n{number}") for number in range(4)]
    assert wrong(of(TCP_SETTINGS, *hosts)) == []
    odd = tuned("odd", rmem_max="212992", tcp_congestion_control="bbr", tcp_rmem="4096\t131072\t6291456")
    assert {said for *_, said in wrong(of(TCP_SETTINGS, *hosts, odd))} == {
        PINNED["rmem_max 212992, 4 others"],
        PINNED["tcp_congestion_control bbr, 4"],
        PINNED["tcp_rmem 4096 131072 6291456"],
    }
    assert outcomes(of(TCP_SETTINGS, host("n1"))) == [Outcome.SKIP]
