"""Launches that did not start: which hosts keep them from it, and the findings about these."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, log2
from pathlib import Path
from statistics import median

from fablint.errors import IncompleteError, NotStartedError
from fablint.model import ComponentRef, Endpoint, EvidenceRecord, Finding, RowSpec, Slots, State
from fablint.model.component import in_series
from fablint.model.host_name import HostNames
from fablint.model.names import fold, plural
from fablint.text import actions as advise, evidence as seen
from fablint.workflows import measurement
from fablint.workflows.context import Context
from fablint.workflows.recovery.start_search import AT_ONCE, Cause, Hosts, SearchEndedError, StartResult, StartSearch

MOST_ROUNDS, MOST_STARTS = 8, 5  # of one search: launches of few hosts, beside those that halve, and launches of all
MOST_SEARCHES = 3  # of one check
LEAST_LIMIT_S = 20.0  # for a start, however short the known starts are
END_S = 3.0  # for the end of a trial: it has said all
LIMIT_FACTOR = 4.0  # of what a start of so many hosts took
_MOST_SUSPECTS = 0.25  # of the hosts: a launcher that names more of them lists its hosts
_SHOWN = 300  # letters of a launcher's words
_TRIAL = (RowSpec("latency", sizes=(8,), warmup=(0, 0), samples=1),)
_SOFTWARE = "software"
Reason = tuple[EvidenceRecord, ...]
_WORD = re.compile(r"[A-Za-z0-9._-]+")


@dataclass
class StartTrials:
    """Searches for hosts that keep launches from starting. Times of starts are kept from one search to the next."""

    context: Context
    transport: str = "mpi"  # of the launches; one that needs no MPI where the check starts none
    addresses: Mapping[str, str] = field(default_factory=dict)  # host by address of a NIC
    unanswered: Collection[frozenset[str]] = ()  # pairs of hosts of which preflight had no answer to pings
    unfit: Collection[str] = ()  # hosts of which preflight says that their network is at fault, or that pings are lost
    launches: int = 0
    searches: int = 0
    known_s: dict[int, list[float]] = field(default_factory=dict)  # by number of hosts: what starts took
    repeated: bool = False  # a search found that all hosts start
    _begun: float = 0.0
    _hosts: int = 0  # of the search
    _said: str = ""  # by the launcher of the first trial that did not start

    def search(self, hosts: Sequence[str], error: NotStartedError) -> StartResult:
        """Find the hosts that keep a launch of `hosts` from starting, which `error` is about.

        Raises
        ------
        IncompleteError
            No two hosts start, so that no host can be named.
        """
        self.searches += 1
        suspects = self.suspects(hosts, [*error.launcher_output, error.message])
        tried = f", {fold(suspects)} first" if suspects else ""
        self.context.progress.note(
            f"fablint: searching for hosts that keep the launch from starting: launches of fewer hosts{tried}, at"
            f" most {self.most_s(len(hosts)) / 60:.0f} min"
        )
        unfit = [host for host in self.unfit if host in suspects]
        self._begun, self._hosts, self._said = self.context.system.monotonic(), len(hosts), ""
        search = StartSearch(hosts, self._launch, suspects, self.unanswered, unfit, self._show(len(hosts)))
        result = search.run()
        if not result.starting:
            raise IncompleteError(
                f"no launch starts, of two hosts either ({plural(self.launches, 'launch')} of"
                f" {plural(len(hosts), 'host')}): {self._said or error.message}",
                "this is the launcher or the MPI library and not a host: fablint doctor looks at the set-up",
            )
        if self.repeated and not result.excluded and unfit:  # launches fail by chance: they are the likely reason
            starting = tuple(host for host in result.starting if host not in unfit)
            return StartResult(starting, [Cause(host, (), at_times=True) for host in unfit])
        return result

    def suspects(self, hosts: Sequence[str], said: Sequence[str]) -> list[str]:
        """Hosts that preflight says do not reach others, or are unfit, and those that the launcher's words name."""
        names = HostNames(hosts, complete=True)
        words = Counter(word.rstrip(".") for line in said for word in _WORD.findall(line))
        by_address = [self.addresses[word] for word in words if word in self.addresses]
        by_name = [host for word in words if (host := names.find(word))]
        most = max(1, int(_MOST_SUSPECTS * len(hosts)))
        result = _shared([pair for pair in self.unanswered if pair <= set(hosts)])
        for few in (self.unfit, by_address, by_name):
            named = [host for host in dict.fromkeys(few) if host in hosts and host not in result]
            if len(result) + len(named) <= most:
                result += named
        return result if len(result) <= most else []

    def limit_s(self, hosts: int) -> float:
        """Seconds that a start of so many hosts may take: a multiple of known starts, which grow with the hosts.

        Of starts of as many hosts the median counts: some are slow on account of the host that is searched for.
        """
        from fablint.measure import start_limit_s

        usual = (LIMIT_FACTOR * median(took) * max(1.0, hosts / count) for count, took in list(self.known_s.items()))
        return min([start_limit_s(hosts), *(max(LEAST_LIMIT_S, one) for one in usual)])

    def most_s(self, hosts: int) -> float:
        """Seconds that a search among so many hosts may take by what is known of starts."""
        rounds = MOST_ROUNDS + ceil(log2(hosts))
        return rounds * self.limit_s(2) + MOST_STARTS * self.limit_s(hosts)

    # ------------------------------------------------------------------------------------------------ launches

    def _show(self, total: int) -> Callable[[int, int], None]:
        """Return what shows how far the search is."""

        def progress(decided: int, rounds: int) -> None:
            left = max(0.0, self._left_s())
            self.context.progress.step("hosts that start", decided, total, min(left, rounds * self.limit_s(2)))

        return progress

    def _left_s(self) -> float:
        """Seconds that the search still has: fewer once it is known how long starts take."""
        return self._begun + self.most_s(self._hosts) - self.context.system.monotonic()

    def _launch(self, sets: Sequence[Hosts]) -> list[bool]:
        """Launch sets of hosts at the same time. Raises SearchEndedError where the time is over."""
        from concurrent.futures import ThreadPoolExecutor

        system = self.context.system
        if self._left_s() < 0:
            raise SearchEndedError
        self.launches += len(sets)
        with (
            system.temporary_folder(system.home_folder("scratch")) as folder,
            system.caught_signals() as caught,
            ThreadPoolExecutor(AT_ONCE) as pool,
        ):
            runs = [folder / f"{number}.run" for number in range(len(sets))]
            launch = list(pool.map(self._is_starting, sets, runs))
        if caught:
            raise KeyboardInterrupt
        return launch

    def _is_starting(self, hosts: Hosts, output: Path) -> bool:
        """Tell whether ranks on these hosts find each other. Two ranks where it is one host."""
        from fablint.measure import NoProgress
        from fablint.plan import plan_of

        each = 2 if len(hosts) == 1 else 1
        trial = [replace(row, transport=self.transport) for row in _TRIAL]
        plan = replace(plan_of(trial, each * len(hosts)), slots=tuple(Slots(one, each) for one in hosts))
        context = replace(
            self.context,
            progress=NoProgress(),
            start_s=lambda: self.limit_s(len(hosts)),
            end_s=END_S,
            is_scratch=True,
        )
        try:
            measured = measurement.measure(context, plan, output)
        except NotStartedError as error:
            self._said = self._said or error.message
            return False
        self.known_s.setdefault(len(hosts), []).append(measured.start_s)
        return True


def _shared(pairs: Sequence[frozenset[str]]) -> list[str]:
    """Hosts that explain these pairs: the one with most of them, again and again; none of a pair by itself."""
    result: list[str] = []
    left = list(pairs)
    while left:
        counts = Counter(host for pair in left for host in sorted(pair))
        host, count = counts.most_common(1)[0]
        if count < 2 and len(pairs) > 1:
            break
        result += [host] if count > 1 else sorted(left[0])
        left = [pair for pair in left if host not in pair and count > 1]
    return result


# ------------------------------------------------------------------------------------------------ findings


def findings_of(result: StartResult, said: str) -> tuple[dict[str, Finding], dict[frozenset[str], Finding]]:
    """Findings about hosts that are left out, by host, and about paths, by pair; `said` is the launcher's reason."""
    reason = (seen.launcher(said[:_SHOWN]),) if said else ()
    hosts = {cause.host: _of_cause(cause, len(result.starting), reason) for cause in result.faulty}
    paths = {frozenset(path): _of_path(*path, len(result.starting), reason) for path in result.paths}
    for host, kept in result.paths:
        hosts.setdefault(host, _excluded(host, f"a launch with it and {kept} does not start"))
    for host in result.unknown:
        hosts.setdefault(host, _excluded(host, "the search ended before a launch with it was tried", reason))
    return hosts, paths


def _of_cause(cause: Cause, others: int, reason: Reason) -> Finding:
    host = cause.host
    if cause.at_times:
        return _finding(State.SUSPECT, host, (seen.starts_at_times(), *reason), in_series(host))
    if cause.in_company:
        pairs = (seen.starts_with(tuple(cause.starts_with)),) if cause.starts_with else ()
        route = ComponentRef.of("route", host, Endpoint())
        company = seen.no_start_in_company(others)
        return _finding(State.SUSPECT, host, (company, *pairs, *reason), (route,))
    fails_with, starts_with = tuple(cause.fails_with), tuple(cause.starts_with)
    evidence = seen.no_start(others=others, fails_with=fails_with, starts_with=starts_with)
    if cause.starts_with:
        routes = tuple(ComponentRef.of("route", host, other) for other in cause.fails_with)
        return _finding(State.FAULT, host, (evidence, *reason), routes)
    if cause.alone is False:
        software = tuple(ComponentRef.of("host", host, title=one) for one in (_SOFTWARE, "launcher"))
        return _finding(State.FAULT, host, (evidence, seen.no_start_alone(), *reason), software)
    evidence_alone = (seen.starts_alone(),) if cause.alone else ()
    return _finding(State.FAULT, host, (evidence, *evidence_alone, *reason), in_series(host))


def _finding(state: State, host: str, evidence: Reason, group: tuple[ComponentRef, ...]) -> Finding:
    component = ComponentRef.of("host", host)
    software = any(one.title == _SOFTWARE for one in group)
    return Finding(
        state=state,
        components=(component,),
        evidence=evidence,
        ambiguity_group=group,
        next_step=advise.start_program(component) if software else advise.ping_host(component),
    )


def _of_path(host: str, kept: str, others: int, reason: Reason) -> Finding:
    return Finding(
        state=State.FAULT,
        components=(ComponentRef.of("route", kept, host),),
        evidence=(seen.no_start_of_pair(others - 1), *reason),
        next_step=advise.inspect_path_tables(),
    )


def _excluded(host: str, why: str, reason: Reason = ()) -> Finding:
    return Finding(
        state=State.NOT_JUDGED,
        components=(ComponentRef.of("host", host),),
        evidence=(seen.not_measured(why), *reason),
        next_step=advise.repair_start(ComponentRef.of("host", host)),
    )
