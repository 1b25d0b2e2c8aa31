"""A scorer's lists for every user, compared with what the users did."""

from pslrec.evaluation import exposure, full_ranks, metrics  # noqa: F401  (they fill METRICS)
from pslrec.evaluation.evaluated import Evaluated
from pslrec.evaluation.full_ranking import DEFAULT_METRICS, EvaluationResult, evaluate
from pslrec.evaluation.metrics import METRICS, Metric, metric
from pslrec.evaluation.scorer import EmbeddingScorer, Scorer, VectorScorer
from pslrec.evaluation.significance import Comparison, compare, compare_results
from pslrec.evaluation.task import Protocol, Split
from pslrec.kernels.top_k import top_k

__all__ = [
    "DEFAULT_METRICS",
    "METRICS",
    "Comparison",
    "EmbeddingScorer",
    "Evaluated",
    "EvaluationResult",
    "Metric",
    "Protocol",
    "Scorer",
    "Split",
    "VectorScorer",
    "compare",
    "compare_results",
    "evaluate",
    "metric",
    "top_k",
]
