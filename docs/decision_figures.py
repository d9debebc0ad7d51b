r"""Write the figures of docs/explanation/how-it-decides.md: `.venv/bin/python docs/decision_figures.py example.run`.

The run is the worked example of that page:

    fablint simulate --fabric mesh --shape 8x8 --fault cable:s2=s5:-20% --fault host:h12:tx:-30% --seed 7 \
        -o example.run

The script computes model, noise and evidence by the formulas of the page, and imports nothing of `fablint.analyse`. It
leaves out drift, classes of contention, and the second measurement of a pair, so that its sums differ by a few nats.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import isotonic_regression

import fablint
from fablint.model.arrays import Codes, Floats

IMAGES = Path(__file__).parent / "images"
HOSTS_PER_SWITCH = 8
TOLERANCE = 0.05
SMALLEST = 0.02  # shift at least
CLIP = 2.5  # nats
LIMIT = float(np.log(3 * (64 + 8 + 28) * 2 / (0.55 * 0.01)))  # nats, see "Threshold" on the page
GREY, BLUE, RED, GREEN = "#8a8f98", "#2563b0", "#c0392b", "#2e7d4f"


@dataclass(frozen=True)
class Streams:
    """Streams of 1 MiB between different hosts, each ordered pair once: (k,) sender, receiver, log of the time."""

    src: Codes
    dst: Codes
    log_time: Floats

    @property
    def switches(self) -> tuple[Codes, Codes]:
        """Switch of the sender and of the receiver."""
        return self.src // HOSTS_PER_SWITCH, self.dst // HOSTS_PER_SWITCH


def read_streams(path: str) -> Streams:
    """Read the row `bandwidth` of a run in `list` layout; the first measurement of each ordered pair counts."""
    row = fablint.open_run(path)["bandwidth"]
    dst = row["dst"].values.astype(np.int64)
    log_time = np.log(row["time_median"].values[:, :, -1].astype(np.float64))
    src = np.broadcast_to(np.arange(dst.shape[0])[:, None], dst.shape)
    measured = (dst >= 0) & ~np.isnan(log_time)
    src, dst, log_time = src[measured], dst[measured], log_time[measured]
    first = np.unique(src * 1000 + dst, return_index=True)[1]
    return Streams(src[first], dst[first], log_time[first])


def medians(values: Floats, codes: Codes, count: int) -> Floats:
    """(count,) median of the values of each code, 0 where there is none."""
    return np.array([np.median(values[codes == code]) if (codes == code).any() else 0.0 for code in range(count)])


def fit(streams: Streams) -> tuple[Floats, Floats, Floats, Floats]:
    """Residuals of the classes (k,), effects of senders, receivers (n,) and directed switch pairs (S * S,)."""
    a, b = streams.switches
    residual = streams.log_time - medians(streams.log_time, (a != b).astype(np.int64), 2)[(a != b).astype(np.int64)]
    hosts = int(streams.src.max()) + 1
    sent, received = np.zeros(hosts), np.zeros(hosts)
    for _ in range(3):
        sent = medians(residual - received[streams.dst], streams.src, hosts)
        sent -= np.median(sent)
        received = medians(residual - sent[streams.src], streams.dst, hosts)
        received -= np.median(received)
    link = medians(residual - sent[streams.src] - received[streams.dst], a * 8 + b, 64)
    link[np.arange(8) * 9] = 0  # pairs on one switch cross no link
    return residual, sent, received, link


def remainder(streams: Streams, fitted: tuple[Floats, Floats, Floats, Floats], most: float) -> Floats:
    """(k,) residuals without the effects of hosts, of which at most `most` is taken out.

    Fewer than 30 pairs cross each link of this run: too few to take out the effect of a link.
    """
    residual, sent, received, _ = fitted
    return residual - np.clip(sent, -most, most)[streams.src] - np.clip(received, -most, most)[streams.dst]


def noise_of(streams: Streams, fitted: tuple[Floats, Floats, Floats, Floats]) -> Floats:
    """(k,) what the model leaves over; fitted parameters make the rest too small, which is undone."""
    left = remainder(streams, fitted, np.inf)
    return left * np.sqrt(left.size / (left.size - fitted[1].size - fitted[2].size))


def shift_of(noise: Floats, streams: Streams) -> float:
    """The smallest loss beyond the tolerance that the pairs of a host, or of a link with few, can show."""
    deviation = 1.4826 * float(np.median(np.abs(noise - np.median(noise))))
    a, b = streams.switches
    of_links = np.unique((a * 8 + b)[a != b], return_counts=True)[1]
    pairs = min(np.median(np.bincount(streams.src)), np.quantile(of_links, 0.25))
    return max(SMALLEST, deviation * float(np.sqrt(4 * LIMIT / pairs)))


def increments(noise: Floats, shift: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Inner edges of the bins, f0, f1, and the e-value increment of each bin in nats."""
    edges = np.unique(np.quantile(noise, np.linspace(0.02, 0.98, 49)))
    f0 = np.bincount(np.searchsorted(edges, noise), minlength=edges.size + 1) + 0.5
    f1 = np.bincount(np.searchsorted(edges, noise + shift), minlength=edges.size + 1) + 0.5
    ratio = isotonic_regression(np.clip(np.log(f1 / f0), -CLIP, CLIP), weights=f0).x
    ratio -= np.log(np.mean(np.exp(ratio[np.searchsorted(edges, noise)])))
    return edges, f0 / f0.sum(), f1 / f1.sum(), ratio


class Chart:
    """Axes with linear scales, written as SVG text."""

    def __init__(self, title: str, x: tuple[float, float], y: tuple[float, float], labels: tuple[str, str]) -> None:
        self.x, self.y = x, y
        self.body: list[str] = []
        self.text(360, 22, title, size=15, anchor="middle")
        self.body.append(f'<rect x="70" y="40" width="620" height="270" fill="none" stroke="{GREY}"/>')
        self.text(380, 350, labels[0], anchor="middle")
        self.body.append(
            f'<text transform="translate(18 175) rotate(-90)" font-size="12" text-anchor="middle">{labels[1]}</text>'
        )

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Position of a point on the page."""
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return 70 + 620 * across, 310 - 270 * up

    def text(
        self, x: float, y: float, text: str, *, size: int = 12, colour: str = "#222", anchor: str = "start"
    ) -> None:
        """Text at a position of the page."""
        text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        self.body.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}">{text}</text>'
        )

    def ticks(self, x: dict[float, str], y: dict[float, str]) -> None:
        """Labels at positions on both axes."""
        for value, label in x.items():
            self.text(self.at(value, 0)[0], 328, label, anchor="middle")
        for value, label in y.items():
            self.text(64, self.at(0, value)[1] + 4, label, anchor="end")

    def line(self, points: list[tuple[float, float]], colour: str, *, dashed: bool = False) -> None:
        """A line through points."""
        path = " ".join("{:.1f},{:.1f}".format(*self.at(x, y)) for x, y in points)
        dash = ' stroke-dasharray="6 4"' if dashed else ""
        self.body.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"{dash}/>')

    def dot(self, x: float, y: float, colour: str) -> None:
        """A point."""
        across, down = self.at(x, y)
        self.body.append(f'<ellipse cx="{across:.1f}" cy="{down:.1f}" rx="3.2" ry="3.2" fill="{colour}"/>')

    def label(self, x: float, y: float, text: str, colour: str, *, anchor: str = "start") -> None:
        """Text at a point of the axes."""
        across, down = self.at(x, y)
        self.text(across, down, text, colour=colour, anchor=anchor)

    def write(self, name: str) -> None:
        """Write the figure to docs/images."""
        head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 365" font-family="sans-serif">'
        lines = [head, '<rect width="720" height="365" fill="white"/>', *self.body, "</svg>"]
        (IMAGES / name).write_text("\n".join(lines) + "\n")


def draw_effects(sent: Floats, received: Floats, link: Floats) -> None:
    """Figure 1: what each component adds, and the tolerance."""
    title = "Time that each component adds to a message of 1 MiB (log ratio)"
    chart = Chart(title, (-3, 190), (-0.08, 0.42), ("hosts as sender, hosts as receiver, directed links", "added time"))
    chart.ticks({}, {0.0: "0", 0.1: "0.1", 0.2: "0.2", 0.3: "0.3", 0.4: "0.4"})
    chart.line([(-3, TOLERANCE), (190, TOLERANCE)], GREY, dashed=True)
    chart.label(188, TOLERANCE + 0.012, "tolerance 5 %", GREY, anchor="end")
    links = [code for code in range(64) if code % 9]
    names = [f"s{code // 8}>s{code % 8}" for code in links]
    groups = [(0, sent, "h{:02d} tx"), (65, received, "h{:02d} rx")]
    for start, values, form in groups:
        for place, value in enumerate(values):
            chart.dot(start + place, value, RED if value > TOLERANCE else BLUE)
            if value > TOLERANCE:
                chart.label(start + place + 3, value + 0.004, form.format(place), RED)
    for place, (code, name) in enumerate(zip(links, names, strict=True)):
        chart.dot(131 + place, link[code], RED if link[code] > TOLERANCE else GREEN)
        if link[code] > TOLERANCE:
            chart.label(131 + place - 2, link[code] + 0.018, name, RED, anchor="middle")
    chart.write("decide-effects.svg")


def draw_increments(noise: Floats, shift: float) -> None:
    """Figure 2: the noise, the shifted noise, and the increment of a pair."""
    edges, _, _, ratio = increments(noise, shift)
    title = f"Noise (f0), noise shifted by {100 * shift:.1f} % (f1), and the e-value increment of a pair"
    chart = Chart(
        title, (-0.08, 0.14), (-3, 3), ("log time that the model leaves over", "nats; densities in relative units")
    )
    chart.ticks({-0.05: "-0.05", 0.0: "0", 0.05: "0.05", 0.1: "0.10"}, {-2.0: "-2", 0.0: "0", 2.0: "2"})
    bins = np.linspace(-0.08, 0.14, 45)
    for moved, colour, name in ((0.0, BLUE, "f0"), (shift, RED, "f1")):
        share = np.histogram(noise + moved, bins)[0] / noise.size
        middle = (bins[:-1] + bins[1:]) / 2
        chart.line(list(zip(middle, 35 * share - 3, strict=True)), colour)
        top = int(np.argmax(share))
        chart.label(middle[top], 35 * share[top] - 2.85, name, colour, anchor="middle")
    chart.line([(-0.08, 0), (0.14, 0)], GREY, dashed=True)
    steps = [(-0.08, ratio[0])]
    for edge, before, after in zip(edges, ratio[:-1], ratio[1:], strict=True):
        steps += [(min(edge, 0.14), before), (min(edge, 0.14), after)]
    chart.line([*steps, (0.14, ratio[-1])], GREEN)
    chart.label(0.085, ratio[-1] + 0.15, f"increment, at most {ratio[-1]:.1f}", GREEN)
    chart.write("decide-increments.svg")


def draw_evidence(streams: Streams, left: Floats, noise: Floats, shift: float) -> dict[str, float]:
    """Figure 3: sums of the increments, pair by pair, and the threshold. Returns the sums in nats."""
    a, b = streams.switches
    gain = np.empty_like(left)
    for same in (a == b, a != b):  # noise and increments of each scope
        edges, _, _, ratio = increments(noise[same], shift)
        gain[same] = ratio[np.searchsorted(edges, left[same])]
    shown = [
        ("h12 tx", streams.src == 12, RED, -1.0),
        ("s2>s5 and s5>s2", (a == 2) & (b == 5), RED, -1.0),
        ("s5>s2", (a == 5) & (b == 2), RED, -1.0),
        ("h20 tx (on s2)", streams.src == 20, BLUE, -3.0),
        ("h40 tx", streams.src == 40, BLUE, 3.0),
        ("s0>s1", (a == 0) & (b == 1), BLUE, -7.0),
    ]
    chart = Chart(
        "Evidence against six components, pair by pair",
        (0, 29),
        (-45, 50),
        ("measured pairs", "sum of increments (nats)"),
    )
    chart.ticks({0.0: "0", 10.0: "10", 20.0: "20"}, {-40.0: "-40", -20.0: "-20", 0.0: "0", 20.0: "20", 40.0: "40"})
    chart.line([(0, LIMIT), (29, LIMIT)], GREY, dashed=True)
    chart.label(0.3, LIMIT + 1.5, f"threshold L = {LIMIT:.1f}", GREY)
    sums = {}
    for name, chosen, colour, nudge in shown:
        total = np.concatenate([[0.0], np.cumsum(gain[chosen])])
        chart.line(list(enumerate(total)), colour)
        if name != "s5>s2":  # the same line as s2>s5
            chart.label(total.size - 0.8, total[-1] + nudge, name, colour)
        sums[name] = float(total[-1])
    chart.write("decide-evidence.svg")
    return sums


def main(path: str) -> None:
    """Write all figures."""
    IMAGES.mkdir(exist_ok=True)
    streams = read_streams(path)
    fitted = fit(streams)
    noise = noise_of(streams, fitted)
    shift = shift_of(noise, streams)
    a, b = streams.switches
    draw_effects(*fitted[1:])
    draw_increments(noise[a != b], shift)
    sums = draw_evidence(streams, remainder(streams, fitted, TOLERANCE), noise, shift)
    print(f"noise {1.4826 * np.median(np.abs(noise)):.4f}, shift {shift:.4f}, threshold {LIMIT:.2f} nats, sums {sums}")


if __name__ == "__main__":
    main(sys.argv[1])
