"""The check: default rows, levels, suites, follow-up measurements, retest and resume."""
