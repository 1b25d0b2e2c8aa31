"""The Python door: a recommender over one run and its model, following scikit-learn conventions."""

from pslrec.recommender._estimator import Recommender
from pslrec.recommender._frames import ranked_frame, rows_of
from pslrec.recommender._parameters import NotFittedError
from pslrec.recommender._reasons import with_reasons
from pslrec.recommender._rules import RuleArguments

__all__ = [
    "NotFittedError",
    "Recommender",
    "RuleArguments",
    "ranked_frame",
    "rows_of",
    "with_reasons",
]
