"""Programs that are sent to other hosts as text: Python 3.6, standard library only."""
