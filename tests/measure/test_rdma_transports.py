"""Transports over RDMA between two nodes of the rdmavm test bed: one boot of the virtual machine for all of them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping

import pytest

from rdmavm import RunInVm
from tested_mpis import built_engine

_PLAN = """\
latency --name many --transport verbs --sizes 8 --iterations 500 --warmup 1 --batch 1
latency --transport verbs --sizes 0,8,4K,64K --iterations 5 --warmup 1 --validate
bandwidth --transport verbs --window 60 --sizes 2K --iterations 10 --warmup 1
exchange --transport verbs --mtu 512 --service-level 1 --sizes 100,8K --iterations 5 --warmup 1 --validate
"""
# The window is longer than the queue of receives: messages may arrive before theirs is posted.
_FURTHER = """\
bandwidth --name streams --transport verbs --streams 3 --window 300 --sizes 2K --iterations 2 --warmup 1 --validate
latency --name ucx --transport ucx --sizes 8,64K --iterations 5 --warmup 1 --validate
latency --name ofi --transport ofi --ofi-provider verbs;ofi_rxm --sizes 8,4K --iterations 5 --warmup 1 --validate
"""
_ONE_SIDED = """\
put_latency --transport verbs --sizes 1,8K --iterations 5 --warmup 1 --validate
put_bandwidth --transport verbs --streams 3 --window 300 --sizes 2K --iterations 2 --warmup 1 --validate
put_latency --name put_pscw --transport verbs --sync pscw --streams 2 --sizes 8,64K --iterations 5 --warmup 1 --validate
put_bibandwidth --transport verbs --window 5 --sizes 100,8K --iterations 2 --warmup 1 --validate
get_latency --transport verbs --sizes 1,8K --iterations 5 --warmup 1 --validate
get_bandwidth --transport verbs --window 40 --sizes 64,8K --iterations 2 --warmup 1 --validate
cas --transport verbs --iterations 5 --warmup 1 --validate
fop --transport verbs --iterations 5 --warmup 1 --validate
"""
# Each case writes its output and its exit status into a file.
_SCRIPT = """\
cd {folder}
launch() {{
    name=$1; shift
    timeout 400 mpirun --allow-run-as-root -H node0,node1 -np 2 --mca pml ob1 --mca btl tcp,self \
        --mca btl_tcp_if_include 10.77.0.0/24 -x UCX_TLS=rc,self ./fablint-engine "$@" >$name 2>&1
    echo "status $?" >>$name
}}
not_ready() {{ cat /sys/class/infiniband/rxe?/ports/1/hw_counters/rcvd_rnr_err; }}
not_ready >not_ready
launch rows --plan plan
not_ready >>not_ready
launch others --plan others_plan
launch device latency --transport verbs --device rxe9
launch gid latency --transport verbs --gid-index 500
launch other_node latency --transport verbs --device rxe0

export FABLINT_TOKEN=0123456789abcdef
# Ranks 0 and 1 on node0, rank 2 on node1, without MPI; the lines of the third argument run once cells are on the disk.
disturb() {{
    where="--rendezvous 10.77.0.1:$2 --ranks 3"
    printed=$(mktemp -d)  # of the guest: the shared folder loses lines that are written at the same time
    on node1 sh -c 'echo $$ >'$1.pid"; exec ./fablint-engine $where --rank 2" >$printed/other 2>&1 &
    ./fablint-engine $where --rank 0-1 latency --transport verbs --pattern all-pairs --repeats 1000 \
        --sizes 8 --budget 0.3 --watchdog 30 -q -o $1.run >$printed/first 2>&1 &
    engine=$!
    until ls $1.run/latency/count/c.* >/dev/null 2>&1 || ! kill -0 $engine; do sleep 0.2; done
    eval "$3"
    wait $engine
    echo "status $?" >>$printed/first
    wait
    cat $printed/first $printed/other >$1
    ls $1.run/latency/count | sed 's/^/kept /' >>$1
}}
disturb killed 20001 'on node1 kill -9 $(cat killed.pid)'
# RoCE v2 is UDP port 4791: the ranks keep their other connections.
disturb cut 20002 'tc qdisc add dev eth0 root handle 1: prio
    tc qdisc add dev eth0 parent 1:3 netem loss 100%
    tc filter add dev eth0 parent 1: protocol ip u32 match ip dport 4791 0xffff flowid 1:3'
"""


@pytest.fixture(scope="module")
def outputs(rdmavm: RunInVm, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """What the engine printed in each case, by its name."""
    if shutil.which("mpicxx.openmpi") is None:
        pytest.skip("not installed: Open MPI, which the virtual machine has")
    folder = tmp_path_factory.mktemp("rdma")
    shutil.copy(built_engine("openmpi").path, folder / "fablint-engine")
    (folder / "plan").write_text(_PLAN)
    (folder / "others_plan").write_text(_FURTHER + _ONE_SIDED)
    (folder / "script").write_text(_SCRIPT.format(folder=folder))
    done = rdmavm(folder, "bash", str(folder / "script"))
    names = ("rows", "not_ready", "others", "device", "gid", "other_node", "killed", "cut")
    assert all((folder / name).exists() for name in names), done.stderr
    return {name: (folder / name).read_text(errors="replace") for name in names}


def test_every_rdma_transport_carries_intact_messages_between_two_nodes(outputs: Mapping[str, str]) -> None:
    assert outputs["rows"].endswith("status 0\n"), outputs["rows"]
    assert outputs["rows"].count("OSU MPI Latency Test") == 2
    assert outputs["rows"].count("OSU MPI Bandwidth Test") == 1
    assert outputs["rows"].count("fablint Exchange Test") == 1
    assert outputs["others"].count("OSU MPI Latency Test") == 2
    assert outputs["others"].count("OSU MPI Bandwidth Test") == 1


def test_no_message_arrives_before_its_receive_is_posted(outputs: Mapping[str, str]) -> None:
    """Of the latency of a message that has to be sent again, most would be the pause before that."""
    before_0, before_1, *after = outputs["not_ready"].split()
    assert after == [before_0, before_1]


def test_rdma_writes_reads_and_atomics_change_the_peers_memory(outputs: Mapping[str, str]) -> None:
    assert outputs["others"].endswith("status 0\n"), outputs["others"]
    assert outputs["others"].count("# OSU MPI_") == len(_ONE_SIDED.splitlines())


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("device", "error: no RDMA device 'rxe9': this host has rxe0, rxe1"),
        ("gid", "error: --gid-index 500: rxe0:1, rxe1:1 has no such GID: 'ibv_devinfo -v' lists the GIDs"),
        ("other_node", "error: node1: no GID of rxe0:1 is an IP address of this host"),
    ],
)
def test_a_fault_is_named_in_one_line(outputs: Mapping[str, str], case: str, message: str) -> None:
    (line,) = [line for line in outputs[case].splitlines() if line.startswith("fablint-engine: " + message[:4])]
    assert line.startswith(f"fablint-engine: {message}")
    assert "status 0" not in outputs[case]


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("killed", r"rank 2 \(node1\), round \d+, .*its process ended"),
        ("cut", r"rank \d \(node\d\), round \d+, .*verbs: no acknowledgement from its queue pair"),
    ],
)
def test_a_peer_that_is_lost_ends_the_run_with_its_name(outputs: Mapping[str, str], case: str, reason: str) -> None:
    """The process is killed, or RoCE has no path to it while the ranks keep their other connections."""
    lines = outputs[case].splitlines()
    failed = [line for line in lines if line.startswith("fablint-engine: failed: ")]
    assert any(re.match(f"fablint-engine: failed: {reason}", line) for line in failed), outputs[case]
    assert "status 3" in lines
    assert any(line.startswith("kept c.") for line in lines), outputs[case]
