"""Checks of the ports of InfiniBand, RoCE and Omni-Path devices."""
