"""Facts of runs and rows in a run directory: attributes of its groups, and arrays of what each rank or host has."""
