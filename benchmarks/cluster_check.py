"""`fablint check` of a virtual cluster under real Slurm, healthy and with each kind of fault: is the part named?

Needs the vcluster test bed beside the checkout, root, Slurm and LLDP; says so and ends where they are missing.

    python benchmarks/cluster_check.py [--only NAME,...] [--healthy N]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from checked_cluster import checked
from vcluster import Cluster, cluster, why_not

R0, R1, FAR = "x1000c0r0b0", "x1000c0r1b0", "x1001c0r0b0"
FAULTS = {
    "slow host": ("slow", "nid001003", "--rate", "20mbit"),
    "one-way slow host": ("slow", "nid001006", "--rate", "20mbit", "--dir", "tx"),
    "slow local link": ("slow", f"{R0}--{R1}", "--rate", "30mbit"),
    "slow global link": ("slow", f"{R0}--{FAR}", "--rate", "30mbit"),
    "lossy link": ("loss", "nid001009", "--percent", "5"),
    "MTU mismatch": ("mtu", "nid001010", "--mtu", "1500"),
    "MTU black hole": ("mtu", "nid001010", "--mtu", "1500", "--dir", "rx"),
    "host down": ("down", "nid001012"),
}


def check(bed: Cluster, name: str) -> str:
    """One check; what it came to, in a line."""
    with tempfile.TemporaryDirectory() as folder:
        outcome = checked(bed, Path(folder), "--exclude-unfit", within=("salloc", "--quiet", "-N16"))
    spent = f"({outcome.not_measuring()})"
    return f"{name:<20}  exit {outcome.exit_code}  {outcome.seconds:5.0f} s  {spent}  {outcome.summary()}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of faults, with commas between them")
    parser.add_argument("--healthy", type=int, default=1, help="how often the healthy cluster is checked")
    requested = parser.parse_args()
    if reason := why_not(slurm=True, lldp=True):
        print(f"left out: {reason}")
        return
    wanted = [name for name in FAULTS if not requested.only or name in requested.only.split(",")]
    with cluster("bench", groups=2, switches=2, hosts=4) as bed:
        for number in range(requested.healthy):
            print(check(bed, f"healthy {number + 1}"), flush=True)
        for name in wanted:
            bed.fault(*FAULTS[name])
            print(check(bed, name), flush=True)
            bed.heal()


if __name__ == "__main__":
    main()
