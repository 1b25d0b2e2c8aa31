"""The Python door: a recommender with the manners of scikit-learn, over a run and the model it leaves."""

from pslrec.recommender._estimator import NotFittedError, Recommender
from pslrec.recommender._frames import ranked_frame, rows_of

__all__ = ["NotFittedError", "Recommender", "ranked_frame", "rows_of"]
