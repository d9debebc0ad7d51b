"""Texts of other tools -> numbers. Pure: text in, numbers out, and no line is dropped unsaid."""

from __future__ import annotations

from fablint.store.importing.linktest import LinktestLog, parse_linktest
from fablint.store.importing.net_sanitizer import NetSanitizerText, parse_net_sanitizer
from fablint.store.importing.osu import OsuTable, OsuText, parse_osu

__all__ = [
    "LinktestLog",
    "NetSanitizerText",
    "OsuTable",
    "OsuText",
    "parse_linktest",
    "parse_net_sanitizer",
    "parse_osu",
]
