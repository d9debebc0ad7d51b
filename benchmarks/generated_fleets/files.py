"""Files of /sys and /proc of a machine, by path. `@{NAME}` stands for what each host has of its own."""

from __future__ import annotations

from collections.abc import Iterator

from generated_fleets.machines import Machine, Rail
from generated_fleets.tuning import tuning_counters_of, tuning_of

DEVICES = 220  # of the PCI bus
TRAFFIC = 48  # different counters of traffic of a host
_LIMITS = (
    "Limit                     Soft Limit           Hard Limit           Units     \n"
    "Max open files            131072               131072               files     \n"
    "Max locked memory         unlimited            unlimited            bytes     "
)
_ERRORS = [
    "symbol_error",
    "link_error_recovery",
    "link_downed",
    "port_rcv_errors",
    "port_rcv_remote_physical_errors",
    "port_rcv_switch_relay_errors",
    "port_xmit_discards",
    "port_xmit_constraint_errors",
    "port_rcv_constraint_errors",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
    "VL15_dropped",
    "port_xmit_wait",
]
_MOVED = [
    "port_xmit_data",
    "port_rcv_data",
    "port_xmit_packets",
    "port_rcv_packets",
    "unicast_xmit_packets",
    "unicast_rcv_packets",
    "multicast_xmit_packets",
    "multicast_rcv_packets",
]
_HARDWARE = [
    "out_of_sequence",
    "packet_seq_err",
    "local_ack_timeout_err",
    "rnr_nak_retry_err",
    "duplicate_request",
    "implied_nak_seq_err",
    "out_of_buffer",
    "req_cqe_error",
    "resp_cqe_error",
    "roce_adp_retrans",
    "roce_slow_restart",
    "np_cnp_sent",
    "rp_cnp_handled",
    "np_ecn_marked_roce_packets",
    "rx_icrc_encapsulated",
    "req_remote_access_errors",
    "resp_remote_access_errors",
]
_AER = {
    "aer_dev_correctable": "RxErr 0\nBadTLP 0\nBadDLLP 0\nRollover 0\nTimeout 0\nNonFatalErr 0\nTOTAL_ERR_COR 0",
    "aer_dev_nonfatal": "Undefined 0\nDLP 0\nSDES 0\nTLP 0\nFCP 0\nCmpltTO 0\nTOTAL_ERR_NONFATAL 0",
    "aer_dev_fatal": "Undefined 0\nDLP 0\nSDES 0\nTLP 0\nFCP 0\nCmpltTO 0\nTOTAL_ERR_FATAL 0",
}


def files_of(machine: Machine) -> dict[str, str]:
    """Files that are read once."""
    files = dict(_host(machine)) | tuning_of(machine)
    files |= _pci(machine)
    files |= _interface("eno1", "@{MAC_MGMT}", 1500, 1000, "1")
    for index, rail in enumerate(machine.rails):
        kind = "32" if machine.link == "infiniband" else "1"
        speed = -1 if machine.link == "infiniband" else machine.speed_mbit
        files |= _interface(rail.interface, f"@{{MAC{index}}}", machine.mtu, speed, kind)
        files |= _slot(f"/sys/class/net/{rail.interface}/device", machine, index)
        if machine.link in ("infiniband", "roce"):
            files |= _rdma(machine, rail, index)
        elif machine.link == "slingshot":
            files |= _slingshot(machine, rail, index)
    for name in ("all", "default", "eno1", *(rail.interface for rail in machine.rails)):
        at = f"/proc/sys/net/ipv4/conf/{name}"
        files |= {f"{at}/rp_filter": "0", f"{at}/arp_ignore": "1", f"{at}/arp_announce": "2", f"{at}/arp_filter": "0"}
        files[f"{at}/accept_local"] = "0"
    return files


def counters_of(machine: Machine) -> dict[str, str]:
    """Counters. `@{C0}` is one that grows during the snapshot, errors are 0."""
    counters = tuning_counters_of(machine)
    grown = iter(range(10**6))
    for name in ("eno1", *(rail.interface for rail in machine.rails)):
        at = f"/sys/class/net/{name}"
        counters |= {f"{at}/carrier_changes": "2", f"{at}/carrier_up_count": "1", f"{at}/carrier_down_count": "1"}
        for side in ("rx", "tx"):
            for what in ("bytes", "packets"):
                counters[f"{at}/statistics/{side}_{what}"] = f"@{{C{next(grown) % TRAFFIC}}}"
            counters |= {f"{at}/statistics/{side}_errors": "0", f"{at}/statistics/{side}_dropped": "0"}
        for what in ("crc", "frame", "missed", "over", "fifo"):
            counters[f"{at}/statistics/rx_{what}_errors"] = "0"
    for rail in machine.rails:
        counters |= {f"/sys/class/net/{rail.interface}/device/{name}": text for name, text in _AER.items()}
        if machine.link in ("infiniband", "roce"):
            at = f"/sys/class/infiniband/{rail.device}"
            counters |= {f"{at}/device/{name}": text for name, text in _AER.items()}
            counters |= {f"{at}/ports/1/counters/{name}": "0" for name in _ERRORS}
            counters |= {f"{at}/ports/1/counters/{name}": f"@{{C{next(grown) % TRAFFIC}}}" for name in _MOVED}
            counters |= {f"{at}/ports/1/hw_counters/{name}": "0" for name in _HARDWARE}
        elif machine.link == "slingshot":
            counters |= dict(_telemetry(rail))
    counters["/proc/net/netstat"] = (
        "TcpExt: SyncookiesSent TW DelayedACKs ListenOverflows ListenDrops TCPHPHits TCPLostRetransmit "
        "IPReversePathFilter\n"
        "TcpExt: 0 @{C1} @{C2} 0 0 @{C3} 0 0\n"
        "IpExt: InNoRoutes InTruncatedPkts InMcastPkts InOctets OutOctets\nIpExt: 0 0 @{C4} @{C5} @{C6}"
    )
    counters["/proc/net/snmp"] = (
        "Ip: Forwarding DefaultTTL InReceives InDiscards\nIp: 2 64 @{C7} 0\n"
        "Tcp: RtoAlgorithm ActiveOpens PassiveOpens RetransSegs\nTcp: 1 @{C8} @{C9} 12\n"
        "Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\nUdp: @{C10} 4 0 @{C11} 0"
    )
    head = "entries  allocs   destroys hash_grows lookups  hits     res_failed table_fulls"
    rows = [f"0000001c {row:08x} 00000000 00000000 0000ffff 0000fff0 00000000 00000000" for row in range(machine.cpus)]
    counters["/proc/net/stat/arp_cache"] = "\n".join([head, *rows])
    return counters


def _host(machine: Machine) -> Iterator[tuple[str, str]]:
    cpu, half = "/sys/devices/system/cpu", machine.cpus - 1
    for index in range(machine.cpus):
        yield f"{cpu}/cpu{index}/cpufreq/scaling_governor", "performance"
    for index, (name, latency) in enumerate((("POLL", 0), ("C1", 2), ("C1E", 10))):
        at = f"{cpu}/cpu0/cpuidle/state{index}"
        yield from {f"{at}/name": name, f"{at}/latency": str(latency), f"{at}/disable": "0"}.items()
    yield f"{cpu}/online", f"0-{half}"
    yield f"{cpu}/smt/active", "1"
    yield "/sys/devices/system/node/online", f"0-{machine.nodes - 1}"
    yield "/sys/devices/system/node/has_cpu", f"0-{machine.nodes - 1}"
    identity = "/sys/devices/virtual/dmi/id"
    yield f"{identity}/bios_version", machine.bios
    yield f"{identity}/product_name", machine.product
    yield f"{identity}/sys_vendor", machine.vendor
    for group in range(2 * len(machine.rails) + machine.gpus):
        yield f"/sys/kernel/iommu_groups/{group}/type", "identity"
    yield "/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never"
    yield f"/sys/module/{machine.driver}/version", machine.driver_version
    if machine.gpus and machine.vendor != "HPE":
        yield "/sys/module/nvidia/version", "550.90.07"
    elif machine.gpus:
        yield "/sys/module/amdgpu/version", "6.3.6"
    kernel = "/proc/sys/kernel"
    yield f"{kernel}/osrelease", machine.kernel
    yield f"{kernel}/hostname", "@{HOST}"
    yield f"{kernel}/numa_balancing", "0"
    yield f"{kernel}/dmesg_restrict", "0"
    yield f"{kernel}/random/boot_id", "@{BOOT}"
    neighbours = "/proc/sys/net/ipv4/neigh/default"
    for name, value in (("gc_thresh1", 65536), ("gc_thresh2", 98304), ("gc_thresh3", 131072), ("gc_stale_time", 60)):
        yield f"{neighbours}/{name}", str(value)
    yield f"{neighbours}/base_reachable_time_ms", "30000"
    yield (
        "/proc/meminfo",
        (
            "MemTotal:       @{MEMORY} kB\nMemFree:        @{FREE} kB\nMemAvailable:   @{FREE} kB\n"
            "Cached:         @{C12} kB\nSwapTotal:             0 kB\nSwapFree:              0 kB\n"
            "HugePages_Total:       0\nHugePages_Free:        0\nHugePages_Rsvd:        0\nHugepagesize:       2048 kB"
        ),
    )
    yield "/proc/cmdline", "BOOT_IMAGE=/vmlinuz root=live:nfs ro quiet iommu=pt processor.max_cstate=1 @{TOKEN}"
    yield "/proc/uptime", "@{UPTIME} 99999999.00"
    yield "/proc/loadavg", "0.@{LOAD} 0.05 0.01 2/3210 @{PID}"
    flags = "tsc rdtscp constant_tsc nonstop_tsc"
    yield (
        "/proc/cpuinfo",
        f"processor\t: 0\nmodel name\t: {machine.cpu}\nmicrocode\t: {machine.microcode}\nflags\t\t: {flags}",
    )
    yield "/proc/self/limits", _LIMITS
    yield "/etc/hostname", "@{HOST}"
    yield "/etc/machine-id", "@{ID}"
    yield "/etc/resolv.conf", "search cluster.example\nnameserver 10.255.0.2\nnameserver 10.255.0.3"
    yield "/etc/os-release", 'NAME="Rocky Linux"\nPRETTY_NAME="Rocky Linux 9.4 (Blue Onyx)"\nVERSION_ID="9.4"'


def _interface(name: str, mac: str, mtu: int, speed: int, kind: str) -> dict[str, str]:
    at = f"/sys/class/net/{name}"
    index = str(2 + sum(map(ord, name)) % 50)
    result = {"address": mac, "mtu": str(mtu), "operstate": "up", "carrier": "1", "type": kind, "flags": "0x1003"}
    return {
        f"{at}/{key}": text for key, text in {**result, "speed": str(speed), "duplex": "full", "ifindex": index}.items()
    }


def _slot(at: str, machine: Machine, index: int) -> dict[str, str]:
    vendor, device = machine.pci_ids
    lanes, node = str(machine.lanes), str(index * machine.nodes // len(machine.rails))
    result = {"vendor": vendor, "device": device, "numa_node": node}
    result |= {"current_link_width": lanes, "max_link_width": lanes}
    result |= {"current_link_speed": machine.lane_speed, "max_link_speed": machine.lane_speed}
    return {f"{at}/{key}": text for key, text in result.items()}


def _rdma(machine: Machine, rail: Rail, index: int) -> dict[str, str]:
    at = f"/sys/class/infiniband/{rail.device}"
    result = _slot(f"{at}/device", machine, index)
    result |= {
        f"{at}/fw_ver": machine.firmware.split()[0],
        f"{at}/board_id": machine.psid,
        f"{at}/hca_type": machine.card,
    }
    result |= {f"{at}/node_desc": f"@{{HOST}} {rail.device}", f"{at}/node_guid": f"@{{GUID{index}}}"}
    result[f"{at}/node_type"] = "1: CA"
    port = f"{at}/ports/1"
    is_infiniband = machine.link == "infiniband"
    result |= {f"{port}/state": "4: ACTIVE", f"{port}/phys_state": "5: LinkUp", f"{port}/sm_sl": "0"}
    result |= {f"{port}/rate": machine.rate, f"{port}/cap_mask": "0xa751e848" if is_infiniband else "0x10000"}
    result |= {f"{port}/link_layer": "InfiniBand" if is_infiniband else "Ethernet"}
    result |= {
        f"{port}/lid": f"@{{LID{index}}}" if is_infiniband else "0x0",
        f"{port}/sm_lid": "0x1" if is_infiniband else "0x0",
    }
    result[f"{port}/gid_attrs/ndevs/0"] = rail.interface
    return result


def _slingshot(machine: Machine, rail: Rail, index: int) -> dict[str, str]:
    """As the driver of HPE Slingshot NICs shows a port below /sys/class/cxi (public sources of shs-cxi-driver)."""
    at = f"/sys/class/cxi/{rail.device}/device"
    slingshot = _slot(at, machine, index)
    port = {
        "link": "up",
        "speed": "BS_200G",
        "link_layer_retry": "on",
        "loopback": "off",
        "pause": "pfc/802.1qbb",
        "media": "electrical",
    }
    slingshot |= {f"{at}/port/{key}": text for key, text in port.items()}
    slingshot |= {f"{at}/properties/nid": f"@{{NID{index}}}", f"{at}/properties/nic_addr": f"@{{NID{index}}}"}
    slingshot |= {
        f"{at}/uc/version": machine.firmware,
        f"{at}/fru/part_number": "P43012-001",
        f"{at}/fru/description": "SA220",
    }
    slingshot |= {f"{at}/link_restarts/time_{slot}": "0" for slot in range(10)}
    return slingshot


def _telemetry(rail: Rail) -> Iterator[tuple[str, str]]:
    at = f"/sys/class/cxi/{rail.device}/device"
    for name, text in _AER.items():
        yield f"{at}/{name}", text
    zero = ["hni_pcs_uncorrected_cw", "hni_tx_stall_llr", "hni_fgfc_discard"]
    zero += [f"hni_{side}_bad_{kind}" for side in ("rx",) for kind in ("opt", "ieee")]
    zero += [f"hni_tx_poisoned_{kind}" for kind in ("opt", "ieee")]
    zero += [f"hni_llr_{side}_replay_event" for side in ("tx", "rx")]
    zero += [
        f"hni_{what}_{lane}"
        for what in ("discard_cntr", "pfc_fifo_oflw_cntr", "rx_paused", "tx_paused")
        for lane in range(8)
    ]
    for name in zero:
        yield f"{at}/telemetry/{name}", "0@@{MOMENT}"
    yield f"{at}/telemetry/hni_pcs_corrected_cw", "@{C13}@@{MOMENT}"
    yield f"{at}/telemetry/hni_pcs_good_cw", "@{GOOD}@@{MOMENT}"
    for side in ("rx", "tx"):
        yield f"{at}/telemetry/hni_{side}_ok_opt", "@{C14}@@{MOMENT}"
        yield f"{at}/telemetry/hni_{side}_ok_ieee", "@{C15}@@{MOMENT}"
    run = f"/run/cxi/{rail.device}"
    for name in ("nacks", "nack_no_matching_conn", "nack_sequence_error", "parked_nids", "connections_cancelled"):
        yield f"{run}/{name}", "0"
    for name in ("sct_timeouts", "spt_timeouts", "tct_timeouts", "pkts_cancelled_o", "pkts_cancelled_u"):
        yield f"{run}/{name}", "0"


def _pci(machine: Machine) -> dict[str, str]:
    """Bridges, NICs and GPUs; as many functions as machines of this size have."""
    result: dict[str, str] = {}
    rails = {rail.pci for rail in machine.rails}
    gpus = [f"0000:{0x1B + 0x1C * index:02x}:00.1"[:-1] + "0" for index in range(machine.gpus)]
    others = [f"0000:{0xE0 + index // 32:02x}:{index % 32:02x}.0" for index in range(DEVICES)]
    for address in (*sorted(rails), *gpus, *others):
        kind = "0x020700" if machine.link == "infiniband" else "0x020000"
        kind = kind if address in rails else machine.gpu_class if address in gpus else "0x060400"
        wide = address in rails or address in gpus
        lanes, speed = (str(machine.lanes), machine.lane_speed) if wide else ("4", "16.0 GT/s PCIe")
        vendor, device = (
            machine.pci_ids if address in rails else ("0x10de", "0x2330") if address in gpus else ("0x1022", "0x1483")
        )
        at = f"/sys/bus/pci/devices/{address}"
        result |= {f"{at}/class": kind, f"{at}/numa_node": "0", f"{at}/vendor": vendor, f"{at}/device": device}
        result |= {f"{at}/current_link_width": lanes, f"{at}/max_link_width": lanes}
        result |= {f"{at}/current_link_speed": speed, f"{at}/max_link_speed": speed}
    if machine.vendor != "HPE":
        result |= {f"/proc/driver/nvidia/gpus/{at}/information": "Model: \t\t NVIDIA H100 80GB HBM3" for at in gpus}
    return result
