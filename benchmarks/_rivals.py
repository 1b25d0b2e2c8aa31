"""Models that exact training is compared with: each trains, and shows itself after every epoch.

`after_epoch` is given a function that makes a scorer, and tells whether to go on. What a scorer alone
needs, such as torch, is imported in that function: no rival has to wait for it.
"""

import importlib
from collections.abc import Callable
from typing import Any

from pslrec.data import Interactions

Settings = dict[str, Any]
AfterEpoch = Callable[[Callable[[], Any]], bool]
Train = Callable[[Interactions, Settings, int, AfterEpoch], None]
SEED = 0
# Epochs without a rise of validation NDCG@20 after which training ends, in the search and in the measurement.
PATIENCE = 3
LONG_PATIENCE = 10
# More than any of them needs: they run out of patience before.
MOST_EPOCHS = 60


class _Enough(Exception):  # noqa: N818
    """Ends a training that can only be left by an exception."""


def train_als(
    train: Interactions, settings: Settings, threads: int, after_epoch: AfterEpoch
) -> None:
    """Alternating least squares of `implicit`, by conjugate gradient, as is its default."""
    import numpy as np
    from implicit.als import AlternatingLeastSquares

    model = AlternatingLeastSquares(
        **settings,
        iterations=MOST_EPOCHS,
        num_threads=threads,
        random_state=SEED,
    )

    def scorer() -> Any:
        return _by_products(model.user_factors, model.item_factors)

    def callback(*_: object) -> None:
        if not after_epoch(scorer):
            raise _Enough

    try:
        model.fit(train.matrix().astype(np.float32), show_progress=False, callback=callback)
    except _Enough:
        return


def train_ialspp(
    train: Interactions, settings: Settings, threads: int, after_epoch: AfterEpoch
) -> None:
    """iALS++ of `irspack`: blocks of 64 factors are solved exactly, one after the other."""
    import numpy as np
    from irspack.recommenders import IALSRecommender

    matrix = train.matrix().astype(np.float32)
    model = IALSRecommender(
        matrix,
        **settings,
        solver_type="IALSPP",
        n_threads=threads,
        random_seed=SEED,
    )

    def scorer() -> Any:
        return _by_products(model.get_user_embedding(), model.get_item_embedding())

    model.start_learning()
    for _ in range(MOST_EPOCHS):
        model.run_epoch()
        if not after_epoch(scorer):
            return


def in_closed_form(name: str) -> Train:
    """Train a baseline of ours that has no epochs: fitting it once is all."""

    def train(
        train: Interactions, settings: Settings, threads: int, after_epoch: AfterEpoch
    ) -> None:
        import torch

        from pslrec.baselines import BASELINES

        torch.set_num_threads(threads)
        scorer = BASELINES[name](**settings).fit(train)
        after_epoch(lambda: scorer)

    return train


def _by_products(users: Any, items: Any) -> Any:
    import torch

    from pslrec.evaluation import EmbeddingScorer

    return EmbeddingScorer(torch.tensor(users), torch.tensor(items))


RIVALS: dict[str, Train] = {
    "als": train_als,
    "ialspp": train_ialspp,
    "ease": in_closed_form("ease"),
    "gf-cf": in_closed_form("gf-cf"),
    "rp3beta": in_closed_form("rp3beta"),
    "slim": in_closed_form("slim"),
}
PACKAGES = {"als": "implicit", "ialspp": "irspack"}


def why_missing(kind: str) -> str:
    """Why a rival cannot take part: its package cannot be imported; empty if it can."""
    package = PACKAGES.get(kind)
    if package is None:
        return ""
    try:
        importlib.import_module(package)
    except ImportError as error:
        advice = "install it with pip install 'pslrec[bench]'"
        return f"`{package}` cannot be imported ({error}); {advice}"
    return ""
