"""Messages of a simulated fabric: the links they cross, what these cost, and how long each message takes."""
