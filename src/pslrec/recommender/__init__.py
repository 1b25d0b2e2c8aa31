"""The Python door: a recommender over one run and its model, following scikit-learn conventions."""

from pslrec.recommender._estimator import NotFittedError, Recommender
from pslrec.recommender._frames import ranked_frame, rows_of

__all__ = ["NotFittedError", "Recommender", "ranked_frame", "rows_of"]
