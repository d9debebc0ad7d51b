"""Outputs of programs that end too early: a document without its end is an error of its program, and never a pass.

Tables have no end that is known: what is left of them raises nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

import pytest
from preflight_help import SAMPLES, host, nic, sample
from tuned_hosts import smi

from fablint.model.preflight_results import Outcome, Result
from fablint.preflight.check_registry import CHECKS
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import GPUS
from fablint.preflight.runner import judge
from fablint.snapshot.host_snapshot import Output
from fablint.snapshot.parsers.documents import is_cut_off

CUTS = 40  # of each text, at equal distances
_LISTED = [{"gpu": gpu, "bdf": f"0000:{gpu + 1:02x}:00.0"} for gpu in range(2)]
_BLOCKS = {"UMC": {"correctable_count": 1, "uncorrectable_count": 0, "deferred_count": 0}}
_STATIC = [{"gpu": gpu["gpu"], "bus": gpu, "driver": {"name": "amdgpu", "version": "6.14.14"}} for gpu in _LISTED]
_TESTED = [{"name": "Memory", "results": [{"gpu_ids": "0", "status": "Pass"}, {"gpu_ids": "1", "status": "Pass"}]}]


class Form(NamedTuple):
    """An output without a fault, and the other outputs that its checks read."""

    text: str
    others: Mapping[str, str] = {}


_ADDRESSES = {"ip-addr": sample("host/ip-j-addr-two-rails.json"), "ip-rule": sample("host/ip-j-rule.json")}
DOCUMENTS = {
    "amd-smi-list": Form(json.dumps(_LISTED, indent=4)),
    "amd-smi-metric": Form(json.dumps([{"gpu": 0, "ecc_blocks": _BLOCKS}], indent=4)),
    "amd-smi-bad-pages": Form(json.dumps({"gpu_data": [{"gpu": 0, "retired": "No bad pages found."}]}, indent=4)),
    "amd-smi-static": Form("WARNING: the user is in no group render\n" + json.dumps({"gpu_data": _STATIC}, indent=4)),
    "amd-smi-firmware": Form(json.dumps([{"gpu": 0, "fw_list": [{"fw_id": "SMU", "fw_version": "4.8"}]}], indent=4)),
    "dcgmi": Form(json.dumps({"DCGM Diagnostic": {"test_categories": [{"tests": _TESTED}]}}, indent=2)),
    "ip-addr": Form(_ADDRESSES["ip-addr"]),
    "ip-route": Form(sample("host/ip-j-route.json"), _ADDRESSES),
    "lldpcli": Form(sample("lldpcli-json0-two-ports.json")),
    "nvidia-smi-q": Form(smi(2)),
}
TABLES = [  # names of outputs, and of samples
    ("cxi_gpu_loopback_bw/cxi0", "slingshot/cxi_gpu_loopback_bw.txt"),
    ("cxi_healthcheck", "slingshot/cxi_healthcheck-fail.txt"),
    ("ethtool-i/hsn0", "host/ethtool-i-veth.txt"),
    ("fmn-show-status", "slingshot/fmn-show-status-v2.txt"),
    ("fmn-update-compute-hsn-health/hsn0", "slingshot/fmn-update-compute-hsn-health.txt"),
    ("ib_write_bw/mlx5_0", "misc/ib_write_bw-rxe0.txt"),
    ("ibnetdiscover", "fattree16-bad/ibnetdiscover.txt"),
    ("ibqueryerrors", "ibsim/fattree16-bad/ibqueryerrors.txt"),
    ("lldptool/hsn0", "lldptool-tn-hsn0.txt"),
    ("nvidia-smi-nvlink", "misc/nvidia-smi-nvlink-s.txt"),
    ("opainfo", "misc/opainfo.txt"),
    ("slingshot-diag/hsn0", "slingshot/slingshot-diag-aer.txt"),
    *((f"amd-smi-{path.stem}", f"amd_smi/{path.name}") for path in sorted((SAMPLES / "amd_smi").iterdir())),
]
_FILES = {**nic("hsn0"), **nic("hsn1"), f"{GPUS}/0000:01:00.0/information": "Model: H100"}


def results_of(name: str, text: str, others: Mapping[str, str] = {}) -> list[Result]:
    outputs = {name: Output(text, status=0), **{key: Output(one, status=0) for key, one in others.items()}}
    hosts = [host("n1", _FILES, commands=outputs)]
    return list(judge(Fleet(hosts, fabric=hosts[0].snapshot), CHECKS).results)


def cuts(text: str) -> list[str]:
    """Return the text cut off at equal distances, within its first and its last document brackets."""
    begin = max(min((at for at in map(text.find, ("{", "[", "<")) if at >= 0), default=0) + 6, 1)
    end = max(map(text.rstrip().rfind, ("}", "]", "<")))
    return [text[: begin + (end - begin) * number // CUTS] for number in range(CUTS + 1)]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_without_its_end_is_an_error_and_no_pass(name: str) -> None:
    form = DOCUMENTS[name]
    whole = results_of(name, form.text, form.others)
    assert Outcome.ERROR not in {result.outcome for result in whole}
    others = {result[:4] for result in results_of("other", "", form.others)}
    for text in cuts(form.text):
        assert is_cut_off(text) or name.startswith("ip-")
        results = [result for result in results_of(name, text, form.others) if result[:4] not in others]
        assert any(result.outcome is Outcome.ERROR for result in results), text[-40:]
        assert not any(result.outcome is Outcome.PASS for result in results), text[-40:]


@pytest.mark.parametrize(("name", "file"), TABLES)
def test_a_table_without_its_end_is_judged(name: str, file: str) -> None:
    text = sample(file)
    for number in range(CUTS):
        results = results_of(name, text[: len(text) * number // CUTS])
        assert {result.check for result in results} == {check.id for check in CHECKS}
        assert all(result.message for result in results if result.outcome is not Outcome.PASS)


@pytest.mark.parametrize(
    "text",
    ["", "gpu,gpu_bdf\n0,0000:01:00.0\n", "GPU: 0\n    BDF: 0000:01:00.0\n", "[WARNING] no group\n", "[]", "{}",
     "{{x}}", '<?xml version="1.0" ?>\n<nvidia_smi_log>\n</nvidia_smi_log>\n', '[\n]\n{"a": 1}'],
)  # fmt: skip
def test_what_is_no_document_or_has_its_end_is_not_cut_off(text: str) -> None:
    assert not is_cut_off(text)
