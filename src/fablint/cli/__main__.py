"""`python -m fablint.cli`: the same as `fablint`."""

from fablint.cli import main

main()
