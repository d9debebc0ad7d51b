"""One pass over the arrays of a run: what the report shows of pairs."""
