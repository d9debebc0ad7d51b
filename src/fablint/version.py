"""The version, where every module can import it without importing the package's public names."""

__version__ = "0.2.0"
