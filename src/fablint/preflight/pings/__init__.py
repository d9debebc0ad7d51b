"""Pings between the hosts of a fleet: the mesh, its losses, and which end is faulty."""
