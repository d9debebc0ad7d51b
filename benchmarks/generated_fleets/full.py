"""Outputs of programs that are requested at level full: ethtool, lspci, nvidia-smi, loopback tests, the probe.

Written after ethtool(8), SFF-8636 as ethtool prints it, lspci(8), NVIDIA's nvsmi_device_v12.dtd, the documentation of
mlx5's counters, of HPE's cxi_service and cxi_gpu_loopback_bw, and of perftest.
"""

from __future__ import annotations

import json

from generated_fleets.machines import Machine

_FEATURES = (
    "rx-checksumming: on\ntx-checksumming: on\n\ttx-checksum-ipv4: on\n\ttx-checksum-ipv6: on\nscatter-gather: on\n"
    "tcp-segmentation-offload: on\n\ttx-tcp-segmentation: on\ngeneric-segmentation-offload: on\n"
    "generic-receive-offload: on\nlarge-receive-offload: off\nntuple-filters: off\nreceive-hashing: on\n"
)
_RINGS = (
    "Pre-set maximums:\nRX:\t\t8192\nRX Mini:\tn/a\nTX:\t\t8192\n"
    "Current hardware settings:\nRX:\t\t1024\nRX Mini:\tn/a\nTX:\t\t1024\n"
)
_COALESCING = (
    "Adaptive RX: off  TX: off\nstats-block-usecs:\tn/a\n\n"
    "rx-usecs:\t8\nrx-frames:\t128\ntx-usecs:\t8\ntx-frames:\t128\n"
)
_FLAGS = ("Laser rx power low", "Laser rx power high", "Laser tx bias current high", "Module temperature high")
_LANES = (1, 2, 3, 4)
_REASONS = ("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown", "sw_power_cap")
_NVLINKS = 18


def full_outputs_of(machine: Machine, *, root: bool) -> dict[str, str]:
    """Outputs by the collector's name for the program."""
    said = {"lspci": _lspci(machine, root=root), "probe": _probe(machine)}
    for name in ("eno1", *(rail.interface for rail in machine.rails)):
        said |= _of_interface(machine, name)
    for index, rail in enumerate(machine.rails):
        if machine.link == "slingshot":
            row = "   1048576     13420     @{LOOP}      0.011\n"
            said[f"cxi_gpu_loopback_bw/{rail.device}"] = f"RDMA Size[B]  Writes  BW[Gb/s]  PktRate[Mpkt/s]\n{row}"
        elif machine.is_rdma:
            said[f"ib_write_bw/{rail.device}"] = _write_bw(machine, index)
    if machine.link == "slingshot":
        said["cxi_service"] = "".join(
            f"{rail.device}\n----\n ID: 1 (DEFAULT)\n   LNIs/RGID: 1\n   Enabled : Yes\n" for rail in machine.rails
        )
    if machine.has_nvidia:
        said |= _nvidia(machine)
    return said


def gpu_address(index: int) -> str:
    return f"0000:{0x1B + 0x1C * index:02x}:00.0"


def _of_interface(machine: Machine, nic: str) -> dict[str, str]:
    fec = f"FEC parameters for {nic}:\nSupported/Configured FEC encodings: Auto RS\nActive FEC encoding: RS\n"
    statistics = f"{fec}Statistics:\n  corrected_blocks: 0\n  uncorrectable_blocks: 0\n"
    counters = (
        "     rx_pause_ctrl_phy: @{PAUSED}\n     tx_pause_ctrl_phy: @{PAUSED}\n     tx_pause_storm_warning_events: 0\n"
    )
    return {
        f"ethtool-k/{nic}": f"Features for {nic}:\n{_FEATURES}",
        f"ethtool-g/{nic}": f"Ring parameters for {nic}:\n{_RINGS}",
        f"ethtool-c/{nic}": f"Coalesce parameters for {nic}:\n{_COALESCING}",
        f"ethtool-S/{nic}": counters,
        f"ethtool-S-later/{nic}": counters,
        f"ethtool-a/{nic}": f"Pause parameters for {nic}:\nAutonegotiate:\toff\nRX:\t\toff\nTX:\t\toff\n",
        f"ethtool-fec/{nic}": statistics if machine.has_lldp else fec,
        f"ethtool-fec-later/{nic}": statistics if machine.has_lldp else fec,
        f"ethtool-m/{nic}": _module(),
    }


def _module() -> str:
    lines = [" Identifier                          : 0x11 (QSFP28)", " Vendor name                         : EXAMPLE"]
    for flag in _FLAGS:
        for kind in ("alarm", "warning"):
            lanes = _LANES if flag.startswith("Laser") else (0,)
            words = [f"{flag} {kind}" + (f"   (Channel {lane})" if lane else "") for lane in lanes]
            lines += [f" {text:<42}: Off" for text in words]
    return "\n".join(lines) + "\n"


def _lspci(machine: Machine, *, root: bool) -> str:
    """Bridges with a NIC or a GPU below each. Sizes and ACS are shown to root only."""
    kind = "Infiniband controller" if machine.link == "infiniband" else "Ethernet controller"
    devices = [(rail.pci, kind) for rail in machine.rails]
    devices += [(gpu_address(index), "3D controller") for index in range(machine.gpus)]
    parts = []
    for address, name in devices:
        bus = address[5:7]
        if address.endswith(".0"):
            bridge = f"0000:{bus[0]}{bus[1]}:1f.0" if bus != "00" else "0000:00:01.0"
            control = "ACSCtl:\tSrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-"
            shown = f"\tCapabilities: [150 v1] Access Control Services\n\t\t{control}\n" if root else _DENIED
            buses = f"\tBus: primary=00, secondary={bus}, subordinate={bus}, sec-latency=0\n"
            parts.append(f"{bridge} PCI bridge: Example Device 1234 (rev 01)\n{buses}{shown}")
        sizes = "\t\t\tMaxPayload 512 bytes, MaxReadReq 4096 bytes\n"
        shown = (
            f"\tCapabilities: [60] Express (v2) Endpoint, MSI 00\n\t\tDevCtl:\tCorrErr+\n{sizes}" if root else _DENIED
        )
        parts.append(f"{address} {name}: Example Device 5678\n{shown}")
    return "\n".join(parts)


_DENIED = "\tCapabilities: <access denied>\n"


def _write_bw(machine: Machine, index: int) -> str:
    head = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
    return f"{head} 65536      1500000          0.00               @{{LOOP}}             0.7{index}\n"


def _probe(machine: Machine) -> str:
    halves = {
        name: {"rate": f"@{{{mark}}}", "spread": 0.012, "slowest": 3, "share": 0.97}
        for name, mark in (("copy", "COPY"), ("hash", "HASH"))
    }
    said = {
        "cores": machine.cpus // 2,
        "with": "memcpy, Python 3.9.18",
        "others": "@{OTHERS}",
        "seconds": 1.09,
        **halves,
    }
    text = json.dumps(said, sort_keys=True)
    return text.replace('"@{', "@{").replace('}"', "}")


def _nvidia(machine: Machine) -> dict[str, str]:
    gpus = range(machine.gpus)
    heads = [f"GPU {gpu}: NVIDIA H100 80GB HBM3 (UUID: @{{UUID}}{gpu})\n" for gpu in gpus]
    links = "".join(f"\t Link {link}: 26.562 GB/s\n" for link in range(_NVLINKS))
    kinds = ("Replay", "Recovery", "CRC")
    errors = "".join(f"\t Link {link}: {kind} Errors: 0\n" for link in range(_NVLINKS) for kind in kinds)
    counted = "".join(head + errors for head in heads)
    return {
        "nvidia-smi-nvlink": "".join(head + links for head in heads),
        "nvidia-smi-nvlink-errors": counted + counted,
        "nvidia-smi-q": (
            '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n<nvidia_smi_log>\n'
            "\t<driver_version>550.90.07</driver_version>\n"
            + "".join(_gpu(index) for index in gpus)
            + "</nvidia_smi_log>\n"
        ),
    }


def _gpu(index: int) -> str:
    reasons = {f"clocks_event_reason_{name}": "Not Active" for name in _REASONS}
    groups = {
        "mig_mode": {"current_mig": "Disabled", "pending_mig": "Disabled"},
        "clocks_event_reasons": {"clocks_event_reason_gpu_idle": "Active", **reasons},
        "ecc_mode": {"current_ecc": "Enabled", "pending_ecc": "Enabled"},
        "remapped_rows": {
            "remapped_row_corr": "0",
            "remapped_row_unc": "0",
            "remapped_row_pending": "No",
            "remapped_row_failure": "No",
        },
        "gpu_power_readings": {"instant_power_draw": "@{WATT} W", "current_power_limit": "700.00 W"},
        "fabric": {"state": "Completed", "status": "Success"},
    }
    fields = {
        "product_name": "NVIDIA H100 80GB HBM3",
        "persistence_mode": "Enabled",
        "uuid": f"@{{UUID}}{index}",
        "vbios_version": "96.00.99.00.01",
        "compute_mode": "Default",
    }
    volatile = "".join(
        f"<{name}>0</{name}>" for name in ("sram_correctable", "sram_uncorrectable_parity", "dram_uncorrectable")
    )
    text = "".join(f"\t\t<{name}>{value}</{name}>\n" for name, value in fields.items())
    for group, values in groups.items():
        inner = "".join(f"<{name}>{value}</{name}>" for name, value in values.items())
        text += f"\t\t<{group}>{inner}</{group}>\n"
    text += f"\t\t<ecc_errors><volatile>{volatile}</volatile></ecc_errors>\n"
    return f'\t<gpu id="{gpu_address(index).upper().replace("0000:", "00000000:")}">\n{text}\t</gpu>\n'
