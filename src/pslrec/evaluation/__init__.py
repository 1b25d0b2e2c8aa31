"""A scorer's lists for every user, compared with what the users did."""

# Importing these fills METRICS, from which `_full_ranking` takes its defaults.
from pslrec.evaluation import _exposure, _full_ranks, _metrics  # noqa: F401
from pslrec.evaluation._evaluated import Evaluated
from pslrec.evaluation._full_ranking import (
    DEFAULT_MEMORY_BUDGET,
    DEFAULT_METRICS,
    EvaluationResult,
    evaluate,
    users_at_once,
)
from pslrec.evaluation._metrics import METRICS, Metric, metric
from pslrec.evaluation._scorer import AddingScorer, EmbeddingScorer, Scorer, VectorScorer
from pslrec.evaluation._significance import Comparison, compare, compare_results, holm, t_test
from pslrec.evaluation._task import Protocol, RankingTask, Split, ranking_task
from pslrec.kernels import top_k

__all__ = [
    "DEFAULT_MEMORY_BUDGET",
    "DEFAULT_METRICS",
    "METRICS",
    "AddingScorer",
    "Comparison",
    "EmbeddingScorer",
    "Evaluated",
    "EvaluationResult",
    "Metric",
    "Protocol",
    "RankingTask",
    "Scorer",
    "Split",
    "VectorScorer",
    "compare",
    "compare_results",
    "evaluate",
    "holm",
    "metric",
    "ranking_task",
    "t_test",
    "top_k",
    "users_at_once",
]
