"""Results in formats of other programs: JUnit for CI servers, Prometheus for monitoring; `formats` has the table."""
