"""Top-K recommenders with the ranking loss as a first-class, swappable part."""

import os

__version__ = "0.1.0"

# Idle OpenMP threads spin for a millisecond by default. Where other work wants the cores, every short parallel loop then waits
# for whoever is spinning (docs/decisions/0007-short-spinning.md). Read once, when torch is first imported.
os.environ.setdefault("GOMP_SPINCOUNT", "5000")
