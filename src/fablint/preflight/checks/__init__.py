"""The checks, a file for each family. `fablint.preflight.check_registry` has them all."""
