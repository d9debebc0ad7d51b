"""Findings about paths, routes and cables between switches."""
