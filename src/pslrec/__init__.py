"""Top-K recommenders with the ranking loss as a first-class, swappable part."""

import os

__version__ = "0.1.0"

# Idle OpenMP threads spin for a millisecond by default. Where other work wants the cores, every short parallel loop then waits
# for whoever is spinning: training was seen to take ten times as long. Read once, when torch is first imported.
os.environ.setdefault("GOMP_SPINCOUNT", "5000")
