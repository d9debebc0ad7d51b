"""Schedulers: one module each; `registry` is their table."""
