"""Generated fleets: snapshots as the collector takes them, of hosts that do not exist, healthy but for planned faults.

Written from the documentation of the kernel's files (Documentation/ABI, proc(5)), of iproute2, lldpd, ethtool and
chrony, and from what the collector lists as read. Nothing of it comes from the tests or from the checks that judge it.
"""
