"""The Python door: a recommender over one run and its model, following scikit-learn conventions."""

from pslrec.recommender._estimator import Recommender
from pslrec.recommender._frames import ranked_frame, rows_of
from pslrec.recommender._parameters import NotFittedError

__all__ = ["NotFittedError", "Recommender", "ranked_frame", "rows_of"]
