"""Judges of checks: uniform among peers, at least as peers, growth per hour, pattern in a log, limit of a host."""

from fablint.preflight.judges.fabric_tools import fabric_tool
from fablint.preflight.judges.growth import growth
from fablint.preflight.judges.limits import limit
from fablint.preflight.judges.log_patterns import log_events, log_patterns
from fablint.preflight.judges.peers import among_peers, at_least_peers
from fablint.preflight.judges.pings import pings
from fablint.preflight.judges.uniform import uniform, uniform_settings

__all__ = [
    "among_peers",
    "at_least_peers",
    "fabric_tool",
    "growth",
    "limit",
    "log_events",
    "log_patterns",
    "pings",
    "uniform",
    "uniform_settings",
]
