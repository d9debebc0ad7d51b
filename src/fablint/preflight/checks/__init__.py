"""Checks in folders by subject; `fablint.preflight.check_registry` is the table of all checks."""
