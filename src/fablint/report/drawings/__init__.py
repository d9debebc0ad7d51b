"""Plots, scales and the drawing of the topology, as data for inline SVG."""
