"""The check of a cluster or of one machine: its levels, launches, record and findings of preflight."""
