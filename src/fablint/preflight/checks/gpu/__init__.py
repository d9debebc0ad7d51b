"""Checks of GPUs and of the links between GPUs."""
