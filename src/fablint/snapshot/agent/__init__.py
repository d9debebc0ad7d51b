"""Programs that run on other hosts, sent there as text: Python 3.6, the standard library only."""
