"""A finished run becomes ranked lists, similar items, and vectors of new users."""

from pslrec.inference._explaining import Reason
from pslrec.inference._fold_in import FoldIn, StepPlan
from pslrec.inference._model import TrainedModel
from pslrec.inference._ranking import DEFAULT_MEMORY_BUDGET, TopItems, top_items
from pslrec.inference._rule_keeper import RuleKeeper
from pslrec.inference._rules import NO_RULES, RowRules, Rules
from pslrec.inference._starting_rows import StartingRows

__all__ = [
    "DEFAULT_MEMORY_BUDGET",
    "NO_RULES",
    "FoldIn",
    "Reason",
    "RowRules",
    "RuleKeeper",
    "Rules",
    "StartingRows",
    "StepPlan",
    "TopItems",
    "TrainedModel",
    "top_items",
]
