"""Site files: values that a site expects of its hosts; read, learned from hosts, and compared with snapshots."""
