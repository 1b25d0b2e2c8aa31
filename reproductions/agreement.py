"""Our baselines beside those of irspack and implicit: same objective, same settings, NDCG@20 on validation.

    python reproductions/agreement.py DIRECTORY

takes the published splits in `iid/` of the directory, and needs `pip install 'pslrec[bench]'`. Writes `results.csv` beside
this file, in `agreement/`, and the table of `docs/reference/baselines.md`; rows that are there already are not measured
again. With `--tables` it only writes the table again. The test part is never read.

How the settings of each library are translated is said where it is done. What is random, the first item vectors of iALS, is
the same on both sides unless a case says `own start`; three seeds of it are compared, by their mean.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from _records import REPOSITORY, append, publish, read, table
from scipy.sparse import csr_matrix

from pslrec.baselines import BASELINES, ImplicitALS
from pslrec.data import Dataset, Interactions, read_published
from pslrec.data.splits import carve_validation
from pslrec.evaluation import EmbeddingScorer, Scorer, evaluate

RESULTS = REPOSITORY / "reproductions" / "agreement" / "results.csv"
PAGE = REPOSITORY / "docs" / "reference" / "baselines.md"
DATASETS = {
    "Amazon-Health": "amazon2014-health.zip",
    "MovieLens-100K": "movielens-100k.zip",
    "Amazon-Electronic": "amazon2014-electronic.zip",
}
SEEDS = (2024, 2025, 2026)
EPOCHS = 16
# Good settings on validation: weight of unobserved pairs and penalty, with the exponents 0.5 and 0.
IALS = {
    "Amazon-Health": {0.5: (0.1, 0.4), 0.0: (0.1, 3.0)},
    "MovieLens-100K": {0.5: (0.1, 0.4), 0.0: (0.3, 10.0)},
    "Amazon-Electronic": {0.5: (0.01, 0.5), 0.0: (0.01, 3.0)},
}
# The full problem of SLIM, which irspack solves, takes hours in ours beyond this many items.
MOST_ITEMS_OF_SLIM = 2000

Settings = dict[str, Any]
# Makes a scorer from training pairs, settings of ours and a seed.
Fit = Callable[[Interactions, Settings, int], Scorer]


class Case(NamedTuple):
    """One of our baselines, and what it is compared with."""

    baseline: str
    library: str
    settings: Settings
    fit: Fit
    seeds: tuple[int, ...] = (0,)


class SimilarityScorer:
    """Histories times a matrix of items by items."""

    def __init__(self, histories: csr_matrix, weights: Any) -> None:
        self.histories = histories
        self.weights = weights
        self.n_users, self.n_items = histories.shape

    def score(self, users: np.ndarray) -> torch.Tensor:
        scores = self.histories[users] @ self.weights
        if not isinstance(scores, np.ndarray):
            scores = scores.toarray()
        return torch.from_numpy(np.array(scores, dtype=np.float32))


def matrix_of(train: Interactions) -> csr_matrix:
    """Users by items with 1 for every pair: both libraries take other numbers as weights."""
    matrix = train.matrix().astype(np.float32)
    matrix.data[:] = 1.0
    return matrix


def by_products(users: np.ndarray, items: np.ndarray) -> Scorer:
    """Inner products of a library's vectors."""
    return EmbeddingScorer(torch.tensor(users), torch.tensor(items))


def irspack_ials(solver: str, *, same_start: bool) -> Fit:
    """iALS of irspack.

    Its loss `IALSPP` is half of ours: a pair in the matrix counts 1 with a target of 1, all pairs count `alpha0` with a
    target of 0, and `reg` is multiplied by the same power `nu` of the frequency. Its loss `ORIGINAL` adds `alpha0` to
    the weight of pairs in the matrix, which ours does not have.
    """

    def fit(train: Interactions, settings: Settings, seed: int) -> Scorer:
        from irspack.recommenders import IALSRecommender

        model = IALSRecommender(
            matrix_of(train),
            n_components=settings["dimension"],
            alpha0=settings["unobserved_weight"],
            reg=settings["regularization"],
            nu=settings["exponent"],
            loss_type="IALSPP",
            solver_type=solver,
            random_seed=seed,
            n_threads=1,
        )
        model.start_learning()
        if same_start:
            start = ImplicitALS(**settings, seed=seed).initial_vectors(train.n_items)
            trainer = model.trainer.core_trainer
            trainer.item = start.numpy()
            trainer.user = np.zeros_like(trainer.user)
        for _ in range(settings["epochs"]):
            model.run_epoch()
        return by_products(model.get_user_embedding(), model.get_item_embedding())

    return fit


def implicit_als(train: Interactions, settings: Settings, seed: int) -> Scorer:
    """ALS of implicit, solved exactly.

    It weights pairs of the matrix with `alpha` and all others with 1, where ours weight them with 1 + w and w, for a
    target of 1 / (1 + w): its vectors are ours times sqrt(1 + w) if the penalty grows with the weights.
    """
    from implicit.als import AlternatingLeastSquares

    weight = settings["unobserved_weight"]
    scale = (1.0 + weight) / weight
    model = AlternatingLeastSquares(
        factors=settings["dimension"],
        alpha=scale,
        regularization=settings["regularization"] * scale,
        iterations=settings["epochs"],
        use_cg=False,
        use_gpu=False,
        num_threads=1,
        random_state=seed,
    )
    start = ImplicitALS(**settings, seed=seed).initial_vectors(train.n_items)
    length = np.sqrt(np.float32(1.0 + weight))
    model.item_factors = length * start.numpy()
    model.user_factors = np.zeros((train.n_users, settings["dimension"]), dtype=np.float32)
    model.fit(matrix_of(train), show_progress=False)
    return by_products(model.user_factors, model.item_factors)


def irspack_similarity(name: str, options: Settings, *, transposed: bool = False) -> Fit:
    """One of irspack's matrices of items by items.

    Args:
        name: of its class.
        options: of its constructor.
        transposed: whether to use the transpose of its matrix.
    """

    def fit(train: Interactions, _settings: Settings, _seed: int) -> Scorer:
        from irspack import recommenders

        histories = matrix_of(train)
        model = getattr(recommenders, name)(histories, **options).learn()
        weights = model.W
        if transposed:
            weights = weights.T.tocsr()
        return SimilarityScorer(histories, weights)

    return fit


def cases_of(name: str, train: Interactions) -> Iterator[Case]:
    """All comparisons on a data set."""
    weight, penalty = IALS[name][0.5]
    small = {
        "dimension": 64,
        "unobserved_weight": weight,
        "regularization": penalty,
        "exponent": 0.5,
        "epochs": EPOCHS,
    }
    exact = irspack_ials("CHOLESKY", same_start=True)
    yield Case("ials", "irspack, Cholesky", small, exact, SEEDS)
    own_start = irspack_ials("CHOLESKY", same_start=False)
    yield Case("ials", "irspack, Cholesky, own start", small, own_start, SEEDS)
    large = {**small, "dimension": 256}
    yield Case("ials", "irspack, iALS++", large, irspack_ials("IALSPP", same_start=True), SEEDS)
    weight, penalty = IALS[name][0.0]
    without_frequency = {
        **small,
        "unobserved_weight": weight,
        "regularization": penalty,
        "exponent": 0.0,
    }
    yield Case("ials", "implicit, Cholesky", without_frequency, implicit_als, SEEDS)

    yield from autoencoder_cases(train)
    matrix = matrix_of(train)
    common = (matrix.T @ matrix).tocsr()
    # As many neighbours as any item has: lists are not cut.
    everyone = int(np.diff(common.indptr).max())
    yield from neighbour_cases(everyone, "")
    yield from neighbour_cases(100, ", lists cut at 100")


def autoencoder_cases(train: Interactions) -> Iterator[Case]:
    """EASE, EDLAE and SLIM: regressions of items on items."""
    ease = irspack_similarity("DenseSLIMRecommender", {"reg": 200.0})
    yield Case("ease", "irspack, DenseSLIM", {"regularization": 200.0}, ease)
    edlae = irspack_similarity("EDLAERecommender", {"reg": 100.0, "dropout_p": 0.25})
    yield Case("edlae", "irspack, EDLAE", {"regularization": 100.0, "dropout": 0.25}, edlae)
    if train.n_items > MOST_ITEMS_OF_SLIM:
        return
    settings = {"l1": 1.0, "l2": 10.0, "neighbours": train.n_items}
    both = settings["l1"] + settings["l2"]
    # Its penalties are shares of `alpha` times the number of users.
    options = {
        "alpha": both / train.n_users,
        "l1_ratio": settings["l1"] / both,
        "n_threads": 1,
    }
    yield Case("slim", "irspack, SLIM", settings, irspack_similarity("SLIMRecommender", options))


def neighbour_cases(neighbours: int, cut: str) -> Iterator[Case]:
    """Item-kNN and RP3beta.

    Args:
        neighbours: that an item keeps.
        cut: what is said of it.
    """
    settings = {"neighbours": neighbours, "shrinkage": 10.0}
    # It counts an item among its own neighbours, then takes it out.
    options = {"shrinkage": 10.0, "normalize": True, "top_k": neighbours + 1, "n_threads": 1}
    knn = irspack_similarity("CosineKNNRecommender", options)
    yield Case("item-knn", f"irspack, CosineKNN{cut}", settings, knn)
    if cut:
        turned = irspack_similarity("CosineKNNRecommender", options, transposed=True)
        yield Case("item-knn", f"irspack, CosineKNN{cut}, transposed", settings, turned)
    settings = {
        "neighbours": neighbours,
        "transition_exponent": 1.0,
        "popularity_exponent": 0.4,
    }
    # Its `alpha` is a power of the numbers in the matrix, all of which are 1: steps of a plain walk.
    options = {"beta": 0.4, "top_k": neighbours + 1, "normalize_weight": False, "n_threads": 1}
    walks = irspack_similarity("RP3betaRecommender", options)
    yield Case("rp3beta", f"irspack, RP3beta{cut}", settings, walks)


def measure(name: str, dataset: Dataset, case: Case, seed: int) -> dict[str, object]:
    """NDCG@20 on validation of ours and theirs, and the seconds each took to fit."""
    settings = dict(case.settings)
    options = dict(settings)
    if len(case.seeds) > 1:
        options["seed"] = seed
    start = time.perf_counter()
    ours = BASELINES[case.baseline](**options).fit(dataset.train)
    middle = time.perf_counter()
    theirs = case.fit(dataset.train, settings, seed)
    end = time.perf_counter()
    return {
        "data": name,
        "baseline": case.baseline,
        "library": case.library,
        "seed": seed,
        "ours": validation_ndcg(ours, dataset),
        "theirs": validation_ndcg(theirs, dataset),
        "seconds_ours": round(middle - start, 2),
        "seconds_theirs": round(end - middle, 2),
        "settings": json.dumps(settings),
    }


def validation_ndcg(scorer: Scorer, dataset: Dataset) -> float:
    result = evaluate(
        scorer, dataset, split="validation", k=[20], protocol="paper", metrics=["ndcg"]
    )
    return result["ndcg@20"]


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """The results for the documentation: the mean of each side, and by how much ours is above theirs."""
    names = list(dict.fromkeys(row["data"] for row in rows))
    pairs = list(dict.fromkeys((row["baseline"], row["library"]) for row in rows))
    headings = {"ours": "---", "theirs": "---"}
    headings |= dict.fromkeys(names, "---:")
    lines = []
    for baseline, library in pairs:
        cells = [f"`{baseline}`", library]
        for name in names:
            wanted = (name, baseline, library)
            found = []
            for row in rows:
                if (row["data"], row["baseline"], row["library"]) == wanted:
                    found.append(row)
            cells.append(cell_of(found))
        lines.append(cells)
    return table(headings, lines)


def cell_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Means over seeds of one comparison on one data set."""
    if not rows:
        return ""
    ours = float(np.mean([float(row["ours"]) for row in rows]))
    theirs = float(np.mean([float(row["theirs"]) for row in rows]))
    difference = 100 * (ours / theirs - 1)
    return f"{ours:.4f} / {theirs:.4f} ({difference:+.2f} %)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, nargs="?", help="has iid/")
    parser.add_argument("--only", help="names of data sets, by commas")
    parser.add_argument("--tables", action="store_true", help="write the table only")
    arguments = parser.parse_args()
    if not arguments.tables:
        if arguments.directory is None:
            parser.error("give the directory with the data, or --tables")
        torch.set_num_threads(1)
        names = arguments.only.split(",") if arguments.only else list(DATASETS)
        for name in names:
            split = read_published(arguments.directory / "iid" / DATASETS[name])
            measure_all(name, carve_validation(split, "paper"))
    publish("agreement", markdown(read(RESULTS)), PAGE)


def measure_all(name: str, dataset: Dataset) -> None:
    """Measure what is missing of a data set."""
    known = set()
    if RESULTS.exists():
        for row in read(RESULTS):
            known.add((row["data"], row["baseline"], row["library"], row["seed"]))
    for case in cases_of(name, dataset.train):
        for seed in case.seeds:
            if (name, case.baseline, case.library, str(seed)) in known:
                continue
            row = measure(name, dataset, case, seed)
            append(RESULTS, row)
            print(row, flush=True)


if __name__ == "__main__":
    main()
