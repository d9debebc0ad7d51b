"""Facts of a run directory as typed fields: those of a run and of a row (docs/reference/run-format.md)."""
