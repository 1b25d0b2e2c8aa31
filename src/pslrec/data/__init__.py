"""The first stage: an interactions file becomes `Interactions`, these become a `Dataset` over shared vocabularies."""

from pslrec.data.columns import Columns
from pslrec.data.dataset import Dataset
from pslrec.data.description import Description, describe
from pslrec.data.interactions import Interactions
from pslrec.data.loading import load, load_interactions
from pslrec.data.preparation import Preparation, prepare
from pslrec.data.published import read_published
from pslrec.data.reading import read_interactions
from pslrec.data.vocabulary import Vocabulary

__all__ = [
    "Columns",
    "Dataset",
    "Description",
    "Interactions",
    "Preparation",
    "Vocabulary",
    "describe",
    "load",
    "load_interactions",
    "prepare",
    "read_interactions",
    "read_published",
]
