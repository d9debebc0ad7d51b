"""A second generator of measured fabrics, and a scorer that goes through the program.

Nothing here imports `fablint.simulate` or `fablint.analyse`: what is judged must not supply the data it is judged on.
"""
