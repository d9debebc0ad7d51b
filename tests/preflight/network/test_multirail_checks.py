"""Rails that share a subnet, and the routes of packets."""

from __future__ import annotations

import json

from net_help import wired
from preflight_help import host, nic, of, outcomes, sample, wrong

from fablint.model.preflight_results import Outcome
from fablint.preflight.checks.network.multirail import ARP_SETTINGS, RP_FILTER, RPF_DROPS
from fablint.preflight.checks.network.routes import ROUTE_RAILS
from fablint.preflight.host import Host
from fablint.snapshot.host_snapshot import Output

CONF = "/proc/sys/net/ipv4/conf"
NETSTAT = "/proc/net/netstat"
SHARED = {"hsn0": "10.253.0.21/16", "hsn1": "10.253.0.22/16"}
APART = {"hsn0": "10.1.0.21/16", "hsn1": "10.2.0.22/16"}
DOCKED = {"wlan0": "192.168.1.20/24", "eth0": "192.168.1.21/24"}
SOURCE_RULES = {
    "routes": [{"dst": "10.253.0.0/16", "dev": "hsn1", "table": "201"}],
    "rules": [{"priority": 100, "src": "10.253.0.22", "table": "201"}],
}


def settings(*names: str, **values: int) -> dict[str, str]:
    """As sysctl-multirail-default.txt has them (all 0), but for `values`, which are those of the NICs `names`."""
    lines = (line.split("=") for line in sample("host/sysctl-multirail-default.txt").splitlines())
    files = {f"/proc/sys/{key.replace('.', '/')}": value for key, value in lines}
    return {**files, **{f"{CONF}/{name}/{key}": str(value) for name in names for key, value in values.items()}}


def rails(addresses: dict[str, str], *names: str, index: int = 1, rules: bool = False, **values: int) -> Host:
    return wired(index, addresses, files=settings(*names, **values), **(SOURCE_RULES if rules else {}))


def test_a_strict_filter_drops_what_is_for_the_second_rail() -> None:
    """As rp-filter-multirail.txt shows it: 100 % loss with 1, none with 0 and 2."""
    message = "strict: drops packets to 10.253.0.22; the route to 10.253.0.0/16 leaves by another NIC"
    for names in (("all",), ("hsn1",), ("all", "hsn1")):
        assert wrong(of(RP_FILTER, rails(SHARED, *names, rp_filter=1))) == [("n1", "hsn1", Outcome.FAIL, message)]
    assert outcomes(of(RP_FILTER, rails(SHARED, "all", rp_filter=2))) == [Outcome.PASS] * 2
    assert outcomes(of(RP_FILTER, rails(SHARED))) == [Outcome.PASS] * 2


def test_the_larger_of_both_settings_is_in_force() -> None:
    files = {**settings("all", rp_filter=1), **settings("hsn0", "hsn1", rp_filter=2)}
    files[f"{CONF}/all/rp_filter"] = "1"
    assert not wrong(of(RP_FILTER, wired(1, SHARED, files=files)))


def test_a_strict_filter_does_no_harm_where_rules_or_subnets_part_the_rails() -> None:
    assert outcomes(of(RP_FILTER, rails(SHARED, "all", rules=True, rp_filter=1))) == [Outcome.PASS] * 2
    highest = {"hsn0": "10.253.255.254/16", "hsn1": "10.253.255.253/16"}
    own = [{**SOURCE_RULES["rules"][0], "src": "10.253.255.253"}]
    files = settings("all", rp_filter=1)
    assert not wrong(of(RP_FILTER, wired(1, highest, routes=SOURCE_RULES["routes"], rules=own, files=files)))
    assert outcomes(of(RP_FILTER, rails(APART, "all", rp_filter=1))) == [Outcome.SKIP]
    assert outcomes(of(RP_FILTER, rails(DOCKED, "all", rp_filter=1))) == [Outcome.SKIP]


def test_where_the_kernel_shows_no_settings_nothing_is_said() -> None:
    for check in (RP_FILTER, ARP_SETTINGS):
        assert outcomes(of(check, wired(1, SHARED))) == [Outcome.SKIP] * 2
        assert outcomes(of(check, host("n1", nic()))) == [Outcome.SKIP]
    silent = wired(
        1, SHARED, files=settings("all", rp_filter=1), commands={"ip-rule": Output(error="no answer in time")}
    )
    assert outcomes(of(RP_FILTER, silent)) == [Outcome.SKIP]


def test_arp_settings() -> None:
    message = "arp_ignore 0, arp_announce 0 with several rails in 10.253.0.0/16"
    assert wrong(of(ARP_SETTINGS, rails(SHARED))) == [("n1", nic, Outcome.WARN, message) for nic in ("hsn0", "hsn1")]
    assert not wrong(of(ARP_SETTINGS, rails(SHARED, "all", arp_ignore=1, arp_announce=2)))
    assert not wrong(of(ARP_SETTINGS, rails(SHARED, "all", arp_filter=1, arp_announce=2)))
    assert wrong(of(ARP_SETTINGS, rails(SHARED, "all", arp_ignore=2, arp_announce=1)))
    assert outcomes(of(ARP_SETTINGS, rails(APART))) == [Outcome.SKIP]


def test_drops_of_the_filter() -> None:
    def drops(count: int) -> str:
        return f"TcpExt: SyncookiesSent IPReversePathFilter\nTcpExt: 0 {count}\nIpExt: InNoRoutes\nIpExt: 0\n"

    def dropping(count: int, window_s: float = 4.0) -> Host:
        return host("n1", {NETSTAT: drops(7)}, later={NETSTAT: drops(7 + count)}, window_s=window_s)

    assert wrong(of(RPF_DROPS, dropping(4))) == [("n1", "", Outcome.WARN, "dropped 4 in 4.0 s")]
    assert outcomes(of(RPF_DROPS, dropping(0))) == [Outcome.PASS]
    assert outcomes(of(RPF_DROPS, dropping(4, 3600.0))) == [Outcome.PASS]
    assert outcomes(of(RPF_DROPS, host("n1"))) == [Outcome.SKIP]


# ------------------------------------------------------------------------------------------------ routes


def cluster(*wrong_hosts: Host) -> list[Host]:
    numbers = {int(wrong_host.name.removeprefix("n")) for wrong_host in wrong_hosts}
    return [*wrong_hosts, *(wired(index) for index in range(1, 9) if index not in numbers)]


def over_management(*partners: int) -> list[dict[str, object]]:
    return [
        {"dst": f"10.1.0.{partner}", "gateway": f"10.9.0.{partner}", "dev": "mgmt0", "flags": []}
        for partner in partners
    ] + [{"dst": "10.9.0.0/16", "dev": "mgmt0", "flags": []}, {"dst": "default", "gateway": "10.9.0.1", "dev": "mgmt0"}]


def test_routes_by_another_nic() -> None:
    one = cluster(wired(3, routes=over_management(5)))
    message = "n5 reached by mgmt0: route 10.1.0.5 via 10.9.0.5 dev mgmt0"
    assert wrong(of(ROUTE_RAILS, *one)) == [("n3", "hsn0", Outcome.FAIL, message)]
    every = cluster(wired(3, routes=over_management(1, 2, 4, 5, 6, 7, 8)))
    message = "n[1-2,4-8] reached by mgmt0: route 10.1.0.1 via 10.9.0.1 dev mgmt0 and 6 more"
    assert wrong(of(ROUTE_RAILS, *every)) == [("n3", "hsn0", Outcome.FAIL, message)]


def test_routes_to_elsewhere_do_not_matter() -> None:
    assert outcomes(of(ROUTE_RAILS, *cluster(wired(3, routes=over_management(77))))) == [Outcome.PASS] * 8
    local = [{"type": "local", "dst": "10.1.0.5", "dev": "lo", "table": "local"}]
    assert outcomes(of(ROUTE_RAILS, *cluster(wired(3, routes=local)))) == [Outcome.PASS] * 8
    assert outcomes(of(ROUTE_RAILS, wired(1))) == [Outcome.SKIP]


def test_a_table_as_the_kernel_prints_it() -> None:
    """Real: a route for one address by mgmt0, an address taken from another, rules of many kinds."""
    said = {
        "ip-addr": sample("host/ip-j-addr-two-rails.json"),
        "ip-route": sample("host/ip-j-route-all-wrong-route.json"),
    }
    files = {**nic("hsn0"), **nic("hsn1")}
    real = host("n11", files, commands={**said, "ip-rule": sample("host/ip-j-rule-many.json")})
    others = [
        wired(index, {"hsn0": f"10.100.0.{index}/16", "hsn1": f"10.100.1.{index}/16"}, rules=both_ways(index))
        for index in (12, 13, 14)
    ]
    message = "n13 reached by mgmt0: route 10.100.0.13 via 10.99.0.13 dev mgmt0"
    found = [one for one in wrong(of(ROUTE_RAILS, real, *others)) if one[0] == "n11"]
    assert found == [("n11", "hsn0", Outcome.FAIL, message)]


def both_ways(index: int) -> list[dict[str, object]]:
    return [{"priority": 100, "src": f"10.100.1.{index}", "table": "201"}]


def test_rails_in_one_subnet_without_rules_leave_by_the_first() -> None:
    def pair(index: int, rules: bool) -> Host:
        addresses = {"hsn0": f"10.253.0.{2 * index}/16", "hsn1": f"10.253.0.{2 * index + 1}/16"}
        own = [{"priority": 100, "src": f"10.253.0.{2 * index + 1}", "table": "201"}] if rules else []
        return wired(index, addresses, routes=SOURCE_RULES["routes"], rules=own)

    message = "leaves by hsn0: both are in 10.253.0.0/16, and no rule separates them"
    assert wrong(of(ROUTE_RAILS, pair(1, False), pair(2, True))) == [("n1", "hsn1", Outcome.WARN, message)]
    docked = wired(2, {"wlan0": "192.168.1.30/24", "eth0": "192.168.1.31/24"})
    assert not wrong(of(ROUTE_RAILS, wired(1, DOCKED), docked))


def test_a_nic_without_the_route_of_its_network() -> None:
    bare = wired(3, commands={"ip-route": json.dumps([{"dst": "default", "gateway": "10.9.0.1", "dev": "mgmt0"}])})
    message = "n[1-2,4-8] reached by mgmt0: route default via 10.9.0.1 dev mgmt0"
    assert wrong(of(ROUTE_RAILS, *cluster(bare))) == [("n3", "hsn0", Outcome.FAIL, message)]
    none = wired(3, commands={"ip-route": "[]"})
    assert wrong(of(ROUTE_RAILS, *cluster(none))) == [("n3", "hsn0", Outcome.FAIL, "no route to n[1-2,4-8]")]
    hole = [{"type": "blackhole", "dst": "10.1.0.5"}]
    assert wrong(of(ROUTE_RAILS, *cluster(wired(3, routes=hole))))[0][3].startswith("n5 not reached: route blackhole")


def test_several_next_hops_and_metrics() -> None:
    """Of two routes for the same the one with the smaller metric is taken; one with several next hops uses each."""
    worse = [{"dst": "10.1.0.0/16", "dev": "mgmt0", "metric": 100}]
    assert not wrong(of(ROUTE_RAILS, *cluster(wired(3, routes=worse))))
    hops = [{"dst": "10.1.0.5", "nexthops": [{"dev": "hsn0"}, {"dev": "hsn1"}]}]
    assert not wrong(of(ROUTE_RAILS, *cluster(wired(3, routes=hops))))


def test_what_cannot_be_followed_is_skipped() -> None:
    virtual = wired(3, rules=[{"priority": 1000, "src": "all", "l3mdev": None}])
    down = wired(4, files={"/sys/class/net/hsn0/operstate": "down"})
    results = of(ROUTE_RAILS, *cluster(virtual, down))
    assert [(result.host, result.message) for result in results if result.outcome is Outcome.SKIP] == [
        ("n3", "it has virtual routers (VRF)"),
        ("n4", "the link is down"),
    ]
    old = wired(3, routes=over_management(5), commands={"ip-rule": Output(error="Operation not supported", status=2)})
    assert len(wrong(of(ROUTE_RAILS, *cluster(old)))) == 1
    garbled = wired(3, commands={"ip-route": "RTNETLINK answers"})
    assert wrong(of(ROUTE_RAILS, *cluster(garbled))) == [
        ("n3", "", Outcome.ERROR, "the output of ip route is not JSON")
    ]
