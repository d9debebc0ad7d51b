"""Findings about what was planned or present and not measured."""
