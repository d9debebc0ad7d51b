"""Colour of words on a terminal."""

from __future__ import annotations


def coloured(text: str, style: str) -> str:
    """Text with the escape sequences of a style of rich (`bold red`): one of the 8 standard colours, no width added.

    rich is imported here, so that output without colour, as of a cron job, does without.
    """
    from rich.color import ColorSystem
    from rich.style import Style

    return Style.parse(style).render(text, color_system=ColorSystem.STANDARD)
