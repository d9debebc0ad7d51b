"""GPUs and their links. There is none where these tests run: outputs are samples and such as nvidia-smi prints."""

from __future__ import annotations

import pytest
from preflight_help import host, of, outcomes, sample, wrong

from fablint.model.preflight_results import Outcome
from fablint.preflight.checks.gpu.gpu_state import GPU_POWER
from fablint.preflight.checks.gpu.gpus import GPU_COUNT, GPU_DRIVER, NV_LINK_ERRORS, NV_LINKS, NV_SWITCHES
from fablint.preflight.host import Host
from fablint.snapshot.host_snapshot import Output
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

STATE = sample("misc/nvidia-smi-nvlink-s.txt")
ERRORS = "GPU 0: NVIDIA H100 (UUID: GPU-0)\n\t Link 0: Replay Errors: {}\n\t Link 1: CRC Errors: 3\n"


def with_gpus(name: str, count: int, pci: int = 0) -> Host:
    """So many GPUs that the driver knows, and that the bus has."""
    known = {f"/proc/driver/nvidia/gpus/0000:0{index}:00.0/information": "Model: H100" for index in range(count)}
    there = {f"/sys/bus/pci/devices/0000:0{index}:00.0/class": "0x030200" for index in range(pci)}
    return host(name, {**known, **there, "/sys/bus/pci/devices/0000:ff:00.0/class": "0x020000"})


def test_a_lost_gpu_is_a_failure() -> None:
    hosts = [*(with_gpus(f"n{index}", 8, 8) for index in range(4)), with_gpus("odd", 7, 8)]
    assert wrong(of(GPU_COUNT, *hosts)) == [("odd", "", Outcome.FAIL, "7 GPUs, 4 others 8")]
    assert wrong(of(GPU_COUNT, *hosts[2:])) == [("odd", "", Outcome.WARN, "7 GPUs, 2 others 8")]


def test_a_host_whose_driver_is_not_loaded_has_no_gpus() -> None:
    hosts = [*(with_gpus(f"n{index}", 4, 4) for index in range(4)), with_gpus("odd", 0, 4)]
    assert wrong(of(GPU_COUNT, *hosts)) == [("odd", "", Outcome.FAIL, "0 GPUs, 4 others 4")]


def test_a_host_that_has_none_on_its_bus_may_be_built_so() -> None:
    hosts = [*(with_gpus(f"n{index}", 4, 4) for index in range(4)), with_gpus("odd", 0)]
    assert wrong(of(GPU_COUNT, *hosts)) == [("odd", "", Outcome.WARN, "0 GPUs, 4 others 4")]


def test_one_gpu_is_no_plural() -> None:
    hosts = [*(with_gpus(f"n{index}", count, 2) for index, count in enumerate((1, 1, 1, 2, 2, 2)))]
    assert {said for _, _, _, said in wrong(of(GPU_COUNT, *hosts))} == {"two kinds: 3 x 1 GPU, 3 x 2 on n[3-5]"}


def test_gpus_of_other_vendors_are_counted_on_the_bus() -> None:
    hosts = [*(with_gpus(f"n{index}", 0, 8) for index in range(4)), with_gpus("odd", 0, 6)]
    assert wrong(of(GPU_COUNT, *hosts)) == [("odd", "", Outcome.FAIL, "6 GPUs, 4 others 8")]


def test_more_gpus_than_others_is_no_fault() -> None:
    assert wrong(of(GPU_COUNT, with_gpus("n1", 4), with_gpus("n2", 4), with_gpus("n3", 8))) == []


def test_hosts_without_gpus_have_none_to_count() -> None:
    assert outcomes(of(GPU_COUNT, with_gpus("n1", 0), with_gpus("n2", 0))) == [Outcome.SKIP] * 2


def test_a_link_that_is_inactive_on_one_host_only() -> None:
    good = STATE.replace("<inactive>", "26.562 GB/s")
    hosts = [host(f"n{index}", commands={"nvidia-smi-nvlink": STATE if index == 2 else good}) for index in range(5)]
    message = "2 links of 26.562 GB/s, 4 others 3 links of 26.562 GB/s"
    assert wrong(of(NV_LINKS, *hosts)) == [("n2", "gpu0", Outcome.FAIL, message)]


def test_links_that_no_host_uses_are_no_fault() -> None:
    hosts = [host(f"n{index}", commands={"nvidia-smi-nvlink": STATE}) for index in range(3)]
    assert outcomes(of(NV_LINKS, *hosts)) == [Outcome.PASS] * 3


def links(*speeds: str) -> str:
    """Output for GPUs with four links each, of which the last has this speed."""
    usual = "".join(f"\t Link {link}: 26.562 GB/s\n" for link in range(3))
    return "".join(
        f"GPU {gpu}: H100 (UUID: GPU-{gpu})\n{usual}\t Link 3: {speed}\n" for gpu, speed in enumerate(speeds)
    )


@pytest.mark.parametrize("odd", ["<inactive>", "13.281 GB/s"])
def test_gpus_of_a_single_host_are_compared_with_each_other(odd: str) -> None:
    good = "26.562 GB/s"
    (result,) = wrong(of(NV_LINKS, host("n1", commands={"nvidia-smi-nvlink": links(good, odd, good, good)})))
    assert result[:3] == ("n1", "gpu1", Outcome.WARN)
    for healthy in (links(good, good), links(odd, odd, odd), links(good, odd), links(odd)):
        assert wrong(of(NV_LINKS, host("n1", commands={"nvidia-smi-nvlink": healthy}))) == []


def limited(*watts: int) -> Host:
    gpus = "".join(
        f"<gpu id='0'><product_name>{'A100' if limit < 0 else 'H100'}</product_name><gpu_power_readings>"
        f"<current_power_limit>{abs(limit)}.00 W</current_power_limit></gpu_power_readings></gpu>"
        for limit in watts
    )
    return host("n1", commands={"nvidia-smi-q": f"<nvidia_smi_log>{gpus}</nvidia_smi_log>"})


def test_a_power_limit_below_that_of_most_gpus_of_the_host() -> None:
    assert [target for _, target, *_ in wrong(of(GPU_POWER, limited(700, 700, 300, 700)))] == ["gpu2 H100"]
    for healthy in ((700, 700, 900), (700, 700, -300), (300, 700), (700,)):  # negative: another product
        assert wrong(of(GPU_POWER, limited(*healthy))) == []


def test_no_link_at_all() -> None:
    down = STATE.replace("26.562 GB/s", "<inactive>")
    hosts = [host(f"n{index}", commands={"nvidia-smi-nvlink": down if index == 1 else STATE}) for index in range(3)]
    assert [(name, reported) for name, _, _, reported in wrong(of(NV_LINKS, *hosts))] == [
        ("n1", PINNED["no active link, 2 others"])
    ]


def test_errors_of_links_count_only_while_they_grow() -> None:
    def read(*totals: int) -> Host:
        return host("n1", commands={"nvidia-smi-nvlink-errors": "".join(map(ERRORS.format, totals))})

    assert wrong(of(NV_LINK_ERRORS, read(5, 9))) == [("n1", "gpu0", Outcome.WARN, "link 0 Replay +4")]
    assert [(one.outcome, one.message) for one in of(NV_LINK_ERRORS, read(5, 5))] == [(Outcome.PASS, "8 before")]
    assert outcomes(of(NV_LINK_ERRORS, read(5))) == [Outcome.SKIP]


def test_what_cannot_be_seen_is_skipped() -> None:
    missing = host("n1", commands={"nvidia-smi-nvlink": Output(error="not installed")})
    for check in (GPU_COUNT, NV_LINKS, NV_LINK_ERRORS):
        assert outcomes(of(check, missing)) == [Outcome.SKIP]


VENDORS = {"nvidia": "0x10de", "amdgpu": "0x1002"}


def bound(name: str, driver: str, *indices: int, kind: str = "0x030200") -> Host:
    """Eight GPUs, of which those with these indices have the driver."""
    at, drivers = "/sys/bus/pci/devices", "/sys/bus/pci/drivers"
    addresses = [f"0000:{16 * index:02x}:00.0" for index in range(1, 9)]
    files = {f"{at}/{address}/vendor": VENDORS[driver] for address in addresses}
    files |= {f"{at}/{address}/class": kind for address in addresses}
    links = {f"{drivers}/{driver}/{addresses[index]}": f"../../../{addresses[index]}" for index in indices}
    return host(name, files, links=links)


@pytest.mark.parametrize(("driver", "kind"), [("nvidia", "0x030200"), ("amdgpu", "0x120000"), ("amdgpu", "0x038000")])
def test_a_gpu_without_its_driver(driver: str, kind: str) -> None:
    odd = bound("odd", driver, *range(7), kind=kind)
    whole = [bound(f"n{number}", driver, *range(8), kind=kind) for number in range(5)]
    assert [one[:3] for one in wrong(of(GPU_DRIVER, odd, *whole))] == [("odd", "0000:80:00.0", Outcome.FAIL)]
    assert [one[:3] for one in wrong(of(GPU_DRIVER, odd))] == [("odd", "0000:80:00.0", Outcome.WARN)]
    assert wrong(of(GPU_DRIVER, *whole)) == []


def test_gpus_that_no_host_gives_its_own_driver_are_those_of_guests() -> None:
    hosts = [bound(f"n{number}", "nvidia", *range(4)) for number in range(5)]
    assert wrong(of(GPU_DRIVER, *hosts)) == []
    assert wrong(of(GPU_DRIVER, *(bound(f"n{number}", "amdgpu") for number in range(3)))) == []


def with_switches(name: str, count: int) -> Host:
    names = [f"0000:{7 + index:02x}:00.0" for index in range(count)]
    known = {"/proc/driver/nvidia/gpus/0000:19:00.0/information": "Model: H100"}
    return host(name, known, folders={"/proc/driver/nvidia-nvswitch/devices": names} if names else {})


@pytest.mark.parametrize("left", [3, 0])
def test_a_lost_switch_of_nvlink(left: int) -> None:
    hosts = [*(with_switches(f"n{number}", 4) for number in range(5)), with_switches("odd", left)]
    message = f"NVLink switches {left}, 5 others 4"
    assert wrong(of(NV_SWITCHES, *hosts)) == [("odd", "", Outcome.FAIL, message)]
    assert wrong(of(NV_SWITCHES, *hosts[:5], host("cpu"))) == []
    assert wrong(of(NV_SWITCHES, *(with_switches(f"n{number}", 0) for number in range(3)))) == []
