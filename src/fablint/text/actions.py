"""Actions of a next step: each kind with the components and values that it is about, and its sentence.

`from fablint.text import actions as advise` has every kind: `advise.inspect_switch(component)` is a next step of one
action; longer next steps are sums.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fablint.model.component import ComponentRef, Direction
from fablint.model.names import fold
from fablint.model.verdict import Action
from fablint.text.sentence_kind import Fields, SentenceKind, named_kinds
from fablint.text.sentence_words import Words


class ActionKind(SentenceKind[Fields]):
    """Kind of action, with components as `{0}` (label) or `{0:place}` (first end); a function returns a template."""

    def __call__(self, *fields: Fields.args, **named: Fields.kwargs) -> tuple[Action, ...]:
        """Return the next step that consists of this action."""
        components = tuple(field for field in fields if isinstance(field, ComponentRef))
        values = self.values((field for field in fields if not isinstance(field, ComponentRef)), named)
        return (Action(kind=self.name, components=components, values=values),)

    def in_words(self, action: Action) -> str:
        """Return an action of this kind in words."""
        words: Any = self.words
        template = words if isinstance(words, str) else words(*action.components, **action.values)
        return _WORDS.vformat(template, action.components, action.values)


class ActionWords(Words):
    """`Words` with the components of an action as `{0}` (label), `{0:place}` (first end)."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """Return a value in words."""
        return (
            _place(value)
            if format_spec == "place"
            else super().format_field(getattr(value, "label", value), format_spec)
        )


def _place(component: ComponentRef) -> str:
    """Return `h07`, `h07 hsn1`, `s3 port 12`; `its switch` for the switch port of a host whose cabling is unknown."""
    if component.kind == "port" and component.title:
        return "its switch"
    end = component.ends[0]
    return fold(end.nodes) + (f" port {end.part}" if component.kind == "port" else f" {end.part}") * bool(end.part)


General = ActionKind[[]]  # about no component
OfOne = ActionKind[ComponentRef]
OfTwo = ActionKind[ComponentRef, ComponentRef]
_WORDS = ActionWords()

# a component that is at fault
test_host = OfOne("run a loopback test on {0}: if slow, it is the host or its NIC; else move its cable to another port")
test_gpu = OfOne("read the PCIe width, clocks and errors of {0} (nvidia-smi -q, rocm-smi -a)")
move_nic = OfOne("move the cable of {0} to another port of the switch and measure again")
inspect_switch = OfOne("read the error counters, temperature and power of {0}, then measure again around it")
inspect_cable = OfOne("read the error counters of both ports of {0}, reseat or swap the cable, measure again")
inspect_link = OfOne("read the error counters at the receiving end of {0}, reseat or swap the cable, measure again")
inspect_route = OfOne("measure {0} again; if it stays slow, look at the route between them")
measure_routes_again = General("measure these pairs again; if some stay slow, look at the routes between them")
inspect_direction = OfOne("""measure the messages of {0.ends[0].label} to {0.ends[1].label} again; if it stays slow,
    look at the route between them""")
take_out_of_service = OfOne("take {0} out of service")
# which of the components in series
inspect_host = OfOne("read the system log, PCIe width and power state of {0}")
free_cpus = OfOne("list the processes of {0} (top): end those that are not of the job, or let the job have whole hosts")
replace_nic = OfOne("reseat or change the NIC {0:place}")
swap_cable = OfTwo("swap cable between {0:place} and {1:place}")
change_port = OfTwo("move the cable of {0:place} from {1:place} to another port")
read_drops = OfTwo("read the error and drop counters of {0:place} and of the {1}")
test_loopback = OfOne("run a loopback test on {0:place}")
swap_link_cable = OfTwo("""read the error counters at {1:place}, which receives; reseat or swap the cable {0:place}
    to {1:place}""")
swap_switch_cable = OfTwo("""read the error counters at {0:place} and {1:place}; reseat or swap the cable {0:place}
    to {1:place}""")
# late messages and retransmissions
read_exit_drops = OfOne("""read the error and drop counters of all ports of {0} to other switches; reseat or swap
    the cable whose counters rise""")
# paths and pairs
find_cables = OfOne("""find the cables between {0.ends[0].label} and {0.ends[1].label} (fablint discover --from),
    then read the counters of their ports""")
compare_port_speeds = OfOne("""compare the negotiated speed of the ports of {0} with what was ordered, or this run
    with an earlier one of the same fabric""")
compare_nic_speeds = General("compare with the negotiated speed of the NICs, or with an earlier run of the same fabric")
measure_path_alone = OfOne("""measure slow and healthy pairs across {0} again, alone; read the error counters of all
    its cables""")
inspect_uplinks = OfOne("""read the load and the error counters of {0}; compare the speed of its uplinks with the
    others; measure again when no other job uses them""")
compare_path_lengths = OfOne("compare cable lengths and switches on the path of {0} with the others; measure bandwidth")
# further measurements
resume = General("finish the run (fablint resume)")
measure_component = OfOne("measure {0} again")
measure_more_partners_of = OfOne("measure {0} again, with more partners")
measure_more_partners = General("measure with more partners")
measure_more_pairs = General("measure more pairs across them")
measure_pairs_serially = General("measure one pair at a time (--order serial)")
measure_longer = General("measure longer or with more partners")
measure_more_messages = General("measure longer")
measure_shortest = General("""measure with minimal routing, if the network has that setting, and with `routing:
    shortest` in the topology file""")
measure_kinds_separately = General("measure longer, or check groups of identical hosts separately")
measure_serially = General("""measure again with --order serial: if they are still slow, look at what all of these
    paths share""")
measure_after_repair = OfOne("measure again when {0} is repaired")
measure_other_host_first = OfOne("measure again with another host first: is it {0} or the place that is slow?")
measure_with_overlap = General("""plan with a larger --overlap and measure again: hosts in two allocations show whether
    it is the launch""")
measure_without_load = General("see what else used the fabric then, and measure again")
measure_own_cpus = General("give every rank a CPU of its own and measure again")
measure_bound = General("bind every rank to a CPU of its own (the launcher's --bind-to core) and measure again")
validate_ends = OfTwo("measure {0} and {1} with other partners and --validate to tell which end it is")
validate_all_pairs = General("measure all pairs with --validate: they name the sender")
inspect_unmeasured = OfOne("""see whether {0} took part: its link state, routes and firewall rules; then measure it
    again""")
inspect_unmeasured_path = OfOne("""see the routes, the forwarding tables and the firewall rules between
    {0.ends[0].label} and {0.ends[1].label}; then measure again""")
# comparisons
compare_threshold = General("""compare the threshold with what this fabric was built for, and look at what all these
    pairs share""")
inspect_memory = OfOne("look at clock frequency, memory channels and what else runs on {0}")
# hosts that do not answer, stall or prevent a launch
log_in = General("log in to the host; exclude it with -x until it answers")
inspect_failed_host = OfOne("see whether {0} is up and what its system log says, then resume the run")
inspect_system_log = OfOne("see the system log of {0} (out of memory, hardware errors), then measure it again")
compare_mtu = OfOne("compare the MTU of {0} and of its switch port with the others, then the link's error counters")
inspect_path_filters = General("""list the firewall rules of both (nft list ruleset), see the routes between the
    two, and the address tables of their switches""")
inspect_path_mtu = General("see the routes and the MTU between the two, and the address tables of their switches")
start_program = OfOne("start a program on {0} with the launcher; see its files, libraries and daemon")
ping_host = OfOne("ping {0} over each NIC from the hosts named; see routes, ARP and forwarding tables on its path")
inspect_path_tables = General("see the routes between the two, and the forwarding tables of the switches on the path")
repair_start = OfOne("repair what keeps the launch from starting, then measure {0}")
# preflight and discovery
check_cabling = OfOne("look where the cable of {0} ends, or correct the topology file")
check_cable_end = General("check what the cable is connected to")
correct_cabling = General("correct the cabling or the fabric template, then bring the NIC up again")
replace_cable = General("reseat the cable, then replace it")
replace_down_cable = General("""reseat or replace the cable; `show-flaps` of the fabric manager shows since when it
    is down""")
discover_again = General("""run discovery again after two minutes, since LLDP keeps old neighbours so long; then
    check the cable""")
correct_guid = General("correct the GUID of the adapter that was flashed with the image of another")
resolve_contradiction = General("""determine which source is right and correct the other, or pass a topology file to
    --from""")
report_switches = General("start lldpd on these hosts, or pass a topology file to --from")
recompute_routes = General("let the subnet manager compute the routes again")
measure_more_hosts = ActionKind[int]("measure with at least {hosts} hosts to judge a fabric")
compare_hosts = ActionKind[tuple[str, ...]]("""compare the hosts of {names:and}: NIC, firmware, driver, CPU, BIOS
    settings""")
inspect_connections = ActionKind[ComponentRef, str]("""on {0}, list the firewall rules (nft list ruleset), compare
    the interface or provider that {transport} uses with that of other hosts, and run fablint doctor; then measure
    again""")
remedy = ActionKind[str]("{remedy}")


@ActionKind
def read_cable_drops(_: ComponentRef, *, direction: Direction | None = None) -> str:
    end = {"tx": "at the switch port of", "rx": "of the NIC of"}.get(direction or "", "at both ends of")
    return f"read the error and drop counters {end} {{0}}; then reseat or swap its cable"


@ActionKind
def retest(*, run: str) -> str:
    return "`fablint retest {run}`" if run else "measure again"


@ActionKind
def measure_missing(*, resumable: bool) -> str:
    return "measure them again" + (" (fablint resume)" if resumable else "")


KINDS = named_kinds(globals(), ActionKind)
BEFORE = {"retest": ", then "}  # conjunction before an action that is not the first
AFTER = {"resume": ", or "}  # conjunction after an action that is not the last


def advice(next_step: Iterable[Action]) -> str:
    """Return the actions of a next step in words; empty without actions."""
    text, after = "", ""
    for action in next_step:
        between = (after or BEFORE.get(action.kind, "; ")) if text else ""
        text += between + KINDS[action.kind].in_words(action)
        after = AFTER.get(action.kind, "")
    return text
