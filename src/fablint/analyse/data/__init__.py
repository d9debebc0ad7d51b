"""Input of the analysis: ranks and their placement, pairs, message paths, rows."""
