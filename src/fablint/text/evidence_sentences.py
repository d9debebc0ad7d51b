"""Sentences for evidence: one table, with an entry for each kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fablint.model.names import fold, plural
from fablint.text import units
from fablint.text.missing_words import MISSING
from fablint.text.sentence_words import WORDS

if TYPE_CHECKING:
    from fablint.model.verdict import EvidenceRecord

Values = Mapping[str, Any]


def _slow_pairs(v: Values) -> str:
    clusters = [plural(v["partners"], v["partner"])] if v["partners"] else []
    clusters += [f"{plural(v['stretches'], 'stretch')} of time"] if clusters and "stretches" in v else []
    return WORDS.vformat(
        "{slow} of {pairs} pairs slow{clusters}, median {effect:+.1%} [{low:+.1%}, {high:+.1%}], noise of a pair"
        " {noise:.1%}",
        (),
        {**v, "clusters": "".join(f", {text}" for text in clusters)},
    )


def _slow_over_some(v: Values) -> str:
    cause = {
        "above_sockets": "TCP is as fast as elsewhere: look at the library, its settings and the RDMA path of this"
        " host before the cable",
        "sockets": "look at the TCP settings, the interrupts and the offloads of this host before the cable",
        "library": "look at the library and its settings on this host before the cable",
    }[v["cause"]]
    return (
        WORDS.vformat(
            "slow over {slow:list}, not over {healthy:list} (at most {bound:.1%} longer, where the wire or the host"
            " would add {expected:.0%}): ",
            (),
            {**v, "bound": math.expm1(v["bound"]), "expected": math.expm1(v["expected"])},
        )
        + cause
    )


def _alpha_beta(v: Values) -> str:
    each = f"{v['alpha_s'] * 1e6:+.2g} us a message"
    byte = f"time per byte x{v['factor']:.2f}"
    grows = {"alpha": f"{each} at every size", "beta": byte, "both": f"{each} and {byte}"}[v["grows"]]
    means = {
        "alpha": "an extra hop, where its processes are placed, or a power state",
        "beta": "a link with reduced width or speed, PCIe, or a shared resource",
        "both": "a host or NIC that is slow in every operation",
    }[v["grows"]]
    retries = "with a long tail: messages are sent again (read the retry and error counters)"
    return f"{grows}: {retries if v['retries'] else means}"


def _slow_when(v: Values) -> str:
    template = {
        "since": "slow since {begin:.3g} s after the start",
        "until": "slow until {end:.3g} s after the start",
        "between": "slow between {begin:.3g} s and {end:.3g} s after the start",
        "now and then": "slow now and then ({slow} of {measured:#measurement})",
        "always": "slow all the time",
    }[v["when"]]
    return WORDS.vformat(template, (), v)


def _stalled_host(v: Values) -> str:
    over = f" over {v['transport']}" if v.get("transport", "mpi") != "mpi" else ""
    what = (
        f"messages of {units.size(v['bytes'])}{over} do not arrive"
        if "bytes" in v
        else "its launches end before the first message"
    )
    control = f"; control messages over {v['control']} arrive" if "control" in v else ""
    return f"{what}: the measurement stalled, and again with {v['partners']}{control}"


def _rank_failed(v: Values) -> str:
    which = ("one of its ranks" if "rank" not in v else f"rank {v['rank']}") + (
        f" in round {v['round']}" if "round" in v else ""
    )
    beside = f", reported by {v['partners'][0]}" if v["partners"][0] else ""
    return f"{plural(v['ranks'], 'rank')} lost: {which}{beside}: {v['reason']}"


def _limits(v: Values) -> str:
    limits = [("at least", v.get("lowest")), ("at most", v.get("highest"))]
    words = " and ".join(f"{word} {_figure(v, limit)}" for word, limit in limits if limit is not None)
    return f"{v['scope']}: {words} ({v['source']})"


def _figure(v: Values, value: float) -> str:
    scale, unit = (1e6, "MB/s") if v["quantity"] == "bandwidth" else (1e-6, "us")
    shown = value / scale
    return f"{shown:.0f} {unit}" if shown >= 1000 else f"{shown:.3g} {unit}"


def _tcp_resent(v: Values) -> str:
    toward = {"tx": "that it sends", "rx": "that are sent to it", "both": "that it sends and receives"}
    text = (
        f"TCP sent {100 * v['lost'] / max(v['sent'], 1):.2g} % of the segments"
        f" {toward.get(v.get('direction', ''), 'that cross it')} again: {v['lost']} of {v['sent']} in {v['lossy']} of"
        f" {plural(v['pairs'], 'direction')} of pairs{' over ' + ', '.join(v['over']) if v.get('over') else ''}, and"
        f" {v['others_lost']} segments in {v['others_lossy']} of {v['others']} others"
    )
    return text + (f"; {v['spurious']} more had arrived already and are not counted" if v["spurious"] else "")


REFERENCES = {  # what a path is compared with
    "": "",
    "faster_population": "the faster of two populations",
    "faster_of_kind": "the faster ones of its kind",
    "other_direction": "the other direction",
    "switch": "messages on a switch",
    "declared": "messages on a switch and the declared speed of its cables",
}


def reference_text(kind: str, paths: int = 0) -> str:
    """Return what a path is compared with, in words: `3 other paths`."""
    return plural(paths, "other path") if kind == "other_paths" else REFERENCES[kind]


def _healthy_paths(v: Values) -> str:
    references = sorted(reference_text(kind, int(n)) for kind, n in zip(v["beside"], v["counts"], strict=True))
    pairs = plural(v["pairs"], "pair")
    return f"each measured between at least {pairs} of hosts; compared with {' or '.join(references)}"


def _path_slow(v: Values) -> str:
    beside = reference_text(v["beside"], v.get("others", 0))
    text = f"{v['slow']} of {plural(v['pairs'], 'pair')} of hosts slow, median {v['effect']:+.1%} beside {beside}"
    return text + (f" ({v['extra_s'] * 1e9:+,.0f} ns)" if "extra_s" in v else "")


def _populations(v: Values) -> str:
    slower = [
        f"{plural(int(count), 'host')} ({names}) {float(effect):+.1%}"
        for count, names, effect in zip(v["counts"], v["names"], v["effects"], strict=True)
    ]
    return f"{' and '.join(slower)}, compared with {plural(v['others'], 'host')} ({v['usual']})"


def _hidden_loss(v: Values) -> str:
    hidden = f"a loss of up to {v['bound']:.0%}" if "bound" in v else "any loss"
    among = " among messages that choose among several paths" if "adaptive" in v else ""
    return f"{hidden} in {v['quantity']} could be there unseen{among}; OK needs a bound below {v['limit']:.0%}"


def _no_start(v: Values) -> str:
    fails = v["fails_with"]
    each = fails[0] if len(fails) == 1 else f"one of {', '.join(fails)}"
    starts = f", it does with {fold(v['starts_with'])}" if v["starts_with"] else ""
    return f"keeps a launch from starting: none starts of it and {each}{starts}; a launch of" + WORDS.vformat(
        " {others:#other host} starts", (), v
    )


# A sentence of each kind of evidence: a format of its values, or a function of them.
EVIDENCE: Mapping[str, str | Callable[[Values], str]] = {
    # components that are slower than their peers
    "slow_pairs": _slow_pairs,
    "slow_share": "slow in {slow} of {measured:#measurement} ({share:.0%}), elsewhere in {others_slow} of {others};"
    " while slow median {effect:+.1%} [{low:+.1%}, {high:+.1%}], {pairs:#pair} of hosts",
    "late_pairs": "{slow} of {pairs} pairs that may cross it have late messages, about {late:.0%} of the messages that"
    " cross it, median {effect:+.1%} [{low:+.1%}, {high:+.1%}]",
    "slow_when": _slow_when,
    "period_of_load": "fast after that: load of that period looks the same",
    "others_slow_then": "{others:.0%} of the measurements of unrelated pairs next to these in time were slow as well:"
    " load looks the same",
    "unsteady": "its loss varies over time",
    "intermittent": "slow for some of its pairs only",
    "among_others": "{ratio:times} times as long among others as alone",
    "no_direction": "a round trip cannot tell the direction",
    "longer_path": "{added_ns:.0f} ns more: a longer cable or more switches add as much",
    "alpha_beta": _alpha_beta,
    "duplex_only": "only while both directions are busy: duplex, or what both share (PCIe, memory), not the cable's"
    " rate",
    "heterogeneous_hosts": "healthy hosts here differ so much that one as slow is to be expected among them",
    "slow_over_all": "slow over {transports:list}: the cause is the wire or the host, not one library",
    "slow_over_some": _slow_over_some,
    "slow_uplinks": "pairs on the switch are as fast as others: all of its uplinks are slow, or some of them",
    "single_rank": "rank {rank} alone, not the other ranks of its host",
    "weak": "too little to report one of so many components",
    "weak_host": "slow with most of its partners, but these are too few or too noisy to report it",
    "intra_node": "{measured:#measurement} beside those of {others} hosts",
    "gpu_copies": "copies {copies}: {measured:#measurement} beside those of {others} GPUs",
    # pairs and routes
    "slow_block": "{slow:#pair} of {pairs} slow in both directions; both ends are fine with their other partners",
    "slow_block_once": "{slow:#pair} of {pairs} slow in both directions, which are measured in one moment: a moment of"
    " load slows both as well; both ends are fine with their other partners",
    "slow_pairs_once": "{pairs:#pair} of hosts slow in both directions ({shown}), which are measured in one"
    " moment: a moment of load slows both as well",
    "slow_pairs_meanwhile": "{pairs:#pair} of hosts slow in both directions ({shown}), while others were slow",
    "slow_meanwhile": "{slow} of {measured:#measurement} of unrelated pairs next to it in time were slow as well, at"
    " other times {slow_at_other_times} of {measured_at_other_times}",
    "one_direction": "slow in this direction only, far beyond the noise of all other pairs; both ends are fine with"
    " their other partners. A moment of load during one measurement looks the same",
    "one_direction_once": "slow in this direction only, far beyond the noise of all other pairs; both ends are fine"
    " with their other partners. It was measured once: a moment of load looks the same",
    "one_direction_shared": "slow in this direction only, far beyond the noise of all other pairs; others sent at the"
    " same time, and messages that share a link take longer in this run",
    "faster_pairs": "{pairs:#direction} of pairs of hosts ({shown}) far faster than all others of their kind; which of"
    " the two is healthy is not known",
    "unexplained_pairs": "{slow} of {pairs:#pair} ({share:.0%}) are slower than the noise of the others, and nothing"
    " that they have in common explains it",
    # paths between switches
    "path_slow": _path_slow,
    "path_uneven": "slow from {begin:.1f} s to {end:.1f} s, not evenly",
    "path_varies": "its loss varies from pair to pair",
    "path_mode": "{slow} of {pairs} pairs of hosts across {path} slow, median {effect:+.1%}",
    "one_of_several": "the others as fast as elsewhere: one of several cables or paths",
    "routes_wrong": "the declared routes do not explain the slow pairs",
    "path_once": "slower than the others of its kind, but not evenly over time",
    "path_beside": "slower among other messages; alone it was not measured",
    "path_lone": "slower than messages on a switch, with nothing of its kind to compare it with",
    "path_population": "in one of two populations, of which nothing says which is healthy",
    "outward_slow": "messages between {switch} and other groups are slow as well, and their path out of {group} is not"
    " declared",
    "declared_speed": "declared at {speed:g} Gb/s, others at {usual:g} Gb/s: {loss:+.0%}",
    "all_uplinks": "all {cables:#cable} between {switch} and other switches are slow, pairs on {switch} are not; the"
    " slowest:",
    # damage, failed ranks
    "damaged": "{payloads:#damaged payload}; first: {row_name}, {where}",
    "damaged_host": "{payloads:#damaged payload}, {partners} partners; {row_name}, {where}",
    "damaged_result": "{payloads:#damaged payload}, of results that several ranks contribute to; first: {row_name},"
    " {where}",
    "rank_failed": _rank_failed,
    # late messages and retransmissions
    "late_messages": "some messages come much later than the others, as after a loss: the mean is {ratio:times} times"
    " what is usual in {late} of {pairs:#pair} of hosts, and in {others_late} of {others} others",
    "tcp_resent": _tcp_resent,
    "may_be_chance": "it may be chance",
    "few_pairs_of_hosts": "of fewer than {fewest} pairs of hosts",
    "one_stretch": "all in one stretch of time",
    "one_period": "in one period only, which load explains as well",
    "sent_together": "others sent at the same time, and may have shared its links",
    "times_unknown": "when it was measured is not known: load at that time looks the same",
    "small_ratio": "less than {limit:.0f} times, which may be noise of the hosts",
    "small_share": "less than {limit:.0%} of its pairs",
    "nothing_to_compare": "no other path of this kind to compare with",
    "cables_unknown": "which cables the paths cross is not known",
    "streams_only": "streams, which congestion makes lose segments as well",
    "spurious_unknown": "kernels here do not say which of them had arrived already",
    # cabling
    "misplaced": "declared on {declared}, but {slow} of its {pairs:#pair} there take as long as pairs on different"
    " switches ({median_s:us}; usual: {near_s:us} on one switch, {far_s:us} on different ones)",
    "placed_elsewhere": "its times are those of {switch} ({median_s:us})",
    "place_unknown": "the switch that it is connected to is unknown",
    # circumstances
    "one_host": "all {ranks} ranks run on {host}: no message crossed a network",
    "oversubscribed": "on {hosts:fold} ranks wait for each other, and their times with them",
    "first_host": "pairs with {hosts:fold} take {shift:+.1%}, p = {chance:.1g}; in the same direction in {slow} of"
    " {sizes:#size}, p = {together:.1g} for all together",
    "shared_cores": "on {hosts:fold} more ranks are bound to some CPUs than there are of these: they wait for each"
    " other",
    "slow_period": "from {begin:.3g} s to {end:.3g} s pairs of {hosts} hosts took {excess:+.0%}, whichever the hosts",
    "drift": "what was measured last took {excess:+.0%} compared with what was measured first, whichever the hosts",
    "populations": _populations,
    "members_agree": "the members of each agree",
    "separating_fact": "{fact} separates them ({values})",
    "separating_fact_many": "{fact} separates them",
    "no_separating_fact": "no recorded fact separates them",
    "undecided": "a threshold of the site or a baseline decides which of them is healthy",
    # thresholds of the site
    "host_misses": lambda v: (
        WORDS.vformat("outside the threshold with {missed} of {partners:#partner}, median ", (), v)
        + f"{_figure(v, v['median'])}; {_limits(v)}"
    ),
    "scope_misses": lambda v: (
        f"{v['outside']} of {v['pairs']} {v['scope']} pairs are outside the threshold, median"
        f" {_figure(v, v['median'])}; {_limits(v)}"
    ),
    "pair_misses": lambda v: f"{_figure(v, v['value'])}; {_limits(v)}",
    # not judged, healthy
    **MISSING,
    "few_hosts": "measured with fewer than {fewest} other hosts",
    "few_judged_hosts": "half of its hosts or more are not judged",
    "heterogeneous": "so heterogeneous that a loss of {hidden:.0%} may be healthy",
    "few_link_pairs": "each crossed by fewer than {fewest} measured pairs",
    "shared_ecmp_paths": "ECMP paths of concurrent pairs: a pair that shares a link is as slow as one on a slow link",
    "hidden_loss": _hidden_loss,
    "behind_switch": "all messages of these hosts cross {switch}, which is slow itself",
    "few_path_pairs": "measured between fewer than {fewest} pairs of hosts, or with nothing to compare them with",
    "not_alone": "slower in {quantity} beside messages of other pairs; alone their streams were not measured",
    "healthy_hosts": "each measured with at least {partners:#other host}; compared with the median of all hosts",
    "in_the_median": "in the median: up to {share:.0%} of the measurements of one of them could be slow unseen",
    "healthy_switches": "their hosts are no slower than those of other switches",
    "healthy_links": "{links:#directed link}, each crossed by at least {pairs:#measured pair}; compared with the median"
    " of all",
    "healthy_paths": _healthy_paths,
    # which of the components in series
    "line_rx": "the NIC received damaged code words",
    "no_line_rx": "the line to the NIC is clean",
    "line_tx": "the switch received damaged code words and had them sent again",
    "no_line_tx": "the line to the switch is clean",
    "marked": "packets arrived marked bad on a clean line",
    "poisoned": "packets were damaged in the NIC before they were sent",
    "late": "packets were dropped since the host was late to take them",
    "down": "the link went down",
    "again": "messages were sent again",
    "slow_loopback": "slow in loopback",
    "fine_loopback": "fine in loopback",
    "slow_rails": "its other NICs are slow too",
    "fine_rails": "its other NICs are fine",
    "cpu_wait": "its ranks waited {share:.2%} of the time for a CPU that other processes used, those of other hosts"
    " {others:.2%}",
    "slow_neighbours": "other hosts of the switch are slow too",
    "loopback": "{message}",
    # preflight and discovery
    "check": "{message}",
    "message": "{message}",
    "common_cause": "common to {count} hosts of {cause}: {hosts:fold}",
    "also": "also {checks:list}",
    "no_answer": lambda v: (f"{v['hosts']} hosts give " if v["hosts"] > 1 else "") + f"no answer: {v['reason']}",
    "more": "and {count} more",
    "meanwhile": "while the hosts were measured:",
    "inside_host": "between ranks of the host itself:",
    "excluded": "excluded: {reason}",
    "not_measured": "not measured: {reason}",
    "failed_level": "it failed the level {level} and was excluded from the next ones:",
    "not_repeated": "measured again later, it is healthy",
    "missed_levels": "not measured in {missed:list}, since it failed {level} before",
    "not_in_levels": "not measured in {missed:list}",
    "cable_speed": "{cable} runs at {rate}, {others}",
    "switch_unknown": lambda v: (
        WORDS.vformat("no source gives the switch of {missing:#host} of {hosts}", (), v)
        + ("; these are more than half of the hosts, too many for a diagnosis" if 2 * v["missing"] > v["hosts"] else "")
    ),
    "mac_of_another_port": "its MAC {mac} belongs to {own_switch} port {own_port}, but it is connected to {switch}"
    " {port}, which is {there_switch} port {there_port}",
    "routing_loop": "the forwarding tables have a routing loop: {loop}",
    "two_names": "{source} names it {name}, {other} {other_name}; {source} was used",
    "contradiction": "{verb} {taken} according to {by}, {other} according to {other_by}; {by} was used",
    "two_ends": "sources report both {first} and {second} on this port; {first} was used",
    "port_down": "port {port} of {switch} is down: a {cable} cable to {other} {other_port}",
    "several_devices": "LLDP reports {count} devices on one port ({devices:fold}): a device between them does not"
    " support LLDP or forwards LLDP frames",
    # hosts that prevent a launch
    "rank_died": "a rank on it {reason} in the middle of the measurement",
    "stalled_host": _stalled_host,
    "stalled_at_times": "several launches stalled between it and {partners}; trials of two hosts alone did not",
    "stalled_pair": "the two stalled with each other, but not with other hosts",
    "stall_reported": lambda v: f"{v['host']} reports: {v['cause']}" if v["host"] else v["cause"],
    "starts_at_times": "launches with it start at times only, and preflight finds its network at fault",
    "no_start_in_company": "keeps a launch from starting: not with {others:#other host}, which start without it",
    "starts_with": "with {hosts:fold} alone it starts",
    "no_start": _no_start,
    "no_start_alone": "its own ranks alone do not start either",
    "starts_alone": "its own ranks alone do",
    "no_start_of_pair": "no launch of the two starts; each starts with {others:#other host}",
    "launcher": "the launcher: {said}",
    "no_ping": "no ping is answered: {dead} of {tried:#pair} between {first:fold} and {second:fold}",
    "no_long_ping": "frames of {bytes} bytes are lost, of {passes} pass: {dead} of {tried:#pair} between {first:fold}"
    " and {second:fold}",
    "excluded_to_connect": "without it the ranks of the others connect: not all messages between it and"
    " {hosts:fold} arrive",
}


def sentence(one: EvidenceRecord) -> str:
    """One piece of evidence in words, after the row and size or the check that it is from."""
    template = EVIDENCE[one.kind]
    if callable(template):
        template = (
            template(one.values) if one.kind != "slow_when" else WORDS.vformat(template(one.values), (), one.values)
        )
        words = template
    else:
        words = WORDS.vformat(template, (), one.values)
    source = one.check or " ".join(filter(None, (one.row, "" if one.size is None else units.size(one.size))))
    return f"{source}: {words}" if source else words


def sentences(evidence: Iterable[EvidenceRecord]) -> str:
    """Evidence in words, each sentence once. A sentence that ends with a colon introduces the next."""
    return "; ".join(dict.fromkeys(map(sentence, evidence))).replace(":; ", ": ")
