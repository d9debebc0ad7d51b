"""Components that each measurement crosses, by the actual routing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fablint.model import ComponentRef, Direction
from fablint.model.arrays import Codes, Mask
from fablint.simulate.messages.costs import ActualRouting, cells_of
from fablint.simulate.simulated_fabric import Fabric


@dataclass(frozen=True)
class Crossings:
    """Flat: measurement `cell` crosses directed link `link`. With adaptive routing only some of its messages may."""

    fabric: Fabric
    cell: Codes
    link: Codes
    cells: int

    @classmethod
    def of(cls, actual: ActualRouting, partner: Codes, *, round_trips: bool = False) -> Crossings:
        """Return the crossings of all cells of a table of partners.

        Parameters
        ----------
        actual
            Routing of the fabric, and the port of each rank.
        partner
            (ranks, rounds) partner of each rank in each round, -1: none.
        round_trips
            Whether a pair has one measurement, which crosses the links of both of its directions.
        """
        cells = next(cells_of(partner, max(1, partner.size)))
        links = actual.paths(cells).links
        cell, hop = np.nonzero(links < actual.fabric.links)
        crossing: Codes = cell.astype(np.int32)
        link: Codes = links[cell, hop]
        if actual.adaptive:
            more, over, _ = actual.exposure(cells)
            crossing, link = np.concatenate([crossing, more]), np.concatenate([link, over])
        count = cells.src.size
        if round_trips:
            count //= 2
            crossing %= max(1, count)
        return cls(actual.fabric, crossing, link, count)

    def of_links(self, links: Sequence[int]) -> Mask:
        """(cells,) whether each measurement crosses any of these links."""
        is_selected = np.zeros(self.fabric.links, dtype=bool)
        is_selected[np.asarray(links)] = True
        crossed = np.zeros(self.cells, dtype=bool)
        crossed[self.cell[is_selected[self.link]]] = True
        return crossed

    def equivalents(self, crossed: Mask) -> dict[ComponentRef, Direction | None]:
        """Return the components that exactly the measurements of the mask cross: nothing measured distinguishes them.

        The value is the direction of a host and of components in series with it, None for others.
        """
        if not crossed.any():
            return {}
        first = int(crossed.argmax())  # a link that all of them cross is crossed by the first
        equivalents: dict[ComponentRef, Direction | None] = {}
        for components, direction, links in self._components(np.unique(self.link[self.cell == first])):
            if np.array_equal(self.of_links(links), crossed):
                equivalents.update(dict.fromkeys(components, direction))
        return equivalents

    def _components(self, links: Codes) -> Iterator[tuple[list[ComponentRef], Direction | None, list[int]]]:
        """Yield every component that one of these links belongs to: equivalent references, direction, its links."""
        fabric = self.fabric
        for link in links.tolist():
            yield [fabric.link_ref(link)], None, [link]
            if link < fabric.switch_links:
                yield [fabric.cable_ref(link)], None, [link, link ^ 1]
            else:
                port = (link - fabric.switch_links) % fabric.ports
                up, down = fabric.up(port), fabric.down(port)
                name = fabric.hosts[port // fabric.rails]
                host = ComponentRef.of("host", name)
                in_series = [fabric.nic_ref(port), fabric.cable_ref(link), *([host] if fabric.rails == 1 else [])]
                direction: Direction = "tx" if link == up else "rx"
                yield in_series, direction, [link]
                yield in_series, "both", [up, down]
                ports = fabric.ports_of(name)
                yield [host], direction, [fabric.up(p) if link == up else fabric.down(p) for p in ports]
                yield [host], "both", [end(p) for p in ports for end in (fabric.up, fabric.down)]
        for switch in np.unique(fabric.starts[links]).tolist():
            if switch >= 0:
                name = fabric.routes.switches[switch]
                yield [ComponentRef.of("switch", name)], None, np.flatnonzero(fabric.starts == switch).tolist()
