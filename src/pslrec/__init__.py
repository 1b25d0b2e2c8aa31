"""Top-K recommenders with the ranking loss as a first-class, swappable part."""

__version__ = "0.1.0"
