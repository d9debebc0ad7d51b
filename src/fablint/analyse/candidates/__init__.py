"""Components that may be faulty, and the cells that each of them explains."""
