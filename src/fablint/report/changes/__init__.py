"""The comparison of two runs as text, JSON and a page."""
