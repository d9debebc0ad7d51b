"""Check of the counters of RDMA drivers: packets that were lost, damaged or retransmitted, requests that failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fablint.preflight.check import Check
from fablint.preflight.host import INFINIBAND, Host
from fablint.preflight.judges import growth
from fablint.preflight.judges.growth import CountedPart, Limit, any_excess

_LOSS = Limit(1, 10)
_RETRIES = Limit(10, 100)  # of protocols that retry by design, and of requests that a job without errors can cause
_NOT_READY = Limit(100, 10_000)  # a receiver without buffers: the program's, unless far more than on other hosts
_NO_ANSWER = Limit(1, 1)


def _limits(*groups: tuple[Limit, str]) -> Mapping[str, Limit]:
    return {name: limit for limit, names in groups for name in names.split()}


_LIMITS_OF_DRIVERS = {
    "mlx5, bnxt_re since Linux 6.15": _limits(
        (_LOSS, "packet_seq_err out_of_sequence local_ack_timeout_err implied_nak_seq_err"),
        (_LOSS, "req_transport_retries_exceeded req_rnr_retries_exceeded rx_icrc_encapsulated roce_adp_retrans_to"),
        (_NOT_READY, "rnr_nak_retry_err"),
    ),
    "mlx4": _limits((_LOSS, "rq_num_oos sq_num_oos sq_num_to sq_num_tree sq_num_rree"), (_NOT_READY, "sq_num_rnr")),
    "bnxt_re": _limits(
        (_LOSS, "to_retransmits seq_err_naks_rcvd missing_resp max_retry_exceeded unrecoverable_err"),
        (_LOSS, "rx_roce_discards tx_roce_discards"),
        (_LOSS, "oos_drop_count rx_roce_errors tx_roce_errors"),  # until Linux 6.14
        (_LOSS, "res_oos_drop_count rx_roce_error_pkts tx_roce_error_pkts"),  # the driver of Broadcom
        (_NO_ANSWER, "res_rx_pci_err res_tx_pci_err"),
        (_NOT_READY, "rnr_naks_rcvd"),
    ),
    "irdma": _limits(
        (Limit(1, 100), "tcpRetransSegs RetransSegs"),  # the first until Linux 6.17
        (_LOSS, "RTO tcpInOptErrors tcpInProtoErrors InOptErrors InProtoErrors"),
        (_LOSS, "ip4InTruncatedPkts ip6InTruncatedPkts"),
        (_RETRIES, "ip4InDiscards ip6InDiscards"),
    ),
    "mana_ib": _limits(
        (_LOSS, "requester_timeout requester_oos_nak requester_implicit_nak responder_oos"),
        (_NOT_READY, "requester_rnr_nak"),
    ),
    "rdma_rxe": _limits((_LOSS, "out_of_seq_request rcvd_seq_err retry_exceeded_err retry_rnr_exceeded_err")),
    "efa": _limits(  # its protocol sends over many paths and repeats some packets by design
        (_RETRIES, "retrans_timeout_events unresponsive_remote_events impaired_remote_conn_events"),
        (_RETRIES, "rdma_read_wr_err rdma_write_wr_err"),
        (Limit(100, 1000), "rx_drops"),
        (Limit(10_000, 10_000_000), "retrans_pkts"),
        (_NO_ANSWER, "no_completion_cmds"),
    ),
}
_LIMITS = {name: limit for limits in _LIMITS_OF_DRIVERS.values() for name, limit in limits.items()}
_FILES = {name: name for name in _LIMITS}
_BY_DRIVER = "; ".join(f"{driver}: {', '.join(limits)}" for driver, limits in _LIMITS_OF_DRIVERS.items())


def _counted_parts(host: Host) -> Iterator[CountedPart]:
    """Yield the devices and ports that have counters of their driver, with these."""
    for device in host.snapshot.names(INFINIBAND):
        yield from _counted_part(host, device, f"{INFINIBAND}/{device}/hw_counters")
    for port in host.ports:
        yield from _counted_part(host, port.target, f"{port.folder}/hw_counters")


def _counted_part(host: Host, target: str, folder: str) -> Iterator[CountedPart]:
    first, last = host.snapshot.readings_in(folder)
    if first or last:
        files = {name: name for name in _FILES if isinstance(first.get(name) or last.get(name), str)}
        part = CountedPart(target, folder, files)
        if part.grows(host):
            yield part


IB_LOSS = Check(
    id="ib.roce.loss",
    what="packets that were lost, damaged or retransmitted, and requests that timed out or failed",
    source=f"{INFINIBAND}/DEVICE/hw_counters, {INFINIBAND}/DEVICE/ports/PORT/hw_counters. {_BY_DRIVER}",
    rule=(
        "none during the snapshot, fewer than 10 in an hour, more for receivers that were not ready and for protocols "
        "that retry by design; at the first reading totals not far above those of peers, or without peers not above "
        "that on average since boot"
    ),
    remedy=(
        "RoCE: check PFC, ECN and buffers along the path; InfiniBand: check link errors; receivers that were not ready "
        "(rnr): the program posts too few buffers"
    ),
    judge=growth(_LIMITS, _counted_parts, any_excess(), "no RDMA device with these counters"),
)
