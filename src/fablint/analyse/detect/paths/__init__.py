"""Detection of slow paths between switches."""
