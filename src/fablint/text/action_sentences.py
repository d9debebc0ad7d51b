"""Sentences for the actions of a next step: one table, with an entry for each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fablint.model.names import fold
from fablint.text.sentence_words import Words

if TYPE_CHECKING:
    from fablint.model import ComponentRef
    from fablint.model.verdict import Action


def _place(component: ComponentRef) -> str:
    """`h07`, `h07 hsn1`, `s3 port 12`; `its switch` for the switch port of a host whose cabling is unknown."""
    if component.kind == "port" and component.title:
        return "its switch"
    end = component.ends[0]
    return fold(end.nodes) + (f" port {end.part}" if component.kind == "port" else f" {end.part}") * bool(end.part)


class ActionWords(Words):
    """`Words` with the components of an action as `{0}` (label), `{0:place}` (first end); `{all}` has all labels."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """One value in words."""
        if format_spec == "place":
            return _place(value)
        return super().format_field(getattr(value, "label", value), format_spec)


# A sentence of each kind of action: a format of its components and values, or a function that returns the format.
ACTIONS: Mapping[str, str | Callable[[Mapping[str, Any]], str]] = {
    # a component that is at fault
    "test_host": "run a loopback test on {0}: if slow, it is the host or its NIC; else move its cable to another port",
    "test_gpu": "read the PCIe width, clocks and errors of {0} (nvidia-smi -q, rocm-smi -a)",
    "move_nic": "move the cable of {0} to another port of the switch and measure again",
    "inspect_switch": "read the error counters, temperature and power of {0}, then measure again around it",
    "inspect_cable": "read the error counters of both ports of {0}, reseat or swap the cable, measure again",
    "inspect_link": "read the error counters at the receiving end of {0}, reseat or swap the cable, measure again",
    "inspect_route": "measure {0} again; if it stays slow, look at the route between them",
    "measure_routes_again": "measure these pairs again; if some stay slow, look at the routes between them",
    "inspect_direction": "measure the messages of {0.ends[0].label} to {0.ends[1].label} again; if it stays slow, look"
    " at the route between them",
    "take_out_of_service": "take {0} out of service",
    # which of the components in series
    "inspect_host": "read the system log, PCIe width and power state of {0}",
    "free_cpus": "list the processes of {0} (top): end those that are not of the job, or let the job have whole hosts",
    "replace_nic": "reseat or change the NIC {0:place}",
    "swap_cable": "swap cable between {0:place} and {1:place}",
    "change_port": "move the cable of {0:place} from {1:place} to another port",
    "read_drops": "read the error and drop counters of {0:place} and of the {1}",
    "test_loopback": "run a loopback test on {0:place}",
    "swap_link_cable": "read the error counters at {1:place}, which receives; reseat or swap the cable {0:place} to"
    " {1:place}",
    "swap_switch_cable": "read the error counters at {0:place} and {1:place}; reseat or swap the cable {0:place} to"
    " {1:place}",
    # late messages and retransmissions
    "read_cable_drops": lambda v: (
        "read the error and drop counters "
        + {"tx": "at the switch port of", "rx": "of the NIC of"}.get(v.get("direction", ""), "at both ends of")
        + " {0}; then reseat or swap its cable"
    ),
    "read_exit_drops": "read the error and drop counters of all ports of {0} to other switches; reseat or swap the"
    " cable whose counters rise",
    # paths and pairs
    "find_cables": "find the cables between {0.ends[0].label} and {0.ends[1].label} (fablint discover --from), then"
    " read the counters of their ports",
    "compare_port_speeds": "compare the negotiated speed of the ports of {0} with what was ordered, or this run with an"
    " earlier one of the same fabric",
    "compare_nic_speeds": "compare with the negotiated speed of the NICs, or with an earlier run of the same fabric",
    "measure_path_alone": "measure slow and healthy pairs across {0} again, alone; read the error counters of all its"
    " cables",
    "inspect_uplinks": "read the load and the error counters of {0}; compare the speed of its uplinks with the others;"
    " measure again when no other job uses them",
    "compare_path_lengths": "compare cable lengths and switches on the path of {0} with the others; measure bandwidth",
    # further measurements
    "retest": lambda v: "`fablint retest {run}`" if v["run"] else "measure again",
    "resume": "finish the run (fablint resume)",
    "measure_component": "measure {0} again",
    "measure_more_partners_of": "measure {0} again, with more partners",
    "measure_more_partners": "measure with more partners",
    "measure_more_pairs": "measure more pairs across them",
    "measure_pairs_serially": "measure one pair at a time (--order serial) across them",
    "measure_longer": "measure longer or with more partners",
    "measure_more_messages": "measure longer",
    "measure_shortest": "measure with minimal routing, if the network has that setting, and with `routing: shortest` in"
    " the topology file",
    "measure_kinds_separately": "measure longer, or each kind of component separately",
    "measure_more_hosts": "measure with at least {hosts} hosts to judge a fabric",
    "measure_serially": "measure again with --order serial: if they are still late, look at what all of these paths"
    " share",
    "measure_after_repair": "measure again when {0} is repaired",
    "measure_other_host_first": "measure again with another host first: is it {0} or the place that is slow?",
    "measure_without_load": "see what else used the fabric then, and measure again",
    "measure_own_cpus": "give every rank a CPU of its own and measure again",
    "measure_bound": "bind every rank to a CPU of its own (the launcher's --bind-to core) and measure again",
    "validate_ends": "measure {0} and {1} with other partners and --validate to tell which end it is",
    "validate_all_pairs": "measure all pairs with --validate: they name the sender",
    "inspect_unmeasured": "see whether {0} took part: its link state, routes and firewall rules; then measure it again",
    "inspect_unmeasured_path": "see the routes, the forwarding tables and the firewall rules between {0.ends[0].label}"
    " and {0.ends[1].label}; then measure again",
    "measure_missing": lambda v: "measure them again" + (" (fablint resume)" if v["resumable"] else ""),
    # comparisons
    "compare_hosts": "compare the hosts of {names:and}: NIC, firmware, driver, CPU, BIOS settings",
    "compare_threshold": "compare the threshold with what this fabric was built for, and look at what all these pairs"
    " share",
    "inspect_memory": "look at clock frequency, memory channels and what else runs on {0}",
    # hosts that do not answer, stall or prevent a launch
    "log_in": "log in to the host; exclude it with -x until it answers",
    "inspect_failed_host": "see whether {0} is up and what its system log says, then resume the run",
    "inspect_system_log": "see the system log of {0} (out of memory, hardware errors), then measure it again",
    "compare_mtu": "compare the MTU of {0} and of its switch port with the others, then the link's error counters",
    "inspect_connections": "on {0}, list the firewall rules (nft list ruleset), compare the interface or provider that"
    " {transport} uses with that of other hosts, and run fablint doctor; then measure again",
    "inspect_path_filters": "list the firewall rules of both (nft list ruleset), see the routes between the two, and"
    " the address tables of their switches",
    "inspect_path_mtu": "see the routes and the MTU between the two, and the address tables of their switches",
    "start_program": "start a program on {0} with the launcher; see its files, libraries and daemon",
    "ping_host": "ping {0} over each NIC from the hosts named; see routes, ARP and forwarding tables on its path",
    "inspect_path_tables": "see the routes between the two, and the forwarding tables of the switches on the path",
    "repair_start": "repair what keeps the launch from starting, then measure {0}",
    # preflight and discovery
    "remedy": "{remedy}",
    "check_cabling": "look where the cable of {0} ends, or correct the topology file",
    "check_cable_end": "check what the cable is connected to",
    "correct_cabling": "correct the cabling or the fabric template, then bring the NIC up again",
    "replace_cable": "reseat the cable, then replace it",
    "replace_down_cable": "reseat or replace the cable; `show-flaps` of the fabric manager shows since when it is down",
    "discover_again": "run discovery again after two minutes, since LLDP keeps old neighbours so long; then check the"
    " cable",
    "resolve_contradiction": "determine which source is right and correct the other, or pass a topology file to --from",
    "report_switches": "start lldpd on these hosts, or pass a topology file to --from",
    "recompute_routes": "let the subnet manager compute the routes again",
}
BEFORE = {"retest": ", then "}  # conjunction before an action that is not the first
AFTER = {"resume": ", or "}  # conjunction after an action that is not the last
_WORDS = ActionWords()


def advice(next_step: Iterable[Action]) -> str:
    """Return the actions of a next step in words; empty without actions."""
    text, after = "", ""
    for action in next_step:
        sentence = ACTIONS[action.kind]
        template = sentence(action.values) if callable(sentence) else sentence
        between = (after or BEFORE.get(action.kind, "; ")) if text else ""
        text += between + _WORDS.vformat(template, action.components, action.values)
        after = AFTER.get(action.kind, "")
    return text
