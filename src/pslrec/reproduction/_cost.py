"""How long a cell will take: scores it computes times the time of one, learnt from recorded runs."""

from collections.abc import Iterable, Mapping
from statistics import median

from pslrec.data.sources import SOURCES
from pslrec.reproduction._cells import Cell

# Seconds per score and epoch by mode, where no run tells yet; from runs with one thread.
SECONDS_PER_SCORE = {"sampled": 9e-8}
EXACT_SECONDS_PER_SCORE = 9e-9
TRAINED_SHARE = 0.7
# Scores of an epoch of data whose size is not known before they are read.
UNKNOWN_SCORES = 1e8


class Costs:
    """Estimates of cells.

    Args:
        rows: of finished runs, from which the time of a score is learnt.
        sources: name of the source of each data set by its printed name.
        epochs: of the runs.
    """

    def __init__(
        self, rows: Iterable[Mapping[str, str]], sources: Mapping[str, str], epochs: int
    ) -> None:
        self._sources = sources
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

    def _scores(self, row: Mapping[str, str]) -> float:
        source = self._sources.get(row["dataset"], "")
        if source not in SOURCES:
            return UNKNOWN_SCORES
        size = SOURCES[source].statistics
        if row["mode"] != "sampled":
            return float(size.n_users * size.n_items)
        # Drawing and the optimiser cost as much as a few negatives.
        n_negatives = int(row["negatives"].partition(" ")[0])
        return TRAINED_SHARE * size.n_interactions * (n_negatives + 30)
