"""Programs that run on other hosts: Python 3.6, standard library only. They are sent as text and import nothing of fablint there."""
