"""Text: units of figures, sentences of findings, sanitising of untrusted text, tables of a site file."""
