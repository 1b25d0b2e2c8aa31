"""The Python door: a recommender with the manners of scikit-learn, over a run and the model it leaves."""

from pslrec.recommender.estimator import NotFittedError, Recommender

__all__ = ["NotFittedError", "Recommender"]
