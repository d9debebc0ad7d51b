"""Checks of the whole fabric by tools that run on one machine."""
