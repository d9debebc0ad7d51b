"""Figures that are computed from a run or from values in groups: analysis and reports read the same ones."""
