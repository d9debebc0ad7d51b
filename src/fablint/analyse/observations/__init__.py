"""What was measured: times, late and lost messages, counts, and the statistics that they are described by."""
