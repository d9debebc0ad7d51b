"""Cells that were planned and not measured, and the components that they have in common."""
