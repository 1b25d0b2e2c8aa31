"""A finished run becomes ranked lists, similar items, and vectors of people who were not there in training."""

from pslrec.inference.model import TrainedModel
from pslrec.inference.ranking import TopItems, top_items
from pslrec.inference.run_files import ModelError, RunFiles, read_run

__all__ = ["ModelError", "RunFiles", "TopItems", "TrainedModel", "read_run", "top_items"]
