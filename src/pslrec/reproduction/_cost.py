"""How long a cell will take: scores it computes times the time of one, learnt from runs that are done."""

from collections.abc import Iterable, Mapping
from statistics import median

from pslrec.data.sources import SOURCES
from pslrec.reproduction.cells import Cell

# Seconds per score and epoch by mode, where no run tells yet; from runs with one thread.
SECONDS_PER_SCORE = {"sampled": 9e-8, "catalog": 9e-9}
# A pass of a graph backbone costs several times the edges at every step; measured beside MF.
SLOWER = {"MF": 1.0, "LightGCN": 2.5, "XSimGCL": 5.0}
TRAINED_SHARE = 0.7


class Costs:
    """Estimates of cells.

    Args:
        rows: of finished runs, from which the time of a score is learnt.
        sources: name of the source of each data set by its printed name.
    """

    def __init__(self, rows: Iterable[Mapping[str, str]], sources: Mapping[str, str]) -> None:
        self._sources = sources
        seen: dict[tuple[str, str], list[float]] = {}
        for row in rows:
            # A try with fewer epochs took less time than its row would let one expect.
            if (
                row["dataset"] in sources
                and "epochs" not in row["setting"]
                and float(row["seconds"]) > 0
            ):
                negatives = row["negatives"].partition(" ")[0]
                scores = self._scores(
                    row["dataset"], row["mode"], 0 if negatives == "catalog" else int(negatives)
                )
                seen.setdefault((row["mode"], row["backbone"]), []).append(
                    float(row["seconds"]) / (scores * 200)
                )
        self._rates = {place: median(rates) for place, rates in seen.items()}

    def seconds(self, cell: Cell) -> float:
        """Of its whole training."""
        known = self._rates.get((cell.mode, cell.backbone))
        if known is None:
            on_mf = self._rates.get((cell.mode, "MF"), SECONDS_PER_SCORE[cell.mode])
            known = on_mf * SLOWER.get(cell.backbone, 1.0)
        return known * self._scores(cell.dataset, cell.mode, cell.n_negatives) * cell.epochs

    def _scores(self, dataset: str, mode: str, n_negatives: int) -> float:
        size = SOURCES[self._sources[dataset]].statistics
        if mode == "catalog":
            return float(size.n_users * size.n_items)
        # Drawing and the optimiser cost as much as a few negatives.
        return TRAINED_SHARE * size.n_interactions * (n_negatives + 30)
