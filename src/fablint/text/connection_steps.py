"""What to do about a TCP connection that failed, by the words of the kernel and of the engine."""

from __future__ import annotations

import re

_OF_CONNECTION = re.compile(r"connect|TCP|endpoint", re.IGNORECASE)  # a file may be refused to fablint, too
_STEPS = (
    (
        r"requests are not answered|no answer|Connection timed out|does not answer",
        "look for a firewall that drops packets, a wrong route, or a link that is down between the two hosts",
    ),
    (
        r"Connection refused|requests fail at once",
        "a firewall rejects the connection (nft list ruleset), or no process listens there",
    ),
    (
        r"No route to host",
        "look at the link and the addresses of both hosts (ip -br addr; ip neigh), and for a firewall that rejects",
    ),
    (r"Network is unreachable", "add a route to that network (ip route), or choose another NIC with --device"),
    (r"Operation not permitted|Permission denied", "a firewall on the requesting host rejects it (nft list ruleset)"),
)


def connection_step(error: str) -> str:
    """Return what to do about an error that is about a TCP connection; '' for any other error."""
    if not _OF_CONNECTION.search(error):
        return ""
    return next((step for words, step in _STEPS if re.search(words, error)), "")
