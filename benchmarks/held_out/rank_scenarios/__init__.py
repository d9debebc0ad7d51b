"""Scenarios of clusters: rails, planes, shares of time, leaves, missing cells, routing, kinds, load."""

from held_out.rank_scenarios.kinds_and_load import KINDS_AND_LOAD
from held_out.rank_scenarios.many_and_large import MANY_AND_LARGE
from held_out.rank_scenarios.missing_cells import MISSING_CELLS
from held_out.rank_scenarios.rails_and_planes import RAILS_AND_PLANES
from held_out.rank_scenarios.routed import ROUTED
from held_out.rank_scenarios.time_shares import TIME_SHARES

RANK_SCENARIOS = (*RAILS_AND_PLANES, *TIME_SHARES, *MANY_AND_LARGE, *MISSING_CELLS, *ROUTED, *KINDS_AND_LOAD)
