"""What a back end does: draw shapes and texts, whose places are numbers and whose colours are names of the palette."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

Points = Sequence[tuple[float, float]]  # y grows downwards


class Ink(NamedTuple):
    """How a shape looks. In the page a rule of the style sheet for `role` says it, elsewhere colour and width do."""

    colour: str  # of the palette
    width: float = 1.0  # of a line, of a dot
    role: str = ""  # what the shape is in its drawing: one class, or several
    title: str = ""  # what the pointer shows


class Canvas(Protocol):
    """What draws."""

    def lines(self, parts: Sequence[Points], ink: Ink) -> None:
        """Draw lines, each through several points."""

    def area(self, points: Points, ink: Ink) -> None:
        """Fill a polygon."""

    def dots(self, points: Points, ink: Ink) -> None:
        """Draw round dots."""

    def box(self, left: float, top: float, width: float, height: float, ink: Ink, *, is_filled: bool = True) -> None:
        """Draw a rectangle."""

    def text(self, x: float, y: float, words: str, letter: float, ink: Ink, anchor: str = "ls") -> None:
        """Write a line of text.

        Parameters
        ----------
        x, y
            Where the text is.
        words
            What is written.
        letter
            Height of the letters.
        ink
            The colour; a text with a role has an edge in the colour of the ground.
        anchor
            What of the text is at x (`l` its beginning, `m` its middle, `r` its end), and at y (`a` the top of its
            letters, `t` their visible top, `m` their middle, `s` their foot). A third letter `v`: it runs upwards.
        """
