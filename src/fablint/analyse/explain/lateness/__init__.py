"""Links whose messages cannot be followed, by the number of late messages."""
