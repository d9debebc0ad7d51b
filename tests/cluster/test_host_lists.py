"""Hostfiles and hosts of jobs: each format as its own launcher reads it, and nothing but UsageError for the rest."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from fablint import cluster
from fablint.cluster import find_hosts, unresolvable
from fablint.cluster.host_names import unfold
from fablint.cluster.hostfile import parse_hostfile
from fablint.cluster.schedulers.slurm_job import counted, pairs
from fablint.errors import UsageError
from fablint.model import HostState, State
from fablint.model.names import fold
from fablint.text.evidence_sentences import sentences
from fablint.workflows import fabric_discovery
from pinned import pinned_by

PINNED = pinned_by("cluster.toml", __file__)

ADDRESSES = ("2001:db8:c083:150e::3000:1", "2001:db8:c083:150e::3000:2")
FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.mark.parametrize(
    ("text", "room"),
    [
        ("n1 slots=4\nn2 slots=2 max_slots=8\n", {"n1": 4, "n2": 2}),
        ("n1:4\nn2:1\n", {"n1": 4, "n2": 1}),
        ("# both\n\nn1\n  n2 # second\n", {"n1": 0, "n2": 0}),
        ("n1\nn1\nn2\n", {"n1": 2, "n2": 1}),
        ("nid[001-003]\n", {"nid001": 0, "nid002": 0, "nid003": 0}),
        ("n2.site.org\tslots=3\n", {"n2.site.org": 3}),
        ("", {}),
        ("n1 max-slots=8 slots=4\nn2 slots = 2\nn3 max_slots=4\n", {"n1": 4, "n2": 2, "n3": 0}),
        ("n1 slots-max=8 cpus=4\nn2 count= 3 max_slots = 9\nn3 cpu =1\n", {"n1": 4, "n2": 3, "n3": 1}),
        ("n1 slots=0\nn2 slots=2\nn3:0\n", {"n2": 2}),
        ("n1 slots=0\n", {}),
        ("n1 \\\n  slots=4 \\\n  max-slots=8\nn2 slots=1\\\n", {"n1": 4, "n2": 1}),
        ("n1 slots=2 # max-slots=4\nn2 slots=2 // the spare\n//n3\n#n4 \\\nn5\n", {"n1": 2, "n2": 2, "n5": 0}),
        ("n1:4 binding=user:0,1\nn2:2 ifname=eth1\n", {"n1": 4, "n2": 2}),
        ("[2001:db8:c083:150e::3000:1]\n[2001:db8:c083:150e::3000:2]\n", dict.fromkeys(ADDRESSES, 0)),
        (f"{ADDRESSES[0]}\n{ADDRESSES[0]}\n{ADDRESSES[1]}\n", {ADDRESSES[0]: 2, ADDRESSES[1]: 1}),
        (f"[{ADDRESSES[0]}]:4\n[{ADDRESSES[1]}] slots=2\n", {ADDRESSES[0]: 4, ADDRESSES[1]: 2}),
        ("2001:0db8:0::1 slots=2\n10.0.0.1:3\nfe80::1%eth0\n", {"2001:db8::1": 2, "10.0.0.1": 3, "fe80::1%eth0": 0}),
        ("n1 slots=4\r\nn2 slots=4\r\n", {"n1": 4, "n2": 4}),
    ],
)
def test_hostfiles(text, room):
    assert parse_hostfile(text, "hosts") == room


def test_a_published_hostfile_of_ipv6_addresses() -> None:
    text = (FIXTURES / "outside" / "49-ipv6-hostfile.txt").read_text()
    assert parse_hostfile(text, "hosts") == dict.fromkeys(ADDRESSES, 0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("n1 slots=4\nn1\n", "line 2: n1 appears twice"),
        ("n1\nn1:2\n", "line 2: n1 appears twice"),
        ("n1 slots=many\n", "'many' is not a number"),
        ("n1:\n", "'' is not a number"),
        ("n1 slots=\n", "'' is not a number"),
        ("n1 max-slots=8 8\n", "more than one host"),
        ("[2001:db8::g]\n", "'[2001:db8::g]' is not an IPv6 address"),
        ("2001:db8::1::2\n", "is not an IPv6 address"),
        ("[2001:db8::1]:many\n", "'many' is not a number"),
        ("[2001:db8::1]\n2001:DB8::1 slots=2\n", "line 2: 2001:db8::1 appears twice"),
        ("n1 n2\n", "more than one host"),
        ("n[1-\n", "line 1"),
        ("-x\n", "is not a host"),
        ("n[1-999999999]\n", "more than"),
        ("n[1-999999]p[1-999999]\n", "more than"),
    ],
)
def test_wrong_hostfiles(text, words):
    with pytest.raises(UsageError, match="hosts line") as caught:
        parse_hostfile(text, "hosts")
    assert words in str(caught.value)


LINES = st.text(alphabet="n1:[]-,# =slots\t\n.é@%&\\/", max_size=60)


@given(LINES)
def test_any_hostfile_is_read_or_refused(text):
    try:
        room = parse_hostfile(text, "hosts")
    except UsageError as error:
        assert "\n" not in str(error)
    else:
        assert all(host and count >= 0 for host, count in room.items())


@given(st.text(alphabet="n0123456789[]-,^!&@*{}x ", max_size=30))
def test_any_nodelist_is_unfolded_or_refused(text):
    with suppress(ValueError):
        assert all(unfold(text))


@given(st.text(alphabet="0123456789x(),", max_size=20))
def test_any_list_of_counts(text):
    assert all(count >= 0 for count in counted(text))


@given(st.text(max_size=200))
def test_any_output_of_scontrol(text):
    pairs(text)


def test_counts_of_slurm():
    assert counted("2(x3),1") == (2, 2, 2, 1)
    assert counted("") == counted("x") == counted("1(x99999999)") == ()


@pytest.mark.parametrize(
    ("text", "room"),
    [
        ("n1.a.example\nn2\nn1\nn2.a.example.\n", {"n1.a.example": 2, "n2": 2}),
        ("n1.a.example\nn1.b.example\nn1\n", {"n1.a.example": 0, "n1.b.example": 0, "n1": 0}),
        ("10.0.0.1\n10.0.0.2\n", {"10.0.0.1": 0, "10.0.0.2": 0}),
        ("w.10.foo.net slots=2\nw.20.foo.net slots=2\n", {"w.10.foo.net": 2, "w.20.foo.net": 2}),
    ],
)
def test_one_host_for_all_spellings_of_a_hostfile(text, room):
    assert parse_hostfile(text, "hosts") == room


def test_a_host_twice_with_slots_in_two_spellings():
    with pytest.raises(UsageError, match="n1 appears twice"):
        parse_hostfile("n1 slots=2\nn1.a.example slots=2\n", "hosts")


def test_one_host_for_all_spellings_of_a_list(nowhere):
    assert find_hosts(nowhere, ["n1", "n1.a.example", "n2"]).hosts == ("n1", "n2")
    slurm_job(nowhere)
    assert find_hosts(nowhere, ["n1.a.example", "N2"], exclude=["n2.b.example"]).hosts == ("n1",)


def test_folded_list():
    assert fold(["n2", "n1", "login"]) == "login,n[1-2]"


# ------------------------------------------------------------------------------------------------ find_hosts


@pytest.fixture
def nowhere(staged, tmp_path):
    """A machine without any scheduler."""
    for name in [*staged.variables]:
        if name.startswith(("SLURM_", "PBS_")):
            del staged.variables[name]
    staged.variables["PATH"] = str(tmp_path)
    return staged


def slurm_job(system, **more):
    system.variables |= {"SLURM_JOB_ID": "17", "SLURM_JOB_NODELIST": "n[1-3],login", "SLURM_TASKS_PER_NODE": "2(x3),1"}
    system.variables |= more


def test_hosts_of_a_slurm_job(nowhere):
    slurm_job(nowhere)
    found = find_hosts(nowhere)
    assert found.hosts == ("n1", "n2", "n3", "login")
    assert (found.source, found.scheduler, found.job) == ("Slurm job 17", "slurm", "17")
    assert found.room == {"n1": 2, "n2": 2, "n3": 2, "login": 1}


def test_an_allocation_is_narrowed(nowhere, tmp_path):
    slurm_job(nowhere)
    assert find_hosts(nowhere, ["n3", "n1.site.org"]).hosts == ("n3", "n1")
    assert find_hosts(nowhere, exclude=["n2", "login"]).hosts == ("n1", "n3")
    file = tmp_path / "hosts"
    file.write_text("n2 slots=7\n")
    found = find_hosts(nowhere, hostfile=file)
    assert (found.hosts, found.room["n2"], found.job) == (("n2",), 7, "17")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"hosts": ["n1", "n7", "n8"]}, "--hosts: n[7-8]: not in Slurm job 17"),
        ({"exclude": ["n7"]}, "--exclude: n7: not in Slurm job 17"),
        ({"exclude": ["n1", "n2", "n3", "login"]}, "no host of Slurm job 17 remains"),
    ],
)
def test_hosts_that_are_not_of_the_job(nowhere, arguments, words):
    slurm_job(nowhere)
    with pytest.raises(UsageError) as caught:
        find_hosts(nowhere, **arguments)
    assert words in str(caught.value)


def test_an_empty_slurm_job(nowhere):
    slurm_job(nowhere, SLURM_JOB_NODELIST="")
    with pytest.raises(UsageError, match="Slurm job 17 has no hosts"):
        find_hosts(nowhere)
    slurm_job(nowhere, SLURM_JOB_NODELIST="n[1-")
    with pytest.raises(UsageError, match="SLURM_JOB_NODELIST"):
        find_hosts(nowhere)


def test_hosts_of_a_pbs_job(nowhere, tmp_path):
    nodefile = tmp_path / "nodes"
    nodefile.write_text("n1.site.org\nn1.site.org\nn2.site.org\n")
    nowhere.variables |= {"PBS_NODEFILE": str(nodefile), "PBS_JOBID": "5.pbs"}
    found = find_hosts(nowhere, ["n2", "n1"])
    assert (found.hosts, found.room) == (("n2.site.org", "n1.site.org"), {"n1.site.org": 2, "n2.site.org": 1})
    assert (found.source, found.scheduler) == ("PBS job 5.pbs", "pbs")
    nodefile.write_text("\n")
    with pytest.raises(UsageError, match="PBS_NODEFILE names no host"):
        find_hosts(nowhere)
    nowhere.variables["PBS_NODEFILE"] = "/nowhere"
    with pytest.raises(UsageError, match="cannot read /nowhere"):
        find_hosts(nowhere)


def test_hosts_without_a_job(nowhere, tmp_path):
    assert find_hosts(nowhere, ["b", "a"]).hosts == ("b", "a")
    file = tmp_path / "hosts"
    file.write_text("a:2\nb\n")
    found = find_hosts(nowhere, exclude=["b"], hostfile=file)
    assert (found.hosts, found.room, found.scheduler) == (("a",), {"a": 2}, "")
    file.write_text("# none\n")
    with pytest.raises(UsageError, match="names no host"):
        find_hosts(nowhere, hostfile=file)


def test_no_hosts_at_all(nowhere):
    with pytest.raises(UsageError, match=r"nothing to check: no allocation here: .* or use --local N"):
        find_hosts(nowhere, partly=True)
    with pytest.raises(UsageError, match=r"no allocation here: name hosts with -w HOSTS$"):
        find_hosts(nowhere)  # of discover, which has no --local
    nowhere.variables["LSB_JOBID"] = "1"
    with pytest.raises(UsageError, match="LSF"):
        find_hosts(nowhere)


def test_names_that_do_not_resolve(nowhere):
    assert unresolvable(nowhere, ["localhost", "no-such-host.invalid", "x" * 70]) == ["no-such-host.invalid", "x" * 70]


# ------------------------------------------------------------------------------------------------ excluded hosts


def test_hosts_that_are_not_of_the_job_are_absent_where_others_are(nowhere, tmp_path):
    slurm_job(nowhere)
    found = find_hosts(nowhere, ["n3", "n7", "n1", "n8"], partly=True)
    assert (found.hosts, found.absent, found.excluded) == (("n3", "n1"), ("n7", "n8"), ())
    file = tmp_path / "hosts"
    file.write_text("n2\nn9\n")
    found = find_hosts(nowhere, hostfile=file, partly=True)
    assert (found.hosts, found.absent) == (("n2",), ("n9",))
    with pytest.raises(UsageError, match="n\\[7-8\\]: not in Slurm job 17"):
        find_hosts(nowhere, ["n7", "n8"], partly=True)


def test_an_excluded_host_is_not_absent(nowhere):
    slurm_job(nowhere)
    found = find_hosts(nowhere, ["n1", "n2", "n3", "n7", "n8"], ["n2", "n8"], partly=True)
    assert (found.hosts, found.excluded, found.absent) == (("n1", "n3"), ("n2", "n8"), ("n7",))
    with pytest.raises(UsageError, match="--exclude: n9: not in Slurm job 17"):
        find_hosts(nowhere, ["n1", "n2"], ["n9"], partly=True)


def states_of(**states):
    """In the place of `cluster.host_states`."""
    return lambda _, hosts: [HostState(host, *states.get(host, ("idle",))) for host in hosts]


def test_each_host_that_was_asked_for_and_is_not_measured_is_named_with_the_reason(nowhere, monkeypatch):
    slurm_job(nowhere, SLURM_JOB_NODELIST="n[1-4]", SLURM_TASKS_PER_NODE="2(x4)")
    monkeypatch.setattr(
        cluster, "host_states", states_of(n3=("drained", "disk"), n7=("drained", "cable"), n4=("busy",))
    )
    request = fabric_discovery.FabricRequest("n[1-4,7-9]", "n2,n9")
    allocation, left_out = fabric_discovery.usable_hosts(nowhere, request, idle_only=True)
    assert allocation.hosts == ("n1", "n4")  # busy with this very job
    assert [(one.state, one.component, one.name, sentences(one.evidence)) for one in left_out] == [
        (State.NOT_JUDGED, "host", "n3", "excluded: drained (disk)"),
        (State.NOT_JUDGED, "host", "n2", "excluded: by name"),
        (State.NOT_JUDGED, "host", "n9", "excluded: by name"),
        (State.NOT_JUDGED, "host", "n7", PINNED["excluded: not of Slurm job"]),
        (State.NOT_JUDGED, "host", "n8", "excluded: not of Slurm job 17"),
    ]


def test_without_a_job_drained_or_excluded_hosts_are_named(nowhere, monkeypatch):
    monkeypatch.setattr(cluster, "host_states", states_of(n3=("drained", "disk")))
    monkeypatch.setattr(cluster, "unresolvable", lambda *_: [])
    allocation, left_out = fabric_discovery.usable_hosts(
        nowhere, fabric_discovery.FabricRequest("n[1-4]", "n2"), idle_only=True
    )
    assert (allocation.hosts, [one.name for one in left_out]) == (("n1", "n4"), ["n3", "n2"])
