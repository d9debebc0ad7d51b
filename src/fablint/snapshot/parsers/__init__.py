"""Parsers of what system tools print."""
