"""What a healthy cell does: classes, hosts, kinds of NICs, populations, load, rounding, time."""
