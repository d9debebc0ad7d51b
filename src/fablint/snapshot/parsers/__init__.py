"""Parsers of the output of system tools."""
