"""Paths between switches that are slower than their kind."""
