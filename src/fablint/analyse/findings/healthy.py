"""Components without a finding: OK with a bound, or NOT JUDGED with a reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from fablint.analyse.explain.view import ViewResult
from fablint.analyse.findings.detection_text import relative
from fablint.analyse.null_model.loads import UNCERTAIN
from fablint.analyse.settings import SMALLEST_SHARED, Settings
from fablint.model import ComponentKind, ComponentRef, EvidenceRecord, Finding, Note, Placement, State
from fablint.model.arrays import Codes, Floats, Mask
from fablint.model.component import listed
from fablint.model.limits.detection_limits import FEWEST_LINK_PAIRS
from fablint.model.registry import Quantity
from fablint.model.verdict import Action
from fablint.text import actions as advise, evidence as seen, notes as noted
from fablint.topology.routing import Routes


def are_hosts_homogeneous(view: ViewResult, settings: Settings) -> bool:
    """Tell whether the hosts are homogeneous enough to be compared. If not, links and switches are not compared
    either.
    """
    return view.host_tolerance <= settings.most_tolerance


def judged_hosts(view: ViewResult, settings: Settings) -> Mask:
    """(hosts,) measured with enough others, and comparable."""
    return (view.host_partners >= settings.min_partners) & are_hosts_homogeneous(view, settings)


def judged_links(view: ViewResult, settings: Settings) -> Mask:
    """(links,) crossed by enough measured pairs, and comparable."""
    is_homogeneous = are_hosts_homogeneous(view, settings) and view.link_tolerance <= settings.most_tolerance
    return (view.link_pairs >= FEWEST_LINK_PAIRS) & is_homogeneous


def unjudged(
    views: Sequence[ViewResult],
    placement: Placement,
    routes: Routes | None,
    judgeable: Mask,
    settings: Settings,
    *,
    named: Codes,
    missing: Collection[ComponentRef],
) -> list[Finding]:
    """Return findings NOT JUDGED on hosts and links, one for each reason and the rows that it holds for.

    Parameters
    ----------
    views
        Results of the views of the run.
    placement
        Host and switch of each rank.
    routes
        Links between switches; None if no cables are known.
    judgeable
        (links,) whether a link can be judged one by one.
    settings
        The smallest number of partners of a judged host.
    named
        Codes of hosts that other findings are about; they are left out.
    missing
        Hosts and NICs whose measurements are missing: a finding says so.
    """
    findings = _lacking_partners(views, placement, settings, missing)
    hosts_differ = {
        view.row: view.host_tolerance
        for view in views
        if not are_hosts_homogeneous(view, settings) and np.any(view.host_partners >= settings.min_partners)
    }
    links_differ = {view.row: view.link_tolerance for view in views if view.link_tolerance > settings.most_tolerance}
    if hosts_differ and named.size < len(placement.hosts):
        others = [name for code, name in enumerate(placement.hosts) if code not in set(named.tolist())]
        findings.append(_heterogeneous(ComponentRef.of("host", others), hosts_differ))
    if links_differ:
        findings.append(_heterogeneous(ComponentRef(kind="link", title="all links"), links_differ))
    if routes is not None:
        for links, rows in _lacking(views, lambda view: _is_rarely_crossed(view) & judgeable):
            reason, remedy = seen.few_link_pairs(FEWEST_LINK_PAIRS), advise.measure_more_pairs()
            if routes.routing.kind == "ecmp" and _measured_together(views, rows):
                reason = seen.shared_ecmp_paths()
                remedy = advise.measure_pairs_serially()
            findings.append(not_judged(listed(map(routes.component, links), len(links)), rows, reason, remedy))
    return findings


def _is_rarely_crossed(view: ViewResult) -> Mask:
    """(links,) crossed by too few measured pairs, although enough pairs of the run's ranks could cross them."""
    return (view.link_pairs < FEWEST_LINK_PAIRS) & view.links_possible


def _lacking_partners(
    views: Sequence[ViewResult], placement: Placement, settings: Settings, missing: Collection[ComponentRef]
) -> list[Finding]:
    """Return findings on hosts, and on single NICs of hosts, that were measured with too few other hosts."""
    nics_of: dict[int, set[int]] = defaultdict(set)
    for host, nic in zip(placement.host.tolist(), placement.nic_or_host.tolist(), strict=True):
        nics_of[host].add(nic)
    reason, fewest = seen.few_hosts(settings.min_partners), settings.min_partners + 1
    more_hosts = advise.measure_more_hosts(fewest)
    remedy = more_hosts if len(placement.hosts) < fewest else advise.measure_more_partners()
    findings = []
    for lacking, rows in _lacking(views, lambda view: view.nic_partners < settings.min_partners):
        whole = [host for host, nics in nics_of.items() if nics <= set(lacking)]
        single = sorted(set(lacking) - {nic for host in whole for nic in nics_of[host]})
        hosts = [placement.hosts[host] for host in sorted(whole)]
        hosts = [host for host in hosts if ComponentRef.of("host", host) not in missing]
        if hosts:
            findings.append(not_judged((ComponentRef.of("host", hosts),), rows, reason, remedy))
        named = [ComponentRef.device("nic", placement.nics[nic]) for nic in single]
        if named := [nic for nic in named if nic not in missing and ComponentRef.of("host", nic.hosts) not in missing]:
            findings.append(not_judged(tuple(named), rows, reason, remedy))
    return findings


def _measured_together(views: Sequence[ViewResult], rows: Sequence[str]) -> bool:
    """Tell whether these rows have large messages of several pairs at once, so that no pair shows its links."""
    return all(view.size >= SMALLEST_SHARED and not view.link_pairs.any() for view in views if view.row in rows)


def _heterogeneous(component: ComponentRef, tolerances: Mapping[str, float]) -> Finding:
    hidden = -relative(max(tolerances.values()), "bandwidth")
    reason = seen.heterogeneous(hidden)
    return not_judged((component,), list(tolerances), reason, advise.measure_kinds_separately())


def not_judged(
    components: tuple[ComponentRef, ...], rows: Sequence[str], reason: EvidenceRecord, remedy: tuple[Action, ...]
) -> Finding:
    """Return the finding about components that these rows do not judge, for a reason, with the remedy."""
    return Finding(
        state=State.NOT_JUDGED,
        components=components,
        evidence=(reason.model_copy(update={"row": ", ".join(rows)}),),
        next_step=advise.resume() + remedy,
    )


def _lacking(
    views: Sequence[ViewResult], missing: Callable[[ViewResult], Mask]
) -> list[tuple[tuple[int, ...], list[str]]]:
    """Sets of parts and the rows in which exactly these are missing at some size."""
    by_row: dict[str, set[int]] = defaultdict(set)
    for view in views:
        by_row[view.row].update(np.flatnonzero(missing(view)).tolist())
    rows: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for row, parts in by_row.items():
        if parts:
            rows[tuple(sorted(parts))].append(row)
    return list(rows.items())


def concerned_hosts(
    hosts: Collection[str], views: Sequence[ViewResult], placement: Placement, settings: Settings
) -> Codes:
    """Codes of all hosts that a finding is about: these `hosts`, and those in a population beyond the loss in scope."""
    result = {code for code, name in enumerate(placement.hosts) if name in hosts}
    for view in views:
        for population in view.populations:
            if population is not None and not population.is_within(settings.log_loss_in_scope):
                result |= set(np.flatnonzero(population.label > 0).tolist())
    return np.array(sorted(result), dtype=np.int64)


def rarely_crossed_links(views: Sequence[ViewResult], routes: Routes | None) -> list[Note]:
    """Return a note for each quantity in which links cannot be judged that another quantity judges.

    Round trips cross a cable in both directions: few hosts have enough of them, and too few streams.
    """
    if routes is None or not views:
        return []
    in_some = np.logical_or.reduce([view.links_possible for view in views])
    notes = []
    for quantity in dict.fromkeys(view.quantity for view in views):
        in_quantity = _are_possible([view for view in views if view.quantity == quantity])
        if count := int(np.count_nonzero(in_some & ~in_quantity)):
            notes.append(noted.rarely_crossed_links(quantity, count, FEWEST_LINK_PAIRS))
    return notes


def hidden_losses(
    views: Sequence[ViewResult],
    placement: Placement,
    routes: Routes | None,
    hosts: Mask,
    links: Mask,
    settings: Settings,
) -> tuple[list[Finding], Mask, Mask]:
    """NOT JUDGED findings for what may hide a loss in scope, and the masks of those that cannot.

    The bound of a component is the largest of those of its views: each row and size must show it to be healthy.
    """
    findings: list[Finding] = []
    kept_hosts, kept_links = hosts.copy(), links.copy()
    for quantity in dict.fromkeys(view.quantity for view in views):
        informative = [view for view in views if view.quantity == quantity]
        kinds: tuple[tuple[ComponentKind, Mask], ...] = (("host", kept_hosts), ("link", kept_links))
        for component, kept in kinds:
            bounds = [view.host_bound if component == "host" else view.link_bound for view in informative]
            if not kept.any() or any(one.size != kept.size for one in bounds):
                continue
            upper = np.stack([one + view.step / 2 for one, view in zip(bounds, informative, strict=True)])
            has_bound = ~np.isnan(upper).any(axis=0)
            bound = np.where(has_bound, np.nan_to_num(upper).max(axis=0), np.inf)
            loss = np.expm1(bound) if quantity == "latency" else -np.expm1(-bound)
            hides = kept & (loss > settings.loss_in_scope)
            if component == "link":
                hides &= _are_possible(informative)
            if hides.any():
                codes = np.flatnonzero(hides).tolist()
                named = (
                    listed(map(routes.component, codes), len(codes))
                    if component == "link" and routes is not None
                    else (ComponentRef.of("host", [placement.hosts[code] for code in codes]),)
                )
                worst = float(loss[hides].max())
                largest = worst if np.isfinite(worst) else None
                adaptive = component == "link" and routes is not None and routes.routing.kind == "adaptive"
                reason = seen.hidden_loss(
                    bound=largest, quantity=quantity, limit=settings.loss_in_scope, adaptive=adaptive or None
                )
                rows = list(dict.fromkeys(view.row for view in informative))
                findings.append(not_judged(named, rows, reason, _narrower(informative, routes, adaptive=adaptive)))
                kept &= ~hides
    return findings, kept_hosts, kept_links


def _narrower(views: Sequence[ViewResult], routes: Routes | None, *, adaptive: bool) -> tuple[Action, ...]:
    """Return what would narrow a bound in views of one quantity; `adaptive`: that of a link with adaptive routing."""
    if routes is not None and routes.routing.kind in UNCERTAIN and any(view.share_links for view in views):
        return advise.measure_pairs_serially()  # streams that collide scatter, however long they are measured
    return advise.measure_shortest() if adaptive else advise.measure_longer()


def unseen_switches(
    views: Sequence[ViewResult], placement: Placement, switches: Mask, settings: Settings
) -> tuple[list[Finding], Mask]:
    """NOT JUDGED finding for switches whose hosts may hide a loss in scope, and the mask of the others.

    The bound of a switch is the median of those of its hosts. Hosts that are not judged may hide any loss.
    """
    kept = switches.copy()
    behind = {code: _hosts_of(placement, code) for code in np.flatnonzero(switches).tolist()}
    rows: dict[str, None] = {}
    for view in views:
        is_known = judged_hosts(view, settings) & ~np.isnan(view.host_bound)
        bounds = np.where(is_known, np.fmax(view.host_bound, 0.0), np.inf)
        for code, hosts in behind.items() if "switch" in view.compared else ():
            hidden = relative(float(np.median(bounds[hosts])), view.quantity)
            if abs(hidden) > settings.loss_in_scope:
                kept[code] = False
                rows[view.row] = None
    names = [placement.switches[code] for code in np.flatnonzero(switches & ~kept).tolist()]
    reason, remedy = seen.few_judged_hosts(), advise.measure_more_partners()
    return [not_judged((ComponentRef.of("switch", names),), list(rows), reason, remedy)] if names else [], kept


def _of_medians(bounds: Sequence[Floats], settings: Settings) -> list[EvidenceRecord]:
    """Return what is said of components whose share of slow measurements may be large: one record, or none.

    `bounds` are the (k,) upper bounds of the components in each view; the best view of a component counts.
    """
    best = np.fmin.reduce(bounds) if bounds else np.full(1, np.nan)
    worst = float(np.fmax.reduce(best, initial=np.nan))
    return [seen.in_the_median(worst)] if worst > settings.shares.bounded else []


def clean_parts(
    views: Sequence[ViewResult],
    placement: Placement,
    routes: Routes | None,
    hosts: Mask,
    switches: Mask,
    links: Mask,
    settings: Settings,
) -> list[Finding]:
    """One finding per kind of part and quantity: these are fine, and a loss larger than that would have been seen.

    The masks select the components without a finding that every row judged.
    """
    findings = []
    for quantity in dict.fromkeys(view.quantity for view in views):
        informative = [view for view in views if view.quantity == quantity]
        bounds = np.stack([view.host_bound for view in informative])
        if hosts.any():
            names = [placement.hosts[host] for host in np.nonzero(hosts)[0]]
            partners = min(int(view.host_partners[hosts].min()) for view in informative)
            evidence = seen.healthy_hosts(partners)
            shares = [view.share_bounds.hosts[hosts] for view in informative if view.share_bounds is not None]
            said = _of_medians(shares, settings)
            findings.append(_ok((ComponentRef.of("host", names),), quantity, bounds[:, hosts], evidence, *said))
        if switches.any() and any("switch" in view.compared for view in informative):
            names = [placement.switches[switch] for switch in np.nonzero(switches)[0]]
            medians = [np.nanmedian(bounds[:, _hosts_of(placement, int(s))]) for s in np.nonzero(switches)[0]]
            evidence = seen.healthy_switches()
            findings.append(_ok((ComponentRef.of("switch", names),), quantity, np.array(medians), evidence))
        crossed = links & _are_possible(informative)
        if routes is not None and crossed.any():
            codes = np.flatnonzero(crossed).tolist()
            bound = np.stack([view.link_bound for view in informative])[:, crossed]
            pairs = min(int(view.link_pairs[crossed].min()) for view in informative)
            evidence = seen.healthy_links(len(codes), pairs)
            shares = [view.share_bounds.links[crossed] for view in informative if view.share_bounds is not None]
            said = _of_medians(shares, settings)
            findings.append(_ok(listed(map(routes.component, codes), len(codes)), quantity, bound, evidence, *said))
    return findings


def _are_possible(views: Sequence[ViewResult]) -> Mask:
    """(links,) which links enough pairs of the run's ranks could cross in each view."""
    return np.asarray(np.logical_and.reduce([view.links_possible for view in views]))


def _hosts_of(placement: Placement, switch: int) -> Codes:
    return np.unique(placement.host[placement.switch == switch])


def _ok(components: tuple[ComponentRef, ...], quantity: Quantity, bounds: Floats, *evidence: EvidenceRecord) -> Finding:
    """An OK finding with the largest of the bounds as the loss that could hide."""
    finite = bounds[~np.isnan(bounds)]
    hidden = relative(max(0.0, float(finite.max())), quantity) + 0.0 if finite.size else None  # no -0.0
    return Finding(state=State.OK, components=components, quantity=quantity, effect=hidden, evidence=evidence)
