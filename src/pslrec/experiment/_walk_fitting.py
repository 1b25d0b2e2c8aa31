"""Walks and a regression, counted and fitted to the training pairs."""

from dataclasses import dataclass, replace
from typing import Literal, Self

import torch
from scipy.sparse import csr_matrix

from pslrec.artifacts import Walks
from pslrec.baselines import regression_matrix
from pslrec.config import WalksSection
from pslrec.distributed import Group
from pslrec.errors import ConfigError
from pslrec.experiment._inputs import TrainingData


@dataclass(frozen=True)
class WalkSettings:
    """The section `walks` of a configuration with a number for everything; names are those of the section."""

    weight: float
    transition_exponent: float
    popularity_exponent: float
    regression: float
    regularization: float
    regression_items: int

    @classmethod
    def of(cls, section: WalksSection) -> Self:
        """The settings of a section; weights that are left open are 0.

        Args:
            section: of a configuration.
        """
        return cls(
            weight=_number(section.weight),
            transition_exponent=section.transition_exponent,
            popularity_exponent=section.popularity_exponent,
            regression=_number(section.regression),
            regularization=section.regularization,
            regression_items=section.regression_items,
        )


def _number(weight: float | Literal["auto"]) -> float:
    return 0.0 if weight == "auto" else float(weight)


class WalkFitting:
    """Fits what settings ask for, and keeps it: a search comes back to the same exponents.

    Args:
        data: whose training pairs are counted.
        neighbours: items that a walk can lead to from each item.
        group: processes that train together.
    """

    def __init__(self, data: TrainingData, *, neighbours: int, group: Group) -> None:
        self._train = data.train
        self._neighbours = neighbours
        self._group = group
        self._counted: dict[tuple[float, float], Walks] = {}
        self._regressions: dict[tuple[float, int], csr_matrix] = {}

    def fitted(self, settings: WalkSettings) -> Walks | None:
        """What is added to the scores; `None` if nothing is.

        Args:
            settings: with the weights that scores are to have.
        """
        if not (settings.weight or settings.regression):
            return None
        walks = Walks.none(self._train.n_items)
        if settings.weight:
            walks = replace(self._walks(settings), weight=settings.weight)
        if not settings.regression:
            return walks
        return walks.beside(self._regression(settings), settings.regression)

    def _walks(self, settings: WalkSettings) -> Walks:
        key = (settings.transition_exponent, settings.popularity_exponent)
        if key not in self._counted:
            self._counted[key] = Walks.fit(
                self._train,
                weight=1.0,
                neighbours=self._neighbours,
                transition_exponent=settings.transition_exponent,
                popularity_exponent=settings.popularity_exponent,
            )
        return self._counted[key]

    def _regression(self, settings: WalkSettings) -> csr_matrix:
        n_items = min(settings.regression_items, self._train.n_items)
        key = (settings.regularization, n_items)
        if key in self._regressions:
            return self._regressions[key]
        # Not the error itself: it would keep the matrices it was raised among.
        failure = ""
        try:
            self._regressions[key] = regression_matrix(
                self._train, regularization=settings.regularization, most_items=n_items
            )
        except (ValueError, MemoryError) as error:
            failure = str(error) or "there is not enough memory"
        # Memory may run out in one process; the others must not wait for it to evaluate with them.
        n_failed = torch.tensor([float(bool(failure))])
        self._group.sum(n_failed)
        if failure:
            raise ConfigError(
                f"a regression on {n_items:,} items with a regularization of "
                f"{settings.regularization:g} cannot be fitted: {failure}; set `walks.regression` to 0, "
                "or fewer `walks.regression_items`"
            )
        if n_failed > 0:
            raise ConfigError("it could not be fitted in another process")
        return self._regressions[key]
