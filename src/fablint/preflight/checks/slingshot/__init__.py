"""Checks of Slingshot NICs."""
