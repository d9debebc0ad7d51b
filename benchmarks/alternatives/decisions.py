"""Figures of the pages in docs/decisions that compare a choice with its alternatives.

    python benchmarks/alternatives/decisions.py [zarr | pandas | engine | evidence | learning ...]

Each figure is one comparison on this machine. Ratios mean something, times of a busy machine do not.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import fablint
from fablint.model import Run
from fablint.model.arrays import Floats

HOSTS = 256
SEEDS = 40
HEALTHY, FAULTY = ("mesh", "8x8"), "host:h12:tx:-10%"


def cpu_ms(function: Callable[[], object], times: int = 5) -> float:
    """Return the smallest CPU time of some calls in ms."""
    seconds = []
    for _ in range(times):
        begun = time.process_time()
        function()
        seconds.append(time.process_time() - begun)
    return min(seconds) * 1e3


def times_of(run: Run, row: str) -> Floats:
    """Return (n, n) logarithms of the times of a simulated row with one size, NaN on the diagonal."""
    array = next(row_of for row_of in run.rows if row_of.name == row).arrays["time_median"]
    return np.log(np.squeeze(np.asarray(array[:], np.float64)))


# ---- files of a run


def zarr_and_hdf5() -> None:
    """Print which files can be read if the writer is killed: chunk files, or one HDF5 file."""
    import h5py
    import zarr

    matrix = np.random.default_rng(1).random((HOSTS, HOSTS)).astype(np.float32)
    with tempfile.TemporaryDirectory() as name:
        readable = {"zarr": 0, "hdf5": 0}
        for cut in range(1, 21):
            rows = HOSTS * cut // 21  # that were written when the writer was killed
            folder = Path(name) / f"{cut}.zarr"
            array = zarr.create_array(folder, shape=matrix.shape, chunks=(1, HOSTS), dtype="f4", fill_value=np.nan)
            array[:rows] = matrix[:rows]
            kept = np.asarray(zarr.open_array(folder, mode="r")[:])
            readable["zarr"] += bool((kept[:rows] == matrix[:rows]).all() and np.isnan(kept[rows:]).all())
            path = Path(name) / f"{cut}.h5"
            killed = f"""
import h5py, numpy, os
file = h5py.File({str(path)!r}, "w")
data = file.create_dataset("time", ({HOSTS}, {HOSTS}), "f4", chunks=(1, {HOSTS}), fillvalue=numpy.nan)
data[:{rows}] = 1.0
os._exit(9)
"""
            subprocess.run([sys.executable, "-c", killed], check=False)
            try:
                with h5py.File(path, "r") as file:
                    readable["hdf5"] += bool((np.asarray(file["time"][:rows]) == 1.0).all())
            except (OSError, KeyError):
                pass
    print(f"zarr: of 20 runs whose writer was killed {readable['zarr']} read, as HDF5 {readable['hdf5']}")


def arrays_and_frames() -> None:
    """Print memory and CPU time of the median of each sender: an array, or a table of pairs."""
    import pandas

    matrix = np.random.default_rng(1).random((HOSTS * 4, HOSTS * 4)).astype(np.float32)
    src, dst = np.indices(matrix.shape, dtype=np.int32)
    frame = pandas.DataFrame({"src": src.ravel(), "dst": dst.ravel(), "time": matrix.ravel()})
    array_ms = cpu_ms(lambda: np.median(matrix, axis=1))
    frame_ms = cpu_ms(lambda: frame.groupby("src")["time"].median())
    mib = (matrix.nbytes / 2**20, float(frame.memory_usage().sum()) / 2**20)
    array, table = f"array {mib[0]:.0f} MiB, {array_ms:.0f} ms", f"table {mib[1]:.0f} MiB, {frame_ms:.0f} ms"
    print(f"pandas: {HOSTS * 4} hosts: {array}; {table}")


# ---- measurement


def launches() -> None:
    """Print the time of all pairs of eight ranks in one launch, and in a launch for each pair."""
    fablint_words = [sys.executable, "-m", "fablint", "measure", "-q", "--yes"]
    row = "latency --sizes 8 --samples 10 --warmup 2"
    with tempfile.TemporaryDirectory() as name:
        seconds = []
        for ranks, pattern, count in ((8, "all-pairs", 1), (2, "pair", 5)):
            begun = time.perf_counter()
            for number in range(count):
                words = ["-n", str(ranks), "-r", f"{row} --pattern {pattern}", "-o", f"{name}/{ranks}-{number}.run"]
                subprocess.run([*fablint_words, *words], check=True, capture_output=True)
            seconds.append((time.perf_counter() - begun) / count)
    print(f"engine: 28 pairs of 8 ranks: one launch {seconds[0]:.1f} s, a launch for each {28 * seconds[1]:.0f} s")


# ---- judgement


def fixed_rules_and_evidence() -> None:
    """Print how many healthy runs fixed rules and fablint report, and how many hosts of a run with one slow host."""
    hosts: dict[str, list[list[int]]] = {}
    for faults in ((), (FAULTY,)):
        counts: dict[str, list[int]] = {}
        for seed in range(1, SEEDS + 1):
            run = fablint.simulate_run(*HEALTHY, faults=faults, seed=seed)
            log_time = times_of(run, "bandwidth")
            deviation = log_time - np.nanmedian(log_time)
            sigma = 1.4826 * np.nanmedian(np.abs(deviation))
            for rule, slow in (("3 sigma", deviation > 3 * sigma), ("10 % above the median", deviation > 0.1)):
                counts.setdefault(rule, []).append(int(slow.any(axis=1).sum()))
            counts.setdefault("fablint", []).append(len(faulty_hosts(run)))
        for rule, numbers in counts.items():
            hosts.setdefault(rule, []).append(numbers)
    for rule, (healthy, faulty) in hosts.items():
        reported, named = sum(map(bool, healthy)), float(np.mean(faulty))
        print(f"evidence: {rule}: reports {reported} of {SEEDS} healthy runs, {named:.1f} hosts where one is slow")


def faulty_hosts(run: Run) -> set[str]:
    """Return the hosts that fablint reports as FAULT."""
    findings = fablint.diagnose(run).verdict.findings
    faults = [finding for finding in findings if finding.state.name == "FAULT" and finding.component == "host"]
    return {node for finding in faults for node in finding.nodes}


def features(run: Run) -> Floats:
    """Return (n, 4) what a classifier sees of each host: medians and quartiles of what it sends and receives."""
    log_time = times_of(run, "bandwidth")
    log_time -= np.nanmedian(log_time)
    parts = [np.nanquantile(log_time, share, axis=axis) for axis in (1, 0) for share in (0.5, 0.75)]
    return np.stack([*parts, np.ones(len(parts[0]))], axis=1)


def trained(runs: list[tuple[Run, int]]) -> Floats:
    """Return weights of a logistic regression of the slow host of each run, by 4,000 steps of gradient descent."""
    inputs = np.concatenate([features(run) for run, _ in runs]) * 30
    labels = np.concatenate([np.arange(run.ranks) == host for run, host in runs]).astype(float)
    weights = np.zeros(inputs.shape[1])
    balance = np.where(labels > 0, (labels == 0).sum() / max(labels.sum(), 1), 1.0)
    for _ in range(4000):
        error = (1 / (1 + np.exp(-inputs @ weights)) - labels) * balance
        weights -= 0.5 * inputs.T @ error / len(labels)
    return weights


def learned_and_fitted() -> None:
    """Print what a classifier names that was trained on one fabric, on that fabric and on another one."""
    train = [(fablint.simulate_run("mesh", "8x8", faults=[f"host:h{h:02d}:tx:-10%"], seed=h), h) for h in range(1, 25)]
    weights = trained(train)
    cases = {
        "the same fabric": ("mesh", "8x8", "host:h40:tx:-10%", 40),
        "a fat tree, slow receiver": ("fat-tree", "8x2", "host:h40:rx:-10%", 40),
        "a mesh with a slow cable": ("mesh", "8x8", "cable:s2=s5:-20%", None),
    }
    for what, (kind, shape, fault, host) in cases.items():
        right = {"learned": 0, "fitted": 0}
        for seed in range(101, 101 + SEEDS // 2):
            run = fablint.simulate_run(kind, shape, faults=[fault], seed=seed)
            named = set(np.flatnonzero(features(run) * 30 @ weights > 0).tolist())
            right["learned"] += named == ({host} if host is not None else set())
            right["fitted"] += faulty_hosts(run) == ({f"h{host:02d}"} if host is not None else set())
        print(
            f"learning: {what}: right in {right['learned']} of {SEEDS // 2} runs, the fitted model in {right['fitted']}"
        )


FIGURES = {
    "zarr": zarr_and_hdf5,
    "pandas": arrays_and_frames,
    "engine": launches,
    "evidence": fixed_rules_and_evidence,
    "learning": learned_and_fitted,
}


def main() -> None:
    """Print the figures that the command line names, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", nargs="*", metavar="|".join(FIGURES), help="[all]")
    names = parser.parse_args().figures or list(FIGURES)
    if unknown := [name for name in names if name not in FIGURES]:
        parser.error(f"no figure {unknown[0]}: give {', '.join(FIGURES)}")
    for name in names:
        FIGURES[name]()


if __name__ == "__main__":
    main()
