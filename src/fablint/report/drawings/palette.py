"""The colours of all reports by name: `palette.toml` is the only table. The page has them as variables."""

from __future__ import annotations

import tomllib
from importlib import resources

_TABLE = tomllib.loads(resources.files(__package__).joinpath("palette.toml").read_text(encoding="utf-8"))
PAGE: dict[str, list[str]] = _TABLE["page"]
PAPER: dict[str, str] = _TABLE["paper"]
MEDIA = sum(name.startswith("medium-") for name in PAGE)  # further media repeat their colours

Stops = tuple[tuple[float, float, float], ...]  # of a scale of colours: red, green, blue, 0..1
NOT_MEASURED = (0.88, 0.88, 0.88)
SEQUENTIAL: Stops = ((0.27, 0.0, 0.33), (0.13, 0.57, 0.55), (0.99, 0.91, 0.15))  # short to long times
DIVERGING: Stops = ((0.13, 0.40, 0.67), (0.97, 0.97, 0.97), (0.70, 0.09, 0.17))  # faster, as the model, slower


def colour(name: str) -> str:
    """Return a colour by its name, as `#rrggbb`, on a light ground."""
    return PAGE[name][0] if name in PAGE else PAPER[name]


def css_variables() -> str:
    """Return the colours of the page as rules of a style sheet: light, dark, printed."""
    light, dark, paper = (
        " ".join(f"--{name}: {shades[ground]};" for name, shades in PAGE.items() if shades[ground:] and shades[ground])
        for ground in range(3)
    )
    return (
        f":root {{ {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
        f"@media print {{ :root {{ {paper} }} }}\n"
    )
