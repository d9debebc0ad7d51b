"""Launches that did not start: which hosts keep them from it, and the findings about these."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fablint.errors import IncompleteError, NotStartedError
from fablint.model import Finding, Slots, State
from fablint.text.names import fold, plural
from fablint.workflows import measurement
from fablint.workflows.context import Context
from fablint.workflows.recovery.start_search import AT_ONCE, Cause, Hosts, SearchEndedError, StartResult, StartSearch

MOST_S, MOST_STARTS = 600.0, 5  # of one search, and starts of all hosts that it may take besides
MOST_SEARCHES = 3  # of one check
LEAST_LIMIT_S = 20.0  # for a start, however short the known starts are
LIMIT_FACTOR = 4.0  # of what a start of so many hosts took
_MOST_SUSPECTS = 0.25  # of the hosts: a launcher that names more of them lists its hosts
_SHOWN = 300  # letters of a launcher's words
_TRIAL = "latency --sizes 8 --warmup 0 --samples 1"
_WORD = re.compile(r"[A-Za-z0-9._-]+")


@dataclass
class StartTrials:
    """Searches for hosts that keep launches from starting. Times of starts are kept from one search to the next."""

    context: Context
    addresses: Mapping[str, str] = field(default_factory=dict)  # host by address of a NIC
    unanswered: Collection[frozenset[str]] = ()  # pairs of hosts of which preflight had no answer to pings
    launches: int = 0
    searches: int = 0
    known_s: dict[int, float] = field(default_factory=dict)  # by number of hosts: the longest start
    repeated: bool = False  # a search found that all hosts start
    _deadline: float = 0.0
    _said: str = ""  # by the launcher of the first trial that did not start

    def search(self, hosts: Sequence[str], error: NotStartedError) -> StartResult:
        """Find the hosts that keep a launch of `hosts` from starting, which `error` is about.

        Raises:
            IncompleteError: no two hosts start, so that no host can be named.
        """
        from fablint.measure import start_limit_s

        self.searches += 1
        most_s = MOST_S + MOST_STARTS * start_limit_s(len(hosts))
        suspects = self.suspects(hosts, error.said)
        tried = f", {fold(suspects)} first" if suspects else ""
        self.context.progress.note(
            f"fablint: searching for hosts that keep the launch from starting: launches of fewer hosts{tried}, at"
            f" most {most_s / 60:.0f} min"
        )
        self._deadline, self._said = self.context.system.monotonic() + most_s, ""
        search = StartSearch(hosts, self._launch, suspects, self.unanswered, self._show(len(hosts)))
        result = search.run()
        if not result.starting:
            raise IncompleteError(
                f"no launch starts, of two hosts either ({plural(self.launches, 'launch')} of"
                f" {plural(len(hosts), 'host')}): {self._said or error.message}",
                "this is the launcher or the MPI library and not a host: fablint doctor looks at the set-up",
            )
        return result

    def suspects(self, hosts: Sequence[str], said: Sequence[str]) -> list[str]:
        """Hosts whose address or name the launcher printed, and hosts that most pings without an answer share."""
        short = {host.partition(".")[0]: host for host in hosts}
        words = Counter(word.rstrip(".") for line in said for word in _WORD.findall(line))
        by_address = [self.addresses[word] for word in words if word in self.addresses]
        by_name = [short[name] for word in words if (name := word.partition(".")[0]) in short]
        most = max(1, int(_MOST_SUSPECTS * len(hosts)))
        found = _shared([pair for pair in self.unanswered if pair <= set(hosts)])
        for few in (by_address, by_name):
            named = [host for host in dict.fromkeys(few) if host in hosts and host not in found]
            if len(found) + len(named) <= most:
                found += named
        return found if len(found) <= most else []

    def limit_s(self, hosts: int) -> float:
        """Seconds that a start of so many hosts may take: a multiple of known starts, which grow with the hosts."""
        from fablint.measure import start_limit_s

        usual = (LIMIT_FACTOR * took * max(1.0, hosts / count) for count, took in list(self.known_s.items()))
        return min([start_limit_s(hosts), *(max(LEAST_LIMIT_S, one) for one in usual)])

    # ------------------------------------------------------------------------------------------------ launches

    def _show(self, total: int) -> Callable[[int, int], None]:
        """What shows how far the search is."""

        def progress(decided: int, rounds: int) -> None:
            left = max(0.0, self._deadline - self.context.system.monotonic())
            self.context.progress.step("hosts that start", decided, total, min(left, rounds * self.limit_s(2)))

        return progress

    def _launch(self, sets: Sequence[Hosts]) -> list[bool]:
        """Launch sets of hosts at the same time. Raises SearchEndedError where the time is over."""
        from concurrent.futures import ThreadPoolExecutor

        system = self.context.system
        if system.monotonic() > self._deadline:
            raise SearchEndedError
        self.launches += len(sets)
        with (
            system.temporary_folder(system.home_folder("scratch")) as folder,
            system.caught_signals() as caught,
            ThreadPoolExecutor(AT_ONCE) as pool,
        ):
            runs = [folder / f"{number}.run" for number in range(len(sets))]
            found = list(pool.map(self._is_starting, sets, runs))
        if caught:
            raise KeyboardInterrupt
        return found

    def _is_starting(self, hosts: Hosts, output: Path) -> bool:
        """Do ranks on these hosts find each other? Two ranks where it is one host."""
        from fablint.measure import Silent
        from fablint.plan import parse_plan

        each = 2 if len(hosts) == 1 else 1
        plan = replace(parse_plan(_TRIAL, each * len(hosts), "trial"), slots=tuple(Slots(one, each) for one in hosts))
        context = replace(self.context, progress=Silent(), start_s=lambda: self.limit_s(len(hosts)))
        begun = self.context.system.monotonic()
        try:
            measurement.measure(context, plan, output)
        except NotStartedError as error:
            self._said = self._said or error.message
            return False
        took = self.context.system.monotonic() - begun
        self.known_s[len(hosts)] = max(took, self.known_s.get(len(hosts), 0.0))
        return True


def _shared(pairs: Sequence[frozenset[str]]) -> list[str]:
    """Hosts that explain these pairs: the one with most of them, again and again; none of a pair by itself."""
    found: list[str] = []
    left = list(pairs)
    while left:
        counts = Counter(host for pair in left for host in sorted(pair))
        host, count = counts.most_common(1)[0]
        if count < 2 and len(pairs) > 1:
            break
        found += [host] if count > 1 else sorted(left[0])
        left = [pair for pair in left if host not in pair and count > 1]
    return found


# ------------------------------------------------------------------------------------------------ findings


def findings_of(result: StartResult, said: str) -> tuple[dict[str, Finding], dict[frozenset[str], Finding]]:
    """Findings about hosts that are left out, by host, and about paths, by pair; `said` is the launcher's reason."""
    reason = f"; the launcher: {said[:_SHOWN]}" if said else ""
    hosts = {cause.host: _of_cause(cause, len(result.starting), reason) for cause in result.faulty}
    paths = {frozenset(path): _of_path(*path, len(result.starting), reason) for path in result.paths}
    for host, kept in result.paths:
        hosts.setdefault(host, _excluded(host, f"a launch with it and {kept} does not start"))
    for host in result.unknown:
        hosts.setdefault(host, _excluded(host, f"the search ended before a launch with it was tried{reason}"))
    return hosts, paths


def _of_cause(cause: Cause, others: int, reason: str) -> Finding:
    host = cause.host
    without = f"a launch of {plural(others, 'other host')} starts"
    if cause.in_company:
        evidence = f"keeps a launch from starting: not with {plural(others, 'other host')}, which start without it"
        pairs = f"; with {fold(cause.starts_with)} alone it starts" if cause.starts_with else ""
        return _finding(State.SUSPECT, host, f"{evidence}{pairs}{reason}", (f"routes of {host} to some hosts",))
    with_some = f", it does with {fold(cause.starts_with)}" if cause.starts_with else ""
    evidence = f"keeps a launch from starting: none starts of it and {_each(cause.fails_with)}{with_some}; {without}"
    if cause.starts_with:
        routes = tuple(f"route {host}={other}" for other in cause.fails_with)
        return _finding(State.FAULT, host, f"{evidence}{reason}", routes)
    if cause.alone is False:
        evidence += "; its own ranks alone do not start either"
        return _finding(State.FAULT, host, evidence + reason, (f"software of {host}", f"launcher on {host}"))
    own = "; its own ranks alone do" if cause.alone else ""
    parts = (f"NIC of {host}", f"cable of {host}", f"switch port of {host}")
    return _finding(State.FAULT, host, f"{evidence}{own}{reason}", parts)


def _each(hosts: Sequence[str]) -> str:
    return hosts[0] if len(hosts) == 1 else f"one of {', '.join(hosts)}"


def _finding(state: State, host: str, evidence: str, alternatives: tuple[str, ...]) -> Finding:
    if any("software" in one for one in alternatives):
        step = f"start a program on {host} with the launcher; see its files, libraries and daemon"
    else:
        step = f"ping {host} over each NIC from the hosts named; see routes, ARP and forwarding tables on the way to it"
    return Finding(
        state=state, component="host", name=host, evidence=evidence, alternatives=alternatives, next_step=step
    )


def _of_path(host: str, kept: str, others: int, reason: str) -> Finding:
    return Finding(
        state=State.FAULT,
        component="route",
        name=f"{kept}={host}",
        evidence=f"no launch of the two starts; each starts with {plural(others - 1, 'other host')}{reason}",
        next_step="see the routes between the two, and the forwarding tables of the switches on the way",
    )


def _excluded(host: str, why: str) -> Finding:
    return Finding(
        state=State.NOT_JUDGED,
        component="host",
        name=host,
        evidence=f"not measured: {why}",
        next_step=f"repair what keeps the launch from starting, then measure {host}",
    )
