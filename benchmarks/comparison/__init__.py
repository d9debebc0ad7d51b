"""What the benchmarks share: programs started by turns, and the ratio of their figures with its interval."""
