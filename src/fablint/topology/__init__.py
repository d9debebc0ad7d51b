"""The topology of a fabric: routing of messages, reader and writer of topology files."""
