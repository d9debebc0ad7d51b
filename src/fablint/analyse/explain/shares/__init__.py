"""Components that are slow for a share of the time, by single measurements."""
