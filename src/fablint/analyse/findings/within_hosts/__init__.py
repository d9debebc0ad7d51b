"""Findings and coverage of what is inside hosts, where no message crosses the fabric."""
