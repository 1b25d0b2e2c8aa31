"""Top-K recommenders with the ranking loss as a first-class, swappable part."""

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pslrec.recommender import NotFittedError as NotFittedError
    from pslrec.recommender import Recommender as Recommender

__all__ = ["NotFittedError", "Recommender", "__version__"]
__version__ = "0.1.0"

# Idle OpenMP threads spin for a millisecond by default. Where other work wants the cores, every short parallel loop then waits
# for whoever is spinning (docs/decisions/0007-short-spinning.md). Read once, when torch is first imported.
os.environ.setdefault("GOMP_SPINCOUNT", "5000")


def __getattr__(name: str) -> Any:
    # Torch takes a second to import, which `import pslrec` alone should not.
    if name in ("NotFittedError", "Recommender"):
        from pslrec import recommender

        return getattr(recommender, name)
    raise AttributeError(f"module 'pslrec' has no attribute '{name}'")
