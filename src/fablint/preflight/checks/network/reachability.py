"""Checks of reachability between hosts: pings, full-size frames, round trip times, and names of the peers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from fablint.model import Topology
from fablint.model.names import fold
from fablint.model.preflight_results import Result, Severity
from fablint.preflight.address_conflicts import contested_ends
from fablint.preflight.check import Check
from fablint.preflight.fleet import Fleet
from fablint.preflight.judges import pings
from fablint.preflight.judges.pings import with_passes
from fablint.preflight.pings.mesh import LOST, MTU, NO_ANSWER, NOT_RUN, TOO_LONG, End, NameLookup, Ping, Reach
from fablint.preflight.pings.reach_faults import Attempt, ReachFaults, localise_failures
from fablint.preflight.pings.triage import Rail, rails_of
from fablint.text.sanitise import shortened

_SLOW = 5.0  # times the median of similar pairs
_SLOW_S = 1e-3  # minimum; shorter times are due to the hosts
_LEAST = 3  # partners with times, for a result
_MISSING = ("not installed", "permitted", "denied", "invalid option", "unrecognized option")
_SOURCE = "ping between all hosts, in rounds"


def _ping_answers(check: Check, reach: Reach, fleet: Fleet) -> Iterable[Result]:
    results = [check.skip(*end, why) for end, why in reach.left_out.items()]
    results += [check.error(host, "", f"pinger: {shortened(why)}") for host, why in reach.silent.items()]
    contested = contested_ends(fleet) & reach.targets.keys()
    results += [check.skip(*end, "two hosts have its address") for end in sorted(contested)]
    tried: set[End] = set()
    for rail in rails_of(reach, contested_ends(fleet)):
        tried |= rail.ends
        results += _results(check, rail)
    results += _not_run(check, reach)
    idle = sorted(reach.targets.keys() - tried - contested - {End(one.host, one.target) for one in results})
    results += [check.skip(*end, "no other host has such a NIC, or there was no time") for end in idle]
    return with_passes(check, tried, results)


def _results(check: Check, rail: Rail) -> Iterator[Result]:
    answers, pings, ends = rail.answers, rail.pings, rail.ends
    if answers.all_failed:
        message = f"none of {len(ends)} NICs answers another: check whether ICMP is filtered or the rail is down"
        yield from (check.warning(*end, message) for end in sorted(ends))
    for end, count in answers.isolated.items():
        which = "which reach each other" if count.failed == count.all else "most of which reach each other"
        yield check.failure(*end, f"{_how(end, pings)} {count}, {which}", count.failed, 0)
    for part, say in [(one, check.failure) for one in answers.cut_off] + [
        (halve, check.warning) for halve in answers.halves
    ]:
        others = len(ends) - len(part)
        message = f"{fold(end.host for end in part)} reach each other, but none of the other {others}"
        yield from (say(*end, message, others, 0) for end in part)
    for end, count in answers.rx_failed.items():
        yield check.warning(
            *end, f"does not answer {count}, although its own pings are answered: check whether ICMP is filtered"
        )
    for end, count in answers.tx_failed.items():
        yield check.warning(*end, f"{_how(end, pings)} {count}, although it answers their pings")


def _not_run(check: Check, reach: Reach) -> Iterator[Result]:
    """Yield a result for each end on which ping itself failed."""
    ran = {one.source for one in reach.pings if one.kind != NOT_RUN}
    for end, text in {one.source: one.text for one in reach.pings if one.source not in ran}.items():
        hopeless = any(word in text for word in _MISSING)
        say = check.skip if hopeless else check.error
        yield say(*end, shortened(f"ping: {text}"))


PING_ANSWERS = Check(
    id="net.ping",
    what="whether every NIC of the fabric reaches the others",
    source=_SOURCE,
    rule="full-size or small pings are answered",
    severity=Severity.FAIL,
    component="nic",
    remedy="check the NIC, its cable, the switch port and the routes of the host",
    judge=pings(_ping_answers),
)


def _ping_routes(check: Check, reach: Reach, fleet: Fleet) -> Iterable[Result]:
    results: list[Result] = []
    ends: set[End] = set()
    for rail in rails_of(reach, contested_ends(fleet)):
        ends |= rail.sized
        kinds = {frozenset((one.source, one.target)): one for one in rail.pings if one.kind}
        for pair in rail.answers.routes + rail.sizes.routes:
            if not rail.losses.ends.keys().isdisjoint(pair):
                continue  # an end with a high loss occasionally loses all pings of a pair
            kind = kinds[frozenset(pair)]
            words = _lost_frames(reach, [kind]) if kind.kind in (MTU, TOO_LONG) else kind.kind
            also = ", although both reach others" if len(rail.ends) > 2 else ""
            results.append(_of_pair(check, pair, words + also))
        for pair, loss in rail.losses.pairs.items():
            also = ", although neither loses pings with others" if len(rail.ends) > 2 else ""
            results.append(_of_pair(check, pair, f"{loss} pings lost{also}", round(loss.share, 4)))
    yield from results
    yield from (check.ok(*end) for end in sorted(ends))


def _of_pair(check: Check, pair: tuple[End, End], message: str, share: float | None = None) -> Result:
    (item, other), expected = pair, None if share is None else 0
    return check.failure(item.host, f"{item.nic}={other.name}", message, share, expected)._replace(peer=other.host)


PING_ROUTES = Check(
    id="net.ping.route",
    what="single pairs that do not reach each other, although both reach others",
    source=_SOURCE,
    rule="full-size pings are answered, except at most one",
    component="route",
    remedy="check the routes of both hosts, and at the switches and cables between them",
    judge=pings(_ping_routes),
)


def _full_size(check: Check, reach: Reach, fleet: Fleet) -> Iterable[Result]:
    results: list[Result] = []
    tried: set[End] = set()
    for rail in rails_of(reach, contested_ends(fleet)):
        tried |= rail.sized
        for end, refused in rail.refused.items():
            why = shortened(refused[0].text.rpartition("too long")[2].strip(" ,")) or "message too long"
            results.append(check.failure(*end, f"the host refuses full-size frames to {fold(_peers(refused))}: {why}"))
        results += _lost(check, rail.sizes, rail.pings, reach)
    return with_passes(check, tried, results)


def _lost(check: Check, reach_faults: ReachFaults, pings: Sequence[Ping], reach: Reach) -> Iterator[Result]:
    bad = [one for one in pings if one.kind in (MTU, TOO_LONG)]
    if reach_faults.all_failed:
        yield from (check.warning(*end, f"{_lost_frames(reach, bad)}, on the whole rail") for end in _ends(bad))
    for end, count in reach_faults.isolated.items():
        lost = [one for one in bad if end in one[:2]]
        yield check.failure(*end, f"{_lost_frames(reach, lost)}: from or to {count}", "lost", "answered")
    for part, say in [(one, check.failure) for one in reach_faults.cut_off] + [
        (halve, check.warning) for halve in reach_faults.halves
    ]:
        out = [one for one in bad if (one.source in part) != (one.target in part)]
        message = f"{_lost_frames(reach, out)}: between {fold(end.host for end in part)} and all others"
        yield from (say(*end, message) for end in part)
    for end, count in reach_faults.rx_failed.items():
        received = [one for one in bad if one.target == end]
        yield check.failure(*end, f"{_lost_frames(reach, received)}: from {count} to it")
    for end, count in reach_faults.tx_failed.items():
        sent = [one for one in bad if one.source == end]
        yield check.failure(*end, f"{_lost_frames(reach, sent)}: from it to {count}")


FULL_SIZE = Check(
    id="net.ping.mtu",
    what="whether frames of the full MTU arrive unfragmented",
    source=f"{_SOURCE}, full-size, with the flag do-not-fragment",
    rule="answered wherever small frames are",
    severity=Severity.FAIL,
    remedy="set the MTU of the switch port and of the host's routes to that of the NIC; long messages are lost",
    judge=pings(_full_size),
)


def _round_trip(check: Check, reach: Reach, fleet: Fleet) -> Iterable[Result]:
    results: list[Result] = []
    timed: set[End] = set()
    for rail in rails_of(reach, contested_ends(fleet)):
        pings, attempts = rail.pings, list[Attempt]()
        for like in _like(pings, fleet.topology):
            usual = median(time for _, time in like)
            limit = max(_SLOW * usual, _SLOW_S)
            attempts += [Attempt(one.source, one.target, time <= limit) for one, time in like]
        timed |= {end for one in attempts for end in (one.source, one.target)}
        for end, count in localise_failures(attempts).isolated.items():
            if count.all >= _LEAST:
                results.append(_slow(check, end, pings, str(count)))
    return with_passes(check, timed, results)


def _slow(check: Check, end: End, pings: Sequence[Ping], count: str) -> Result:
    times, others = (
        [one.rtt_s for one in pings if one.rtt_s and (end in one[:2]) is is_of_end] for is_of_end in (True, False)
    )
    ms, usual_ms = median(times) * 1e3, median(others or times) * 1e3
    message = f"round trip {ms:.2g} ms with {count}, {usual_ms:.2g} ms among these"
    return check.failure(*end, message, ms, usual_ms, "ms")


ROUND_TRIP = Check(
    id="net.ping.rtt",
    what="the round trip time of pings",
    source=_SOURCE,
    rule=f"to most others at most {_SLOW:g} times the median of similar pairs, or below {_SLOW_S * 1e3:g} ms",
    component="nic",
    remedy="check the load of the host, the NIC's interrupts and the path to its switch",
    judge=pings(_round_trip),
)


def _peer_names(check: Check, reach: Reach, fleet: Fleet) -> Iterable[Result]:
    lookups = [one for one in reach.lookups if len(reach.owners.get(one.address, ())) == 1]
    if 2 * sum(one.holds for one in lookups) <= len(lookups):
        return []  # the site has no such names
    results: list[Result] = []
    by_address: dict[str, list[NameLookup]] = defaultdict(list)
    for lookup in lookups:
        by_address[lookup.address].append(lookup)
    for address, lookups_of_address in sorted(by_address.items()):
        valid_names = [one.name for one in lookups_of_address if one.holds]
        owner = reach.owners[address][0].end
        bad = [one for one in lookups_of_address if not one.holds]
        if bad and not valid_names:
            results.append(check.failure(*owner, f"no host finds a name of its address {address}"))
        for lookup in bad if valid_names else ():
            results.append(
                check.failure(
                    lookup.host, owner.name, _not_found(lookup, valid_names[0]), ", ".join(lookup.found), address
                )
            )
    return [
        *results,
        *(check.ok(host) for host in sorted({one.host for one in lookups} - {result.host for result in results})),
    ]


PEER_NAMES = Check(
    id="net.dns.peers",
    what="the names of the peers' NICs, as every host resolves them",
    source="gethostbyaddr and getaddrinfo of the pinged peers",
    rule="the address has a name, and the name resolves to that address, if most have",
    remedy="add the name to the DNS zone or to /etc/hosts of that host",
    judge=pings(_peer_names),
)


def _peers(pings: Iterable[Ping]) -> set[str]:
    return {one.target.host for one in pings}


def _ends(pings: Iterable[Ping]) -> list[End]:
    return sorted({end for one in pings for end in (one.source, one.target)})


def _how(end: End, pings: Iterable[Ping]) -> str:
    """Describe the most frequent failure of an end's pings: `no answer from`, `no route to`."""
    kinds = Counter(one.kind for one in pings if end in (one.source, one.target) and one.kind in LOST)
    kind = max(kinds, key=lambda one: (kinds[one], one), default=NO_ANSWER)
    return f"{kind} {'from' if kind == NO_ANSWER else 'to'}"


def _lost_frames(reach: Reach, pings: Sequence[Ping]) -> str:
    """Describe lost frames: `frames of 9000 bytes are lost, of 1500 pass`."""
    size = max((min(reach.targets[end].mtu for end in one[:2]) for one in pings), default=0)
    passes = min((one.passes for one in pings if one.passes), default=0)
    return f"frames of {size} bytes are lost" + (f", of {passes} pass" if passes else "")


def _like(pings: Iterable[Ping], topology: Topology | None) -> Iterable[list[tuple[Ping, float]]]:
    """Return pings with their times, in groups of the same scope."""
    result: dict[str, list[tuple[Ping, float]]] = defaultdict(list)
    for ping in pings:
        if ping.rtt_s is not None and not ping.kind:
            result[_scope(ping, topology)].append((ping, ping.rtt_s))
    return result.values()


def _scope(ping: Ping, topology: Topology | None) -> str:
    hosts = (ping.source.host, ping.target.host)
    if topology is None or not all(host in topology.host_switch for host in hosts):
        return "unknown"
    if len({topology.host_switch[host] for host in hosts}) == 1:
        return "edge"
    return "local" if len({topology.group_of(host) for host in hosts}) == 1 else "global"


def _not_found(name_lookup: NameLookup, name: str) -> str:
    """Describe the wrong or missing name of a peer."""
    if name_lookup.name and name_lookup.found:
        return shortened(f"{name_lookup.name} is {', '.join(name_lookup.found)}, not {name_lookup.address}")
    return f"does not find {shortened(name_lookup.name or name)} ({name_lookup.address}), which others find"
