"""Rows: the typed request, its options, its cost, and the plan file."""
