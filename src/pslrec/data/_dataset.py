"""A data set ready for training: parts of one interactions log over shared vocabularies."""

from dataclasses import dataclass

from pslrec.data._interactions import Interactions, concatenate
from pslrec.data._vocabulary import Vocabulary
from pslrec.errors import DataError


@dataclass(frozen=True, eq=False)
class Dataset:
    """Training, validation and test interactions.

    Args:
        train: what a model learns from.
        test: what it is evaluated on at the very end.
        validation: what choices (epoch, settings) are made on; `None` until a validation part is
            carved out of `train`.
        name: what reports call the data set.
        n_left_out: pairs that a split had set apart for the test and then left out, because their
            user or item is not in training.
        disliked: pairs that a minimum rating removed. Nothing is learnt from them, and nobody is
            recommended what they rated low.
        divided_by: name of the split that made the parts out of one log; empty if the data came
            divided, or were never divided.
    """

    train: Interactions
    test: Interactions
    validation: Interactions | None = None
    name: str = "data"
    n_left_out: int = 0
    disliked: Interactions | None = None
    divided_by: str = ""

    def __post_init__(self) -> None:
        for part in (self.test, self.validation, self.disliked):
            if part is not None and not _same_vocabularies(part, self.train):
                raise DataError(
                    "the parts of a `Dataset` must share the same vocabularies; "
                    "split one `Interactions` to get them"
                )

    @property
    def n_users(self) -> int:
        """Users of the shared vocabulary."""
        return self.train.n_users

    @property
    def n_items(self) -> int:
        """Items of the shared vocabulary."""
        return self.train.n_items

    @property
    def user_vocabulary(self) -> Vocabulary:
        """External user ids by row."""
        return self.train.user_vocabulary

    @property
    def item_vocabulary(self) -> Vocabulary:
        """External item ids by row."""
        return self.train.item_vocabulary

    def parts(self) -> dict[str, Interactions]:
        """The parts that exist, by name."""
        parts = {"train": self.train, "validation": self.validation, "test": self.test}
        return {name: part for name, part in parts.items() if part is not None}

    def whole(self) -> Interactions:
        """All interactions, as if they had never been split."""
        return concatenate(list(self.parts().values()))

    def __repr__(self) -> str:
        validation = 0
        if self.validation is not None:
            validation = len(self.validation)
        return (
            f"Dataset({self.name}: {self.n_users:,} users, {self.n_items:,} items, "
            f"{len(self.train):,} train / {validation:,} validation / {len(self.test):,} test)"
        )


def _same_vocabularies(one: Interactions, other: Interactions) -> bool:
    if one.user_vocabulary != other.user_vocabulary:
        return False
    return one.item_vocabulary == other.item_vocabulary
