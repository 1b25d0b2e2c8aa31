"""Walks and a regression, counted and fitted to the training pairs."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, Self, TypeVar

import torch
from scipy.sparse import csr_matrix

from pslrec.artifacts import Walks
from pslrec.baselines import CommonUsers
from pslrec.config import WalksSection
from pslrec.distributed import Group
from pslrec.errors import ConfigError
from pslrec.experiment._inputs import TrainingData

# What counts of common users may take; fitting a regression takes up to twice as much again.
MOST_BYTES = 4 * 2**30

Made = TypeVar("Made")


@dataclass(frozen=True)
class WalkSettings:
    """The section `walks` of a configuration with a number for everything; names are those of the section."""

    weight: float
    transition_exponent: float
    popularity_exponent: float
    regression: float
    regression_l1: float
    regression_l2: float

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
            regression_l1=section.regression_l1,
            regression_l2=section.regression_l2,
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
        self._regressions: dict[tuple[float, float], csr_matrix] = {}
        self._common: CommonUsers | None = None

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

    def n_candidates(self, l1: float) -> int:
        """Pairs of items that a regression has to look at; its cost grows with them.

        Args:
            l1: strength of its absolute penalty.
        """
        return self._in_all_processes(lambda: self._common_users().n_pairs_above(l1))

    def _regression(self, settings: WalkSettings) -> csr_matrix:
        key = (settings.regression_l1, settings.regression_l2)
        if key not in self._regressions:
            fitted = self._in_all_processes(
                lambda: self._common_users().weights(l1=key[0], l2=key[1])
            )
            # Not before all have it: who has it does not ask the others again.
            self._regressions[key] = fitted
        return self._regressions[key]

    def _common_users(self) -> CommonUsers:
        if self._common is None:
            needed = CommonUsers.memory_needed(self._train)
            if needed > MOST_BYTES:
                raise ValueError(
                    f"counting common users may take {needed / 2**30:.1f} GiB, more than "
                    f"{MOST_BYTES / 2**30:g}"
                )
            self._common = CommonUsers(self._train)
        return self._common

    def _in_all_processes(self, work: Callable[[], Made]) -> Made:
        """Do it, or fail in all processes if it fails in one."""
        made = None
        # Not the error itself: it would keep the matrices it was raised among.
        failure = ""
        try:
            made = work()
        except (ValueError, MemoryError) as error:
            failure = str(error) or "there is not enough memory"
        # Memory may run out in one process; the others must not wait for it to evaluate with them.
        n_failed = torch.tensor([float(bool(failure))])
        self._group.sum(n_failed)
        if failure:
            raise ConfigError(
                f"a regression on {self._train.n_items:,} items cannot be fitted: {failure}"
            )
        if made is None or n_failed > 0:
            raise ConfigError("it could not be fitted in another process")
        return made


class WalkFittings:
    """One for each division of the data that comes, kept as long as this.

    Args:
        group: processes that train together.
    """

    def __init__(self, group: Group) -> None:
        self._group = group
        self._known: list[tuple[TrainingData, WalkFitting]] = []

    def to(self, data: TrainingData, neighbours: int) -> WalkFitting:
        """The fitting to these data, the same object again if it was asked for before.

        Args:
            data: whose training pairs are counted.
            neighbours: items that a walk can lead to from each item.
        """
        for known, fitting in self._known:
            if known is data:
                return fitting
        fitting = WalkFitting(data, neighbours=neighbours, group=self._group)
        self._known.append((data, fitting))
        return fitting
