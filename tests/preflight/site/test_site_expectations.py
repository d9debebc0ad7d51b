"""Site files: what is learned of a fleet is quiet on it, and what changes after that is found on all hosts at once."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

import pytest
import tomlkit
from fleets import FAULTS, GPU_FAULTS, Change, fleet, judged, late, made, rewritten, said, without
from hypothesis import given, settings, strategies as st
from preflight_help import host, nic, sample, sysroot
from tuned_hosts import amd, gpu, intel

from fablint.model.preflight_results import Fitness, Outcome
from fablint.preflight import CHECKS, Fleet, Host, judge
from fablint.preflight.site.expectations import Site
from fablint.preflight.site.learning import learn
from fablint.preflight.site.site_file import parse_site
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

TODAY = date(2026, 1, 5)
WRONG = (Outcome.FAIL, Outcome.WARN)
ORDER = [Outcome.PASS, Outcome.SKIP, Outcome.WARN, Outcome.FAIL]
Makers = Sequence[Callable[[], Host]]
# Checks whose values the fleets below do not have: they need outputs of tools that no sample has for several hosts.
UNSEEN = {
    "ib.gid",
    "host.mpi",
    "net.bond.mode",
    "pcie.bandwidth",
    "net.tcp",
    "host.cpuset",
    "gpu.nvswitch",
}


def site_of(hosts: Sequence[Host], change: Callable[[Any], None] | None = None) -> Site:
    """What is learned of hosts, after an administrator has changed the file."""
    document = tomlkit.parse(learn(Fleet(list(hosts)), "learned", CHECKS).text)
    if change:
        change(document)
    return parse_site(tomlkit.dumps(document), "site.toml", TODAY, CHECKS)


def against(hosts: Sequence[Host], site: Site) -> Fitness:
    return judge(Fleet(list(hosts)), site=site)


def bad(fitness: Fitness) -> dict[tuple[str, str, str], Outcome]:
    """Check, host and target of what is wrong."""
    return {(one.check, one.host, one.target): one.outcome for one in fitness.results if one.outcome in WRONG}


def half_speed(kind: str, count: int = 6) -> list[Host]:
    """All cards at 16 of 32 GT/s, which is a setting of the BIOS."""
    return [made(f"{kind}{n}", kind, rewritten("32.0", "16.0", "device/current_link_speed")) for n in range(count)]


def slingshot(count: int = 6) -> list[Host]:
    """Hosts of a sample of a whole tree, each with its own name."""
    files = sysroot("cxi-2rail-good")
    return [host(f"x{number}", files) for number in range(count)]


def with_software(count: int = 5) -> list[Host]:
    """Hosts with a NIC of the fabric, its driver, and settings of the kernel."""
    files = {**nic("hsn0"), "/etc/os-release": 'PRETTY_NAME="SLES 15 SP5"', "/proc/sys/kernel/numa_balancing": "0"}
    files["/sys/kernel/mm/transparent_hugepage/enabled"] = "always [madvise] never"
    files |= {f"/proc/sys/net/ipv4/neigh/default/gc_thresh{number}": str(1024 * number) for number in (1, 2, 3)}
    files |= {"/proc/sys/net/ipv4/neigh/default/gc_stale_time": "60"}
    driver = {"ethtool-i/hsn0": "driver: mlx5_core\nversion: 24.01\nfirmware-version: 28.41.1000\n"}
    return [host(f"m{number}", files, commands=driver) for number in range(count)]


def with_gpus() -> list[Host]:
    """Hosts with the GPUs of samples: those of AMD of `amd-smi`, and the NVLinks of one of NVIDIA."""
    said = {f"amd-smi-{verb}": sample(f"amd_smi/{verb}.txt") for verb in ("static", "firmware", "metric", "bad-pages")}
    said["nvidia-smi-nvlink"] = sample("misc/nvidia-smi-nvlink-s.txt")
    return [host(f"g{number}", nic("hsn0"), commands=said) for number in range(5)]


def roce() -> list[Host]:
    """RoCE hosts whose flow control is set."""
    port = "/sys/class/infiniband/mlx5_0/ports/1"
    files = {f"{port}/state": "4: ACTIVE", f"{port}/phys_state": "5: LinkUp", f"{port}/link_layer": "Ethernet"}
    said = {"dcb-pfc/ens3": '[{"prio_pfc":[false,false,false,true,false,false,false,false]}]'}
    folders = {"/sys/class/infiniband/mlx5_0/device/net": ["ens3"]}
    nics = [nic("ens3", address=f"02:00:00:00:01:{number:02x}") for number in range(5)]
    return [host(f"n{number}", {**one, **files}, commands=said, folders=folders) for number, one in enumerate(nics)]


RICH: Mapping[str, Callable[[], list[Host]]] = {
    "InfiniBand and GPUs in one chassis": lambda: fleet({"gpu": 8, "ndr": 5, "hdr": 5, "login": 1}),
    "tuned Intel hosts with GPUs": lambda: [gpu(number) for number in range(8)],
    "tuned AMD hosts": lambda: [amd(number) for number in range(8)],
    "tuned Intel hosts": lambda: [intel(number) for number in range(3)],
    "one host": lambda: [intel(1)],
    "Slingshot": slingshot,
    "software": with_software,
    "RoCE": roce,
    "GPUs of AMD and NVLinks": with_gpus,
    "a setting that all hosts share": lambda: half_speed("ndr") + half_speed("hdr"),
}


# ------------------------------------------------------------------------------------------------ round trip


@pytest.mark.parametrize("name", RICH)
def test_a_fleet_is_quiet_beside_its_own_file(name: str) -> None:
    hosts = RICH[name]()
    before = bad(judge(Fleet(hosts)))
    after = bad(against(RICH[name](), site_of(hosts)))
    compared = {check.id for check in CHECKS if check.judge.site is not None or check.id == "host.class"}
    assert {key for key in after if key[0] in compared} == set()
    assert {key for key in before if key[0] not in compared} == set(after)


KINDS = st.dictionaries(st.sampled_from(["gpu", "ndr", "hdr", "login"]), st.integers(1, 9), min_size=1)
BREAKS = st.lists(st.tuples(st.integers(0, 40), st.sampled_from([*FAULTS, *GPU_FAULTS])), max_size=6)


@settings(max_examples=40, deadline=None)
@given(KINDS, BREAKS)
def test_a_file_that_was_learned_of_a_faulty_fleet_has_no_finding_on_other_hosts(
    kinds: Mapping[str, int], breaks: list[tuple[int, str]]
) -> None:
    """Nor does it make a warning a failure: what was divided or doubtful then is not an expectation now."""
    names = [one.name for one in fleet(kinds)]
    changes: dict[str, Change] = {
        name: {**FAULTS, **GPU_FAULTS}[fault][0]
        for name, fault in ((names[index % len(names)], fault) for index, fault in breaks)
        if not name.startswith("login")  # it has none of these parts
    }
    hosts = fleet(kinds, changes)
    site = site_of(hosts)
    before, after = bad(judged(hosts)), bad(against(fleet(kinds, changes), site))
    before_at = {(check, name) for check, name, _ in before}
    assert {(check, name) for check, name, _ in after if check != "host.class"} <= before_at
    assert {name for (_, name, _), outcome in after.items() if outcome is Outcome.FAIL} <= {
        name for (_, name, _), outcome in before.items() if outcome is Outcome.FAIL
    }


@pytest.mark.parametrize("name", RICH)
def test_what_is_learned_does_not_depend_on_the_order_of_hosts(name: str) -> None:
    hosts = RICH[name]()
    random.Random(1).shuffle(hosts)
    again = learn(Fleet(RICH[name]()), "x", CHECKS).text
    assert tomllib.loads(learn(Fleet(hosts), "x", CHECKS).text) == tomllib.loads(again)


# ------------------------------------------------------------------------------------------------ what is found


def rows(text: str) -> list[tuple[int, str, str]]:
    """Class, check and key of every value in a site file; the key is empty where one value holds for all targets."""
    found = []
    for number, one in enumerate(tomllib.loads(text)["class"]):
        for check, value in one["expect"].items():
            found += [(number, check, key) for key in value] if isinstance(value, dict) else [(number, check, "")]
    return found


def other(value: object) -> object:
    """A value that hosts with this one do not meet, neither as a lower limit nor as an upper one."""
    if isinstance(value, str):
        return f"{value} no more"
    assert isinstance(value, int | float)
    return {True: 2 * value + 1, False: -1}[value >= 0]


def test_every_value_of_a_file_is_compared_with() -> None:
    """Each check that compares has rows, and each row decides: another value in the file is a finding of that check."""
    met: set[str] = set()
    checks = {check.id: check for check in CHECKS}
    for name, hosts in RICH.items():
        members = hosts()
        text = learn(Fleet(members), "learned", CHECKS).text
        for number, check, key in rows(text):
            document = tomlkit.parse(text)
            expect = document["class"][number]["expect"]  # type: ignore[index]
            holder, last = (expect[check], key) if key else (expect, check)
            plain = holder[last].unwrap()
            holder[last] = -1 if check == "host.cstates" else other(plain)
            site = parse_site(tomlkit.dumps(document), "site.toml", TODAY, CHECKS)
            fitness = judge(Fleet(members), [checks[check]], site=site)
            found = [one for one in fitness.results if "in site.toml" in one.message]
            assert found and all(one.outcome in WRONG for one in found), (name, check, key)
            met.add(check)
    assert met >= {check.id for check in CHECKS if check.judge.site is not None} - UNSEEN - {
        "host.cstates",
        "host.governor",
    }


SETTINGS: Mapping[str, tuple[Change, str]] = {
    "MTU": (rewritten("4092", "2044", "/ib0/mtu"), "net.link.mtu"),
    "rate": (rewritten("400 Gb/sec (4X NDR)", "200 Gb/sec (2X NDR)"), "ib.port.rate"),
    "port without a cable": (rewritten("4: ACTIVE", "1: DOWN", "mlx5_0/ports"), "ib.port.state"),
    "link down": (rewritten("up", "down", "/ib0/operstate"), "net.link.up"),
    "PCIe width": (rewritten("16", "8", "device/current_link_width"), "pcie.width"),
    "PCIe speed": (rewritten("32.0", "16.0", "device/current_link_speed"), "pcie.speed"),
    "firmware": (rewritten("28.41", "28.39", "fw_ver"), "ib.fw"),
    "kernel": (rewritten("5.14.0-427", "5.14.0-362", "osrelease"), "host.kernel"),
    "BIOS": (rewritten("1.9", "1.8", "bios_version"), "host.bios"),
    "memory": (rewritten("790000000", "690000000", "meminfo"), "host.memory"),
    "SMT": (rewritten("0", "1", "smt/active"), "host.smt"),
    "huge pages": (rewritten("Total: 0", "Total: 64", "meminfo"), "host.hugepages"),
    "one GPU less for the driver": (without("gpus/0000:43:00.0"), "gpu.count"),
    "GPU off the bus": (without("0000:43:00.0"), "gpu.count"),
    "HCA without its driver": (without("/mlx5_3", "/ib3"), "net.rails.count"),
}


@pytest.mark.parametrize("change", SETTINGS)
def test_what_changed_on_all_hosts_is_found(change: str) -> None:
    """All have the same value, so that a comparison with one another is quiet; the file is not."""
    alter, check = SETTINGS[change]
    site = site_of(fleet({"gpu": 8}))
    altered = [made(f"gpu{number}", "gpu", alter) for number in range(1, 9)]
    reported = said(against(altered, site))
    assert reported[check] == {one.name for one in altered}
    assert check not in said(judged(altered)) or check in ("pcie.speed", "pcie.width", "ib.port.state")


def test_a_lone_host_is_compared_with_the_file() -> None:
    """In a prolog there is no other host."""
    site = site_of(fleet({"gpu": 8}))
    alone = made("gpu3", "gpu", rewritten("4092", "2044", "/ib0/mtu"))
    (one,) = [one for one in against([alone], site).results if one.outcome in WRONG]
    assert (one.check, one.target, one.outcome, one.message) == (
        "net.link.mtu",
        "ib0",
        Outcome.FAIL,
        "MTU 2044, 4092 in site.toml",
    )
    assert (one.value, one.expected) == (2044, 4092)


def test_the_file_decides_and_not_the_majority() -> None:
    """Five of eight hosts lost the right MTU: those are unfit, and not the other three."""
    site = site_of(fleet({"ndr": 8}))
    odd = {f"ndr{number}": rewritten("4092", "2044", "/ib0/mtu") for number in range(1, 6)}
    assert set(against(fleet({"ndr": 8}, odd), site).unfit) == set(odd)


def test_settings_by_name_are_learned_and_compared() -> None:
    """Features of NICs, boot options, modules: one that all hosts lost is absent."""
    site = site_of([gpu(number) for number in range(6)])
    files = {"/proc/cmdline": "console=tty0", "/sys/module/nvidia/version": "560.28"}
    files["/sys/module/nvidia_peermem/initstate"] = None
    from tuned_hosts import FEATURES

    features = {"ethtool-k/ib0": FEATURES.replace("tcp-segmentation-offload: on", "tcp-segmentation-offload: off")}
    fitness = against([gpu(number, files=files, commands=features) for number in range(6)], site)
    reported = {one.check: one.message for one in fitness.results if one.outcome in WRONG and one.host == "n0"}
    assert reported["net.offload"] == PINNED["tcp-segmentation-offload off"]
    assert "no " in reported["host.cmdline"] and "in site.toml" in reported["host.cmdline"]
    assert reported["host.module"] == "560.28, 550.54.15 in site.toml"


# ------------------------------------------------------------------------------------------------ classes


def test_a_host_that_is_built_otherwise_than_its_class_is_said() -> None:
    site = site_of(fleet({"gpu": 8, "login": 1}))
    fitness = against([made("gpu3", "gpu", without("0000:43:00.0")), made("new", "ndr")], site)
    reported = {one.host: one.message for one in fitness.results if one.check == "host.class"}
    assert reported["gpu3"] == PINNED["7 instead of 8 GPU 10de:2330"]
    assert reported["new"] == PINNED["not the build of any class"]


def test_a_new_host_that_is_built_like_a_class_belongs_to_it() -> None:
    site = site_of(fleet({"gpu": 8, "ndr": 4}))
    fitness = against([made("new", "ndr", rewritten("4092", "2044", "/ib0/mtu"))], site)
    assert set(said(fitness)) == {"net.link.mtu"}


def test_values_that_hosts_do_not_share_are_not_learned() -> None:
    odd = {f"ndr{number}": rewritten("4092", "2044", "/ib0/mtu") for number in range(12, 21)}
    learned = learn(Fleet(fleet({"ndr": 20}, odd)), "x", CHECKS)
    assert "net.link.mtu" not in tomllib.loads(learned.text)["class"][0]["expect"]
    assert PINNED["net.link.mtu: hosts differ"] in learned.text and learned.divided == 1


def test_a_value_that_a_check_warns_of_has_a_remark() -> None:
    learned = learn(Fleet(half_speed("ndr")), "x", CHECKS)
    assert PINNED["pcie.speed 16 mlx5_0: 16"] in learned.text
    assert learned.doubtful == 1


def test_a_host_whose_time_ran_out_is_not_judged_by_the_file() -> None:
    site = site_of(fleet({"gpu": 8}))
    fitness = against([late("gpu1", "gpu"), *fleet({"gpu": 8})[1:]], site)
    assert not [one for one in fitness.results if one.host == "gpu1" and "site.toml" in one.message]
    assert not [one for one in fitness.results if one.host != "gpu1" and one.outcome in WRONG]


# ------------------------------------------------------------------------------------------------ by hand

BY_HAND = """format = 1

[[class]]
name = "all"
hosts = "*"

[class.expect]
"net.link.mtu" = { "ib[0-3]" = 9000 }
"host.governor" = "powersave"
"host.cstates" = 200
"""


def governed(name: str, governor: str, latency: int) -> Host:
    at = "/sys/devices/system/cpu/cpu0"
    files = {f"{at}/cpufreq/scaling_governor": governor, f"{at}/cpuidle/state3/latency": str(latency)}
    return host(name, {**files, f"{at}/cpuidle/state3/disable": "0"})


def test_a_file_that_is_written_by_hand() -> None:
    site = parse_site(BY_HAND, "site.toml", TODAY, CHECKS)
    found = said(against(fleet({"gpu": 1, "hdr": 1}), site))
    assert found["net.link.mtu"] == {"gpu1", "hdr1"}
    hosts = [governed("a", "powersave", 133), governed("b", "performance", 300)]
    reported = {
        (one.host, one.check): one.message for one in against(hosts, site).results if one.outcome is Outcome.WARN
    }
    assert reported["b", "host.governor"] == PINNED["governor performance, powersave"]
    assert reported["b", "host.cstates"] == "exit latency 300 us, 200 in site.toml"
    assert not {key for key in reported if key[0] == "a"}
    alone = {(one.host, one.check) for one in judge(Fleet(hosts)).results if one.outcome is Outcome.WARN}
    assert ("a", "host.governor") in alone and ("a", "host.cstates") in alone
