"""What a site expects of its hosts: read from a site file, learned from hosts, compared with results of checks."""
