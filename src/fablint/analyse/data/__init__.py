"""What is judged: ranks and their placement, pairs, paths, rows."""
