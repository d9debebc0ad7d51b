"""How right a verdict is on fabrics that `fablint simulate` did not make: the table of benchmarks/held_out.

    python benchmarks/held_out_fabrics.py [--seeds 1] [--only NAME] [--kind healthy|faulty|undecided] [--ranks] [--show]

Columns are counts of seeds. Verdicts: FAULT, INCOM(PLETE), PASS. `false`: a healthy component is at FAULT. Of the
faults, the one that was judged worst: named exactly, in a group that contains it, SUSPECT, INCOMPLETE only, PASS below
the printed bound, only others named (misnm), PASS above the bound (missd). `dir`: no wrong direction. `s`: seconds of a
run. Rules: a healthy fabric has a FAULT in at most 1 % of the seeds (else FAULT); a fault is never a PASS above the
bound (else PASS), and at most 1 % of the seeds have a healthy component at FAULT (else FALSE). `--markdown` prints the
tables of docs/explanation/held-out-fabrics.md, `--ranks` selects the scenarios of rails, planes, shares and leaves.
"""

import sys

from held_out.command import main

if __name__ == "__main__":
    sys.exit(main())
