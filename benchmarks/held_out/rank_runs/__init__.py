"""Runs of ranks on NICs, written as run directories: rails, planes, ranks that share a NIC, contention, shares of time.

The fabrics, capacities and noise are those of `held_out`; an endpoint of a fabric is a NIC here, and not a host.
"""
