"""Launches that fail or lose hosts: which hosts are excluded, and how the measurement goes on without them."""
