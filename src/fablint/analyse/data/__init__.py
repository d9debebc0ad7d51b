"""What is judged: ranks and their places, pairs, paths, rows."""
