"""What can be said about the parts that nobody accuses: OK with a bound, or NOT JUDGED with a reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fablint.analyse.data.places import Codes, Places
from fablint.analyse.data.quantiles import FEWEST_VALUES
from fablint.analyse.detect.view import Judged, Quantity
from fablint.analyse.settings import Settings
from fablint.analyse.words import listed, relative
from fablint.model import Component, Finding, State
from fablint.names import fold, plural
from fablint.routing import Routes

FEWEST_LINK_PAIRS = FEWEST_VALUES

Mask = npt.NDArray[np.bool_]


def hosts_alike(view: Judged, settings: Settings) -> bool:
    """Are the hosts alike enough to be compared? If not, nothing that is compared through them is either."""
    return view.host_tolerance <= settings.most_tolerance


def judged_hosts(view: Judged, settings: Settings) -> Mask:
    """(hosts,) measured with enough others, and comparable."""
    return (view.host_partners >= settings.min_partners) & hosts_alike(view, settings)


def judged_links(view: Judged, settings: Settings) -> Mask:
    """(links,) crossed by enough measured pairs, and comparable."""
    alike = hosts_alike(view, settings) and view.link_tolerance <= settings.most_tolerance
    return (view.link_pairs >= FEWEST_LINK_PAIRS) & alike


def unjudged(
    views: Sequence[Judged],
    places: Places,
    routes: Routes | None,
    judgeable: Mask,
    settings: Settings,
    *,
    named: Codes,
) -> list[Finding]:
    """Hosts and links about which nothing can be said, by reason and by the rows that it holds for.

    `named` are hosts that other findings are about.
    """
    findings = []
    for hosts, rows in _lacking(views, lambda view: view.host_partners < settings.min_partners):
        names = fold([places.hosts[host] for host in hosts])
        reason = f"measured with fewer than {settings.min_partners} other hosts"
        findings.append(_not_judged("host", names, rows, reason, "measure with more partners"))
    hosts_differ = {view.row: view.host_tolerance for view in views if not hosts_alike(view, settings)}
    links_differ = {view.row: view.link_tolerance for view in views if view.link_tolerance > settings.most_tolerance}
    if hosts_differ and named.size < len(places.hosts):
        others = [name for code, name in enumerate(places.hosts) if code not in set(named.tolist())]
        findings.append(_unlike("host", fold(others), hosts_differ))
    if links_differ:
        findings.append(_unlike("link", "all links", links_differ))
    if routes is not None:
        for links, rows in _lacking(views, lambda view: (view.link_pairs < FEWEST_LINK_PAIRS) & judgeable):
            names = listed([routes.names[link] for link in links], "link")
            reason = f"each crossed by fewer than {FEWEST_LINK_PAIRS} measured pairs"
            findings.append(_not_judged("link", names, rows, reason, "measure more pairs across them"))
    return findings


def _unlike(component: Component, name: str, tolerances: Mapping[str, float]) -> Finding:
    hidden = -relative(max(tolerances.values()), "bandwidth")
    reason = f"so unlike each other that a loss of {hidden:.0%} may be healthy"
    return _not_judged(component, name, list(tolerances), reason, "measure longer, or alike parts by themselves")


def _not_judged(component: Component, name: str, rows: Sequence[str], reason: str, remedy: str) -> Finding:
    return Finding(
        state=State.NOT_JUDGED,
        component=component,
        name=name,
        evidence=f"{', '.join(rows)}: {reason}",
        next_step=f"finish the run (fablint resume), or {remedy}",
    )


def _lacking(views: Sequence[Judged], missing: Callable[[Judged], Mask]) -> list[tuple[tuple[int, ...], list[str]]]:
    """Sets of parts and the rows in which exactly these are missing at some size."""
    by_row: dict[str, set[int]] = defaultdict(set)
    for view in views:
        by_row[view.row].update(np.flatnonzero(missing(view)).tolist())
    rows: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for row, parts in by_row.items():
        if parts:
            rows[tuple(sorted(parts))].append(row)
    return list(rows.items())


def clean_parts(
    views: Sequence[Judged], places: Places, routes: Routes | None, hosts: Mask, switches: Mask, links: Mask
) -> list[Finding]:
    """One finding per kind of part and quantity: these are fine, and a loss larger than that would have been seen.

    The masks say which parts nobody accuses and every row judged.
    """
    findings = []
    for quantity in dict.fromkeys(view.quantity for view in views):
        told = [view for view in views if view.quantity == quantity]
        bounds = np.stack([view.host_bound for view in told])
        if hosts.any():
            names = [places.hosts[host] for host in np.nonzero(hosts)[0]]
            partners = min(int(view.host_partners[hosts].min()) for view in told)
            evidence = f"each measured with at least {plural(partners, 'other host')}"
            findings.append(_ok("host", fold(names), quantity, bounds[:, hosts], evidence))
        if switches.any() and any("switch" in view.compared for view in told):
            names = [places.switches[switch] for switch in np.nonzero(switches)[0]]
            medians = [np.median(bounds[:, _hosts_of(places, int(s))]) for s in np.nonzero(switches)[0]]
            evidence = "their hosts are no slower than those of other switches"
            findings.append(_ok("switch", fold(names), quantity, np.array(medians), evidence))
        if routes is not None and links.any():
            names = [routes.names[link] for link in np.nonzero(links)[0]]
            bound = np.stack([view.link_bound for view in told])[:, links]
            pairs = min(int(view.link_pairs[links].min()) for view in told)
            evidence = (
                f"{plural(len(names), 'directed link')}, each crossed by at least {plural(pairs, 'measured pair')}"
            )
            findings.append(_ok("link", listed(names, "link"), quantity, bound, evidence))
    return findings


def _hosts_of(places: Places, switch: int) -> Codes:
    return np.unique(places.host[places.switch == switch])


def _ok(component: Component, name: str, quantity: Quantity, bounds: npt.NDArray[np.float64], evidence: str) -> Finding:
    """An OK finding with the largest of the bounds as the loss that could hide."""
    known = bounds[~np.isnan(bounds)]
    hidden = relative(max(0.0, float(known.max())), quantity) + 0.0 if known.size else None  # no -0.0
    return Finding(state=State.OK, component=component, name=name, quantity=quantity, effect=hidden, evidence=evidence)
