"""Text: names of hosts and switches, units of figures, sanitising of untrusted text, tables of a site file."""
