"""LLDP neighbours of NICs; with real outputs of lldpcli and lldptool."""

from __future__ import annotations

import json

import pytest
from preflight_help import host, nic, of, outcomes, sample, sysroot, wrong

from fablint.model import Switch, Topology
from fablint.model.host_name import NicRef
from fablint.model.preflight_results import Outcome
from fablint.preflight.checks.network.lldp import LLDP_NEIGHBOR, LLDP_PLACEMENT, LLDP_PORT, LLDP_SEVERAL
from fablint.preflight.checks.network.lldp_descriptions import LLDP_DESCRIPTIONS
from fablint.preflight.checks.network.lldp_leaves import LLDP_LEAVES
from fablint.preflight.checks.slingshot.slingshot_addresses import AMA_MATCH, AMA_UNIQUE, AMA_VALID
from fablint.preflight.host import Host
from fablint.snapshot.host_snapshot import Output
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

NONE = "lldpcli-json0-no-neighbours.json"
SEVERAL = "lldpcli-json0-several-neighbours-on-one-port.json"
TWO = "lldpcli-json0-two-ports.json"
MISMATCH = "lldpcli-json0-slingshot-ama-mismatch-on-hsn1.json"
NOT_INSTALLED = Output(error="not installed")
NO_SOCKET = "unable to connect to socket /run/lldpd.socket: No such file or directory"
REFUSED = Output(error=f"2026-01-05T06:20:00 [WARN/control] {NO_SOCKET}", status=1)

CASSINI = {f"/sys/class/cxi/cxi{index}/device/net": [f"hsn{index}"] for index in range(2)}


def lldp(switch: str, port: str, rail: str = "hsn0") -> dict[str, object]:
    """An entry of lldpcli, as a switch with lldpd announces itself."""
    chassis = {"id": [{"type": "mac", "value": "02:fe:00:00:00:15"}], "name": [{"value": switch}]}
    its = {"id": [{"type": "ifname", "value": port}]}
    return {"name": rail, "via": "LLDP", "chassis": [chassis], "port": [its]}


def connected(name: str, *entries: dict[str, object], rails: tuple[str, ...] = ("hsn0",), **values: str) -> Host:
    text = json.dumps({"lldp": [{"interface": list(entries)}]})
    files = {path: content for rail in rails for path, content in nic(rail, **values).items()}
    return host(name, files, commands={"lldpcli": text})


def cluster(count: int = 8, *but: Host) -> list[Host]:
    """n0, n1, ... on s0 and s1, half of them on each, but for some."""
    other = {one.name: one for one in but}
    usual = [connected(f"n{index}", lldp(f"s{2 * index // count}", f"p{index}")) for index in range(count)]
    return [other.get(one.name, one) for one in usual]


def says(output: str | Output, name: str = "n3", **more: str | Output) -> Host:
    return host(name, nic(), commands={"lldpcli": output, **more})


def test_a_missing_neighbour() -> None:
    message = "missing LLDP neighbour, 7 others with one"
    assert wrong(of(LLDP_NEIGHBOR, *cluster(8, says(sample(NONE))))) == [("n3", "hsn0", Outcome.FAIL, message)]
    lldpad = says(NOT_INSTALLED, **{"lldptool/hsn0": ""})
    assert wrong(of(LLDP_NEIGHBOR, *cluster(8, lldpad))) == [("n3", "hsn0", Outcome.FAIL, message)]


def test_a_host_that_has_just_booted_may_not_have_heard_anybody_yet() -> None:
    def booted(uptime: str) -> Host:
        return host("n3", {**nic(), "/proc/uptime": uptime}, commands={"lldpcli": sample(NONE)})

    young = of(LLDP_NEIGHBOR, *cluster(8, booted("40.12 300.50\n")))
    message = "no LLDP neighbour yet, 40 s after the boot, 7 others with one"
    assert wrong(young) == [("n3", "hsn0", Outcome.WARN, message)]
    assert [one[2] for one in wrong(of(LLDP_NEIGHBOR, *cluster(8, booted("90.00 300.50\n"))))] == [Outcome.FAIL]


def test_without_any_neighbour_there_is_no_finding() -> None:
    assert outcomes(of(LLDP_NEIGHBOR, *(says(sample(NONE), f"n{index}") for index in range(4)))) == [Outcome.SKIP] * 4
    assert outcomes(of(LLDP_NEIGHBOR, says(NOT_INSTALLED), host("n2"))) == [Outcome.SKIP] * 2


def silences(*hosts: Host) -> set[tuple[str, str]]:
    """Target and message of NICs without a known neighbour."""
    return {(one.target, one.message) for one in of(LLDP_NEIGHBOR, *hosts) if one.outcome is Outcome.SKIP}


def test_a_silent_switch_is_not_a_daemon_that_does_not_run() -> None:
    runs = "LLDP runs on the host"
    no_neighbour = (
        f"{runs}, but there is no neighbour: the switch does not send LLDP, or the NIC's firmware consumes it"
    )
    silent = [says(sample(NONE), f"n{index}") for index in range(4)]
    assert silences(*silent) == {("hsn0", f"{no_neighbour}; the same on most others")}
    assert silences(silent[0]) == {("hsn0", PINNED["no_neighbour there"].filled(no_neighbour=no_neighbour))}
    stopped = [says(REFUSED, f"n{index}") for index in range(4)]
    assert silences(*stopped) == {("hsn0", f"lldpcli: {NO_SOCKET}")}


def test_a_rail_of_which_the_switch_is_silent() -> None:
    two = [connected(f"n{index}", lldp("s1", f"p{index}", "hsn1"), rails=("hsn0", "hsn1")) for index in range(4)]
    message = "LLDP runs on the host and has a neighbour on hsn1, but none on hsn0; the same on most others"
    assert silences(*two) == {("hsn0", message)}


def test_the_switch_of_the_management_network_is_no_neighbour_of_the_fabric() -> None:
    def managed(name: str, *more: dict[str, object]) -> Host:
        entries = [*more, lldp("mgmt1", f"gi{name}", "eno1")]
        text = json.dumps({"lldp": [{"interface": entries}]})
        return host(name, {**nic("hsn0"), **nic("eno1", speed="1000")}, commands={"lldpcli": text})

    only = [managed(f"n{index}") for index in range(4)]
    runs = "LLDP runs on the host, but its only neighbours are mgmt1 on eno1, not on a NIC of the fabric"
    message = f"{runs}; the same on most others"
    assert silences(*only) == {("hsn0", message)}
    assert outcomes(of(LLDP_SEVERAL, *only)) == [Outcome.SKIP] * 4
    assert outcomes(of(LLDP_PORT, *only)) == [Outcome.SKIP] * 4
    cut = [managed(f"n{index}", lldp("s0", f"p{index}")) for index in range(7)] + [managed("n7")]
    message = "missing LLDP neighbour, 7 others with one"
    assert wrong(of(LLDP_NEIGHBOR, *cut)) == [("n7", "hsn0", Outcome.FAIL, message)]
    place = Topology({"s0": Switch("s0")}, {f"n{index}": "s0" for index in range(8)})
    assert outcomes(of(LLDP_PLACEMENT, *cut, topology=place)) == [Outcome.SKIP, *[Outcome.PASS] * 7]


def test_a_host_that_cannot_see() -> None:
    absent = of(LLDP_NEIGHBOR, *cluster(8, says(NOT_INSTALLED)))
    assert not wrong(absent)
    assert [one.message for one in absent if one.host == "n3"] == [PINNED["lldpcli: not installed; lldptool"]]
    ((_, _, outcome, message),) = wrong(of(LLDP_NEIGHBOR, *cluster(8, says(REFUSED))))
    assert outcome is Outcome.WARN
    assert message == PINNED["LLDP does not work here (lldpcli"].filled(no_socket=NO_SOCKET)
    assert outcomes(of(LLDP_NEIGHBOR, says('{"lldp": [')))[0] is Outcome.ERROR


def test_a_link_that_is_down_has_no_neighbour_and_is_reported_elsewhere() -> None:
    down = host("n3", nic(operstate="down"), commands={"lldpcli": sample(NONE)})
    assert not wrong(of(LLDP_NEIGHBOR, *cluster(8, down)))


def test_neighbours_of_real_daemons() -> None:
    two = host("n1", {**nic("hsn0"), **nic("hsn1")}, commands={"lldpcli": sample(TWO)})
    one = says(NOT_INSTALLED, "n2", **{"lldptool/hsn0": sample("lldptool-tn-hsn0.txt")})
    found = of(LLDP_NEIGHBOR, two, one)
    assert outcomes(found) == [Outcome.PASS] * 3
    assert [one.value for one in found] == [
        "x3000c0r42b0 port ros0p21",
        "x3000c0r42b0 port ros0p22",
        "x9000c3r3b0 port ros0p51",
    ]


def test_several_neighbours() -> None:
    ((name, target, outcome, message),) = wrong(of(LLDP_SEVERAL, *cluster(8, says(sample(SEVERAL)))))
    assert (name, target, outcome) == ("n3", "hsn0", Outcome.WARN)
    assert message.endswith("; 7 others have one")
    everywhere = [says(sample(SEVERAL), f"n{index}") for index in range(4)]
    assert outcomes(of(LLDP_SEVERAL, *everywhere)) == [Outcome.SKIP] * 4
    assert outcomes(of(LLDP_SEVERAL, says(sample(SEVERAL)), host("n2"))) == [Outcome.SKIP] * 2


def test_a_neighbour_that_announces_itself_twice_is_one() -> None:
    twice = connected("n3", lldp("s0", "p3"), lldp("s0", "p3"))
    assert not wrong(of(LLDP_SEVERAL, *cluster(8, twice)))


# ------------------------------------------------------------------------------------------------ the right place


def topology(**changed: str) -> Topology:
    attached = {f"n{index}": f"s{index // 4}" for index in range(8)} | changed
    return Topology({name: Switch(name) for name in {*attached.values(), "s2"}}, attached)


def test_a_host_that_is_connected_to_another_switch() -> None:
    moved = cluster(8, connected("n3", lldp("s2", "p9")))
    message = "connected to s2 port p9, expected s0"
    assert wrong(of(LLDP_PLACEMENT, *moved, topology=topology())) == [("n3", "hsn0", Outcome.FAIL, message)]
    unknown = cluster(8, connected("n3", lldp("new", "p9")))
    assert len(wrong(of(LLDP_PLACEMENT, *unknown, topology=topology()))) == 1


def test_two_cables_that_are_swapped() -> None:
    swapped = cluster(8, connected("n3", lldp("s1", "p7")), connected("n7", lldp("s0", "p3")))
    assert wrong(of(LLDP_PLACEMENT, *swapped, topology=topology())) == [
        ("n3", "hsn0", Outcome.FAIL, PINNED["connected to s1 port p7"]),
        ("n7", "hsn0", Outcome.FAIL, PINNED["connected to s0 port p3"]),
    ]


def test_rails_that_are_swapped() -> None:
    ends = {NicRef.of(f"n{index}", f"hsn{rail}"): f"s{rail}" for index in range(4) for rail in range(2)}
    wiring = Topology(
        {"s0": Switch("s0"), "s1": Switch("s1")}, {f"n{index}": "s0" for index in range(4)}, nic_switch=ends
    )

    def both(index: int, first: int) -> Host:
        entries = [lldp(f"s{first}", f"a{index}", "hsn0"), lldp(f"s{1 - first}", f"b{index}", "hsn1")]
        return connected(f"n{index}", *entries, rails=("hsn0", "hsn1"))

    found = wrong(of(LLDP_PLACEMENT, *(both(index, int(index == 3)) for index in range(4)), topology=wiring))
    assert [(name, target, message.partition(": ")[2]) for name, target, _, message in found] == [
        ("n3", "hsn0", "cables swapped with n3/hsn1"),
        ("n3", "hsn1", "cables swapped with n3/hsn0"),
    ]
    plain = Topology(wiring.switches, wiring.host_switch)  # does not tell the rails apart
    assert not wrong(of(LLDP_PLACEMENT, *(both(index, 0) for index in range(4)), topology=plain))


def test_names_may_be_spelled_otherwise() -> None:
    xname = Topology({"x3000c0r42": Switch("x3000c0r42")}, {"n1": "x3000c0r42"})
    one = host("n1", nic(), commands={"lldpcli": sample("lldpcli-json0-one-port.json")})
    assert outcomes(of(LLDP_PLACEMENT, one, topology=xname)) == [Outcome.PASS]
    assert outcomes(of(LLDP_PLACEMENT, connected("n1", lldp("S0.site.org", "p1")), topology=topology())) == [
        Outcome.PASS
    ]


def test_a_topology_with_names_of_its_own_has_no_finding() -> None:
    own = Topology({"leaf1": Switch("leaf1")}, {f"n{index}": "leaf1" for index in range(8)})
    assert outcomes(of(LLDP_PLACEMENT, *cluster(), topology=own)) == [Outcome.SKIP] * 8
    assert outcomes(of(LLDP_PLACEMENT, *cluster())) == [Outcome.SKIP] * 8
    other = Topology({"s0": Switch("s0")}, {"m1": "s0"})
    assert outcomes(of(LLDP_PLACEMENT, *cluster(), topology=other)) == [Outcome.SKIP] * 8


def test_two_hosts_on_one_port() -> None:
    both = cluster(8, connected("n3", lldp("s0", "p2")))
    assert wrong(of(LLDP_PORT, *both)) == [
        ("n2", "hsn0", Outcome.WARN, "s0 port p2 is also the port of n3/hsn0"),
        ("n3", "hsn0", Outcome.WARN, "s0 port p2 is also the port of n2/hsn0"),
    ]
    assert outcomes(of(LLDP_PORT, *cluster())) == [Outcome.PASS] * 8


def test_hosts_that_share_their_ports_by_design() -> None:
    """As those of a chassis with one NIC for several."""
    shared = [connected(f"n{index}", lldp("s0", f"p{index // 2}")) for index in range(8)]
    assert outcomes(of(LLDP_PORT, *shared)) == [Outcome.SKIP] * 8
    assert outcomes(of(LLDP_PORT, host("n1", nic()))) == [Outcome.SKIP]


# ------------------------------------------------------------------------------------------------ Slingshot


def slingshot(name: str, first: str, second: str, lldpcli: str = MISMATCH) -> Host:
    files = {**nic("hsn0", address=first), **nic("hsn1", address=second)}
    return host(name, files, commands={"lldpcli": sample(lldpcli)})


def test_a_mac_that_is_not_its_ports() -> None:
    """The sample was taken where hsn1, whose MAC ends in 16, was connected to the port whose MAC ends in 1b."""
    found = of(AMA_MATCH, slingshot("n1", "02:00:00:00:00:15", "02:00:00:00:00:16"))
    message = "02:00:00:00:00:16 is connected to x3000c0r42b0 port ros0p27, whose MAC is 02:fe:00:00:00:1b"
    assert outcomes(found) == [Outcome.PASS, Outcome.FAIL]
    assert wrong(found) == [("n1", "hsn1", Outcome.FAIL, message)]
    assert outcomes(of(AMA_MATCH, slingshot("n1", "06:00:00:00:00:15", "0a:00:00:00:00:16", TWO))) == [Outcome.PASS] * 2
    assert outcomes(of(AMA_MATCH, connected("n1", lldp("s0", "p0")))) == [Outcome.SKIP]


def test_an_unassigned_address() -> None:
    burnt_in = "00:40:a6:82:f6:23"
    cassini = host("n1", sysroot("cxi-2rail-good"))
    assert outcomes(of(AMA_VALID, cassini)) == [Outcome.PASS] * 2
    others = [slingshot(f"n{index}", "02:00:00:00:00:15", f"02:00:00:00:01:{index:02x}") for index in range(4)]
    assert wrong(of(AMA_VALID, *others, slingshot("n9", "02:00:00:00:00:17", burnt_in))) == [
        ("n9", "hsn1", Outcome.FAIL, PINNED["burnt_in is not an algorithmic"].filled(burnt_in=burnt_in))
    ]
    new = host("n1", sysroot("cxi-2rail-good", **{"/sys/class/net/hsn1/address": burnt_in}), folders=CASSINI)
    assert wrong(of(AMA_VALID, new)) == [("n1", "hsn1", Outcome.FAIL, f"{burnt_in} is not an algorithmic MAC")]


def test_an_address_of_a_switch_is_no_hosts() -> None:
    others = [slingshot(f"n{index}", f"02:00:00:00:00:{index:02x}", "") for index in range(4)]
    found = wrong(of(AMA_VALID, *others, slingshot("n9", "02:fe:00:00:00:17", "")))
    assert found == [("n9", "hsn0", Outcome.FAIL, PINNED["02:fe:00:00:00:17 is"])]


def test_interfaces_that_are_only_called_like_slingshots() -> None:
    for check in (AMA_VALID, AMA_MATCH, AMA_UNIQUE):
        hosts = [host(f"n{index}", nic(address=f"02:15:00:00:00:{index:02x}")) for index in range(4)]
        assert outcomes(of(check, *hosts)) == [Outcome.SKIP] * 4


def test_an_address_that_two_nics_have() -> None:
    hosts = [slingshot(f"n{index}", f"02:00:00:00:00:{index:02x}", f"02:00:00:00:01:{index:02x}") for index in range(4)]
    twin = slingshot("n9", "02:00:00:00:01:02", "02:00:00:00:01:09")
    assert wrong(of(AMA_UNIQUE, *hosts, twin)) == [
        ("n2", "hsn1", Outcome.FAIL, PINNED["02:00:00:00:01:02 is also"]),
        ("n9", "hsn0", Outcome.FAIL, PINNED["02:00:00:00:01:02 is also the"]),
    ]
    assert outcomes(of(AMA_UNIQUE, *hosts)) == [Outcome.PASS] * 8


def railed(name: str, first: str, second: str) -> Host:
    number = name.removeprefix("n")
    entries = (lldp(first, f"p{number}"), lldp(second, f"q{number}", "hsn1"))
    return connected(name, *entries, rails=("hsn0", "hsn1"))


def test_both_rails_of_a_host_in_one_leaf() -> None:
    hosts = [railed(f"n{index}", "a1" if index < 3 else "a2", "b1" if index < 3 else "b2") for index in range(6)]
    assert wrong(of(LLDP_LEAVES, *hosts)) == []
    assert wrong(of(LLDP_LEAVES, *hosts, railed("n7", "a1", "a1"))) == [
        ("n7", "", Outcome.WARN, PINNED["hsn 0-1 on 1 switch, those"])
    ]
    assert len(wrong(of(LLDP_LEAVES, railed("n7", "a1", "a1"), railed("n8", "a1", "b1")))) == 2  # two hosts
    assert wrong(of(LLDP_LEAVES, railed("n7", "a2", "b2"), railed("n8", "a1", "b1"))) == []
    one_leaf = [railed(f"n{index}", "a1", "a1") for index in range(6)]
    assert wrong(of(LLDP_LEAVES, *one_leaf)) == []


def test_a_neighbour_that_is_a_host() -> None:
    hosts = [railed(f"n{index}", "a1", "b1") for index in range(6)]
    ((name, target, outcome, message),) = wrong(of(LLDP_LEAVES, *hosts, railed("n7", "n2", "b1")))
    assert (name, target, outcome) == ("n7", "hsn0", Outcome.WARN)
    assert message == PINNED["connected to the host n2"]
    back_to_back = [connected("n1", lldp("n2", "hsn0")), connected("n2", lldp("n1", "hsn0"))]
    assert wrong(of(LLDP_LEAVES, *back_to_back)) == []


# ------------------------------------------------------------------------------------------------ descriptions


def described(index: int, text: str) -> Host:
    entry = lldp("s0", f"p{index}")
    port = {**entry["port"][0], "descr": [{"value": text}]}  # type: ignore[index]
    return connected(f"n{index}", {**entry, "port": [port]})


@pytest.mark.parametrize("form", ["n{} hsn0", "to n{}-hsn0", "n{}.site.org:hsn0", "[server] n{} (rack 7)"])
def test_a_description_that_names_another_host(form: str) -> None:
    hosts = [described(index, form.format({3: 4, 4: 3}.get(index, index))) for index in range(12)]
    names = [(name, outcome) for name, _, outcome, _ in wrong(of(LLDP_DESCRIPTIONS, *hosts))]
    assert names == [("n3", Outcome.WARN), ("n4", Outcome.WARN)]


@pytest.mark.parametrize("form", ["Ethernet1/{}", "Not received", "", "rack 7 node {}"])
def test_descriptions_without_hosts_are_skipped(form: str) -> None:
    results = of(LLDP_DESCRIPTIONS, *(described(index, form.format(index)) for index in range(8)))
    assert outcomes(results) == [Outcome.SKIP] * 8


def test_descriptions_of_another_order_are_no_finding() -> None:
    hosts = [described(index, f"n{(index + 1) % 8} hsn0") for index in range(8)]
    assert outcomes(of(LLDP_DESCRIPTIONS, *hosts)) == [Outcome.SKIP] * 8
