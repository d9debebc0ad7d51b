"""`fablint`, and `python -m fablint`: Ctrl-C ends them without a traceback also while modules are imported."""

import sys


def main() -> None:
    """Run a verb and exit with its code."""
    try:
        from fablint.cli import main as run

        run()
    except KeyboardInterrupt:
        from fablint.errors import INTERRUPTED

        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
