"""Checks of the host itself: processors, memory, PCI Express, settings, software, identity."""
