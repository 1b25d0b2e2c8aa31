"""Why SL@20 and LLPAUC differ from the published numbers on Amazon-Health: draw the negatives without replacement.

    python reproductions/without_replacement.py amazon2014-health.zip sl@k 60

trains as the published settings say, but with 1000 different negatives for each positive, and prints Recall@20 and NDCG@20.
"""

import argparse

import torch

from pslrec.config import RunConfig
from pslrec.experiment import assembly, run
from pslrec.sampling import PairBatch, PairBatches
from pslrec.seeding import derive_seed

LOSSES = {
    "sl": {"loss.temperature": 0.1},
    "sl@k": {"loss.temperature": 0.1, "loss.weight_temperature": 1.25, "loss.k": 20, "loss.update_every": 5},
    "llpauc": {"loss.alpha": 0.7, "loss.beta": 0.01},
}


class DistinctBatches(PairBatches):
    """Pairs whose negatives are all different: the free items with the largest random keys."""

    def _batch(self, pairs, key):
        users, taken = self._users[pairs], self.pool.taken
        generator = torch.Generator().manual_seed(derive_seed(key, int(pairs[0]), len(pairs)))
        keys = torch.rand(len(pairs), self.pool.n_items, generator=generator)
        starts, ends = taken.offsets[users.long()], taken.offsets[users.long() + 1]
        lengths = ends - starts
        owners = torch.repeat_interleave(torch.arange(len(users)), lengths)
        within = torch.arange(len(owners)) - torch.repeat_interleave(lengths.cumsum(0) - lengths, lengths)
        keys[owners, taken.items[starts[owners] + within].long()] = -1.0
        negatives = keys.topk(self.n_negatives, dim=1, sorted=False).indices.int()
        return PairBatch(users.long(), torch.cat([self._items[pairs].unsqueeze(1), negatives], dim=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", help="the published split of Amazon-Health")
    parser.add_argument("loss", choices=LOSSES)
    parser.add_argument("epochs", type=int)
    options = parser.parse_args()
    torch.set_num_threads(1)
    assembly.PairBatches = DistinctBatches
    settings = {
        "data.source": options.data,
        "loss.name": options.loss,
        "training.learning_rate": 0.1,
        "training.epochs": options.epochs,
        "evaluation.protocol": "paper",
        **LOSSES[options.loss],
    }
    metrics = run(RunConfig.from_settings(settings)).metrics
    test = metrics["test"]
    print(f"{options.loss}: {test['recall@20']:.4f} {test['ndcg@20']:.4f}, epoch {metrics['best_epoch']}")


if __name__ == "__main__":
    main()
