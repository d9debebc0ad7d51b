"""Preflight of hosts as text, JUnit and Prometheus."""
