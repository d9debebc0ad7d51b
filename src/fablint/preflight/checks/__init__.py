"""The checks, a file for each family. `fablint.preflight.registry` has them all."""
