"""Checks of network interfaces: links, addresses, routes, LLDP neighbours, reachability."""
