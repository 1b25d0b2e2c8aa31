"""How long a cell will take: scores it computes times the time of one, learnt from recorded runs."""

from collections.abc import Iterable
from statistics import median

from pslrec.data.sources import SOURCES
from pslrec.reproduction._cells import Cell
from pslrec.reproduction._paper import PaperFile
from pslrec.reproduction._published import Row

# Seconds per score and epoch by mode, where no run tells yet; from runs with one thread.
SECONDS_PER_SCORE = {"sampled": 9e-8}
EXACT_SECONDS_PER_SCORE = 9e-9
TRAINED_SHARE = 0.7
# Scores of an epoch of data whose size is not known before they are read.
UNKNOWN_SCORES = 1e9


class Costs:
    """Estimates of cells.

    Args:
        paper: knows its data sets, and the epochs of its runs.
        rows: of finished runs, from which the time of a score is learnt.
        measured: rows of `datasets.csv`, for data that are not a source.
    """

    def __init__(self, paper: PaperFile, rows: Iterable[Row], measured: Iterable[Row]) -> None:
        # Numbers of users, items and interactions, where they are known.
        self._sizes: dict[str, tuple[int, int, int]] = {}
        for row in measured:
            n_users, n_items, n_interactions = row["users"], row["items"], row["interactions"]
            self._sizes[row["dataset"]] = (int(n_users), int(n_items), int(n_interactions))
        for name, source in paper.datasets.items():
            if source in SOURCES:
                size = SOURCES[source].statistics
                self._sizes[name] = (size.n_users, size.n_items, size.n_interactions)
        epochs = int(paper.settings.get("training.epochs", 1))
        seen: dict[tuple[str, str], list[float]] = {}
        for row in rows:
            # A try with fewer epochs took less time than its row would let one expect.
            if "," in row["setting"] or not float(row["seconds"] or 0):
                continue
            rate = float(row["seconds"]) / (self._scores(row) * epochs)
            seen.setdefault((row["mode"], row["backbone"]), []).append(rate)
        self._rates = {place: median(rates) for place, rates in seen.items()}

    def seconds(self, cell: Cell) -> float:
        """Of its whole training."""
        columns = cell.columns()
        mode = columns["mode"]
        usual = SECONDS_PER_SCORE.get(mode, EXACT_SECONDS_PER_SCORE)
        rate = self._rates.get((mode, cell.backbone), usual)
        return rate * self._scores(columns) * cell.epochs

    def _scores(self, row: Row) -> float:
        if row["dataset"] not in self._sizes:
            return UNKNOWN_SCORES
        n_users, n_items, n_interactions = self._sizes[row["dataset"]]
        if row["mode"] != "sampled":
            return float(n_users * n_items)
        # Drawing and the optimiser cost as much as a few negatives.
        n_negatives = int(row["negatives"].partition(" ")[0])
        return TRAINED_SHARE * n_interactions * (n_negatives + 30)
