"""Several losses on one split: each chosen on validation, then evaluated once on the test part."""

from pslrec.config import RunConfig
from pslrec.data import Preparation, load_interactions, prepare
from pslrec.data.splits import split_by_name
from pslrec.experiment import run

LOSSES = ("bpr", "sl", "psl-relu")


def main() -> None:
    log = prepare(load_interactions("debian"), Preparation(k_core=20))
    dataset = split_by_name(log, "iid", validation="fraction", seed=0)
    for loss in LOSSES:
        config = RunConfig.from_settings(
            {
                "loss.name": loss,
                "backbone.dimension": 32,
                "backbone.initialization": "spectral",
                "training.learning_rate": 0.003,
                "training.epochs": 5,
                "training.validate_every": 1,
            }
        )
        metrics = run(config, data=dataset).metrics
        validation = metrics["validation"]["ndcg@20"]
        test = metrics["test"]["ndcg@20"]
        print(f"{loss:10} NDCG@20: validation {validation:.4f}, test {test:.4f}")


if __name__ == "__main__":
    main()
