"""Many hosts with one cause are one finding about the cause, and none of them is at fault for it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from fleets import fleet, judged, rewritten
from preflight_help import host, nic

from fablint.model import State, Switch, Topology
from fablint.model.preflight_results import Fitness, Outcome
from fablint.preflight import Fleet, Host, judge
from fablint.preflight.checks.network.links import LINK_MTU, LINK_SPEED
from fablint.preflight.checks.network.lldp import LLDP_NEIGHBOR
from fablint.report import fitness_table
from fablint.text.evidence_sentences import sentences
from fablint.text.fitness_findings import findings
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

HOSTS = [f"r{rack}n{number}" for rack in range(1, 9) for number in range(1, 17)]


def heard(switch: str) -> str:
    """What `lldpcli -f json0 show neighbors` prints of one neighbour; nothing of a silent switch."""
    chassis = [{"name": [{"value": switch}], "id": [{"type": "mac", "value": "02:00:00:00:00:01"}]}]
    port = [{"id": [{"type": "ifname", "value": "p1"}], "descr": [{"value": "p1"}]}]
    interfaces = [{"name": "hsn0", "via": "LLDP", "chassis": chassis, "port": port}] if switch else []
    return json.dumps({"lldp": [{"interface": interfaces}]})


def racked(silent: Sequence[str] = (), slow: Sequence[str] = (), mtu: Sequence[str] = ()) -> list[Host]:
    """128 hosts in 8 racks, each with a switch; of `silent` ones the switch is not heard."""
    found = []
    for name in HOSTS:
        files = nic(speed="100000" if name in slow else "200000", mtu="1500" if name in mtu else "9000")
        switch = "" if name in silent else f"leaf{name[1]}"
        found.append(host(name, {**files, "/proc/uptime": "99999.0 1.0"}, commands={"lldpcli": heard(switch)}))
    return found


def judged_by(hosts: Sequence[Host], topology: Topology | None = None) -> Fitness:
    return judge(Fleet(list(hosts), topology=topology), [LINK_SPEED, LINK_MTU, LLDP_NEIGHBOR])


def test_a_switch_with_lldp_off_is_one_finding_and_no_host_is_unfit() -> None:
    rack = [name for name in HOSTS if name.startswith("r3")]
    fitness = judged_by(racked(silent=rack))
    assert fitness.unfit == {} and fitness.exit_code == 0
    (one,) = findings(fitness)
    assert (one.state, one.name) == (State.SUSPECT, "rack r3")
    assert "common to 16 hosts of rack r3: r3n[1-16]" in sentences(one.evidence)
    assert fitness_table(fitness, 120).count("WARN") == 1


def test_with_a_topology_the_switch_is_named() -> None:
    rack = [name for name in HOSTS if name.startswith("r3")]
    switches = {f"leaf{number}": Switch(f"leaf{number}") for number in range(1, 9)}
    topology = Topology(switches, {name: f"leaf{name[1]}" for name in HOSTS})
    (one,) = findings(judged_by(racked(silent=rack), topology))
    assert (one.component, one.name) == ("switch", "leaf3")


def test_a_slower_switch_is_no_fault_of_its_hosts() -> None:
    rack = [name for name in HOSTS if name.startswith("r5")]
    fitness = judged_by(racked(slow=rack))
    (one,) = findings(fitness)
    assert (one.state, one.component, one.name) == (State.SUSPECT, "switch", "leaf5")
    assert fitness.unfit == {}


def test_single_hosts_and_hosts_here_and_there_stay_faults_of_their_own() -> None:
    for some in (["r2n7"], ["r1n1", "r2n5", "r4n9", "r6n13"]):
        fitness = judged_by(racked(slow=some))
        assert set(fitness.unfit) == set(some)
        (one,) = findings(fitness)
        assert (one.state, one.component) == (State.FAULT, "nic")


def test_a_wrong_setting_of_a_rack_is_one_finding_and_its_hosts_are_not_measured() -> None:
    rack = [name for name in HOSTS if name.startswith("r7")]
    fitness = judged_by(racked(mtu=rack))
    assert set(fitness.unfit) == set(rack)
    (one,) = findings(fitness)
    assert (one.state, one.component, one.name) == (State.FAULT, "config", "rack r7")


def test_another_image_is_one_finding_of_all_that_it_changes() -> None:
    def older(files: dict[str, str], links: dict[str, str]) -> None:
        rewritten("5.14.0-427", "5.14.0-362", "osrelease")(files, links)
        files["/proc/sys/kernel/numa_balancing"] = "1"
        rewritten('"', '"Old ', "os-release")(files, links)

    hosts = fleet({"ndr": 40}, {f"ndr{number}": older for number in range(1, 5)})
    for one in hosts:
        one.snapshot.files["proc"]["sys"]["kernel"].setdefault("numa_balancing", "0")  # type: ignore[index]
    fitness = judged(hosts)
    (found,) = findings(fitness)
    assert found.name.startswith("image 5.14.0-362")
    assert "host.kernel" in sentences(found.evidence) and "host.numa.balancing" in sentences(found.evidence)
    assert fitness_table(fitness, 120).count("WARN") == 1


def test_what_all_hosts_share_has_no_cause_among_them() -> None:
    rack = set(HOSTS)
    fitness = judged_by(racked(silent=sorted(rack)))
    assert findings(fitness) == []
    assert {one.cause for one in fitness.results} == {""}


def test_silent_hosts_with_one_reason_are_one_finding() -> None:
    fitness = replace(
        judged_by(racked()), silent={f"x{number}": "Permission denied (publickey)" for number in range(9)}
    )
    (one,) = findings(fitness)
    assert (one.state, one.name) == (State.FAULT, "x[0-8]")
    assert sentences(one.evidence) == PINNED["9 hosts give no answer: Permission"]


def test_results_keep_every_host() -> None:
    rack = [name for name in HOSTS if name.startswith("r3")]
    fitness = judged_by(racked(silent=rack))
    marked = [one for one in fitness.results if one.cause]
    assert {one.host for one in marked} == set(rack)
    assert {(one.outcome, one.cause) for one in marked} == {(Outcome.WARN, "rack r3")}
