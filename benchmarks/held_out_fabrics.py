"""How right a verdict is on fabrics that `fablint simulate` did not make: the table of benchmarks/held_out.

python benchmarks/held_out_fabrics.py [--seeds 3] [--only NAME] [--kind healthy|faulty|undecided] [--jobs 1]
"""

import sys

from held_out.command import main

if __name__ == "__main__":
    sys.exit(main())
