"""Causes with a hidden variable of their own: wiring, thresholds, inside hosts, engine reports, root cause."""
