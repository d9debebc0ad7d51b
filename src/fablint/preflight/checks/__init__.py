"""The checks, a file for each family. `fablint.preflight.table` has them all."""
