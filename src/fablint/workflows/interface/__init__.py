"""The interface of fablint for Python programs."""
