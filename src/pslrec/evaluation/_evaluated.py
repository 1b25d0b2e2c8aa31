"""How much an evaluation stands on: users and pairs that were evaluated, out of how many."""

from dataclasses import asdict, dataclass

# Below these numbers a difference of some per cent between two models says nothing.
FEW_USERS = 100
FEW_SHARE = 0.1
# So many are never too few, however small a share they are: large data are evaluated on a sample.
ENOUGH_USERS = 10_000


@dataclass(frozen=True)
class Evaluated:
    """Users and pairs behind a table of metrics.

    Args:
        users: users that have pairs to be found.
        of_users: users of the data set.
        pairs: pairs to be found.
        of_pairs: pairs that were held out for this part, those of unknown users and items included.

    >>> Evaluated(20, 659, 412, 4_000).sentence("test")
    'evaluated on 20 of 659 users and 412 of 4,000 test pairs'
    """

    users: int
    of_users: int
    pairs: int
    of_pairs: int

    @property
    def is_few(self) -> bool:
        """Whether these are too few to tell models apart."""
        # Nothing was held out on purpose, so there is nothing to warn about.
        if self.of_pairs == 0:
            return False
        if self.users >= ENOUGH_USERS:
            return False
        return self.users < FEW_USERS or self.users < FEW_SHARE * self.of_users

    def sentence(self, split: str) -> str:
        """What was evaluated, in words.

        Args:
            split: name of the part, such as `test`.
        """
        return (
            f"evaluated on {self.users:,} of {self.of_users:,} users "
            f"and {self.pairs:,} of {self.of_pairs:,} {split} pairs"
        )

    def record(self) -> dict[str, int]:
        """The numbers by name, for `metrics.json`."""
        return asdict(self)
