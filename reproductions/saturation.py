"""What a sigmoid in single precision does to BPR: the program behind the published numbers ranks by one.

    python reproductions/saturation.py DATA/ood/gowalla-popularity.zip --table ood --out reproductions/saturation/results.csv

Inner products above 17 all become exactly 1 there, and those above 12 a few steps, so that a list is partly in random order. The
cell of BPR on MF is trained as `pslrec reproduce psl-neurips-2024` does it. Every fifty epochs its test part is ranked by the
scores, and by their sigmoids with ties in random order. The best value of each is kept, as the published number of the OOD
setting is the best on test; nothing else may use such a number.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _records import REPOSITORY, append
from torch import Tensor

from pslrec.artifacts import Model
from pslrec.config import RunConfig
from pslrec.data import Dataset, load
from pslrec.evaluation import Scorer, evaluate
from pslrec.experiment import (
    MemoryStore,
    build_batches,
    build_model,
    load_dataset,
    load_training_data,
)
from pslrec.reproduction import Choice, Grid
from pslrec.training import EpochFinished, Event, Trainer

PAPER = REPOSITORY / "reproductions" / "psl-neurips-2024"
EVERY = 50
# From this score on, sigmoids in single precision are equal, or at least a thousandth of a score apart. They lack this much of 1.
HIGH = 10.0
LACKING = float(torch.sigmoid(torch.tensor(-HIGH)))
# Half of the smallest that can be missing, as a share of it; where nothing is missing, a score is saturated.
SMALLEST = 2.0**-25 / LACKING
TIE_BREAKER = 1e-3


class Saturated:
    """Ranks as a sigmoid in single precision would, ties in random order.

    Args:
        scorer: of the scores themselves.
        seed: of the order of ties.
    """

    def __init__(self, scorer: Scorer, seed: int = 0) -> None:
        self._scorer = scorer
        self._random = torch.Generator().manual_seed(seed)
        # Users that have a saturated score, of a training item or another, and all that were asked for.
        self.saturated = 0
        self.scored = 0

    @property
    def n_users(self) -> int:
        """Users that can be scored."""
        return self._scorer.n_users

    @property
    def n_items(self) -> int:
        """Items of the catalogue."""
        return self._scorer.n_items

    def score(self, users: np.ndarray) -> Tensor:
        """Scores as they are up to 10; above, the logarithm of what their sigmoids lack of 1, which is as coarse as these."""
        scores = self._scorer.score(users)
        is_high = scores > HIGH
        missing = 1 - torch.sigmoid(scores[is_high])
        noise = torch.rand(missing.shape, generator=self._random) * TIE_BREAKER
        scores[is_high] = HIGH - torch.log(missing / LACKING + SMALLEST) + noise
        self.saturated += int(
            (is_high.float() * scores > HIGH - np.log(2 * SMALLEST)).any(dim=1).sum()
        )
        self.scored += len(users)
        return scores


def measure(dataset: Dataset, settings: dict[str, Any], table: str) -> dict[str, Any]:
    """The best NDCG@20 on test by the scores, and by their sigmoids."""
    # Trained on all of training, as for the published number of the OOD setting; of the IID one a part is for validation.
    rule = {"data.validation": "none"} if table == "ood" else {}
    config = RunConfig.from_settings({**settings, **rule}).resolved()
    carved = load_dataset(config, dataset)
    data = load_training_data(config, dataset)
    backbone, loss = build_model(config, data.train)
    batches = build_batches(config, data)
    found = {"scores": (0.0, 0), "sigmoids": (0.0, 0)}
    share = 0.0

    def value(scorer: Scorer) -> float:
        options = {"k": (20,), "protocol": "paper", "metrics": ("ndcg",)}
        return evaluate(scorer, carved, split="test", **options).metrics["ndcg@20"]

    def listen(event: Event) -> None:
        nonlocal share
        if not isinstance(event, EpochFinished) or event.epoch % EVERY:
            return
        scorer = Model.of(backbone, loss.similarity).scorer()
        saturated = Saturated(scorer)
        for name, each in (("scores", scorer), ("sigmoids", saturated)):
            found[name] = max(found[name], (value(each), event.epoch))
        share = saturated.saturated / saturated.scored
        print(event.epoch, found, f"{share:.3f} of users with a saturated score", flush=True)

    options = config.training.trainer_options(len(batches))
    Trainer(
        backbone, loss, batches, options=options, store=MemoryStore(), listeners=(listen,)
    ).fit()
    return {
        "data": dataset.name,
        "seed": config.training.seed,
        "epoch_by_scores": found["scores"][1],
        "ndcg20_by_scores": round(found["scores"][0], 5),
        "epoch_by_sigmoids": found["sigmoids"][1],
        "ndcg20_by_sigmoids": round(found["sigmoids"][0], 5),
        "users_with_saturated_scores": round(share, 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="a published split")
    parser.add_argument("--table", choices=["iid", "ood"], required=True)
    parser.add_argument("--name", default="gowalla", help="of the data set in the paper's tables")
    parser.add_argument("--out", type=Path, required=True, help="CSV file to write or add to")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    choice = Choice(datasets=[arguments.name], backbones=["mf"], losses=["bpr"], modes=["sampled"])
    for cell in Grid(PAPER).cells(arguments.table, choice):
        row = measure(load(str(arguments.data)), dict(cell.settings), arguments.table)
        append(arguments.out, row)
        print(row, flush=True)


if __name__ == "__main__":
    main()
