"""Limits: what a site requires of pairs, and what a measurement can detect."""
