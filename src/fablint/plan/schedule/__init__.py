"""Schedules: which ranks communicate in which round."""
