"""What every backbone promises: two tables to train, and representations made from them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from pslrec.backbones._initialization import initial_history_tables, initial_tables
from pslrec.checks import whole_number
from pslrec.data import Interactions
from pslrec.registry import Registry, constructor_parameters
from pslrec.rows import Rows
from pslrec.seeding import derive_seed

SearchSpace = Mapping[str, tuple[float, ...]]

# More than anybody trains; a larger number is a typing error, and should not be found by a full
# memory.
MOST_DIMENSIONS = 2**16
MOST_LAYERS = 64
# Arguments of every backbone that are no settings: they come from the data and from the run.
NOT_SETTINGS = ("train", "seed")


class Representations(NamedTuple):
    """The vectors of every user and item; scores are cosines or inner products of these rows.

    Args:
        users: one row per user, shape (n_users, dimension).
        items: one row per item, shape (n_items, dimension).
        contrast_users: a second view of the users, where the backbone's own loss compares two.
        contrast_items: a second view of the items.
    """

    users: Tensor
    items: Tensor
    contrast_users: Tensor | None = None
    contrast_items: Tensor | None = None


class ItemPart(NamedTuple):
    """The rows of the items that a process holds, where several share them.

    Args:
        rows: which ones.
        combine: adds up a tensor over all processes; its gradient is that of the sum.
    """

    rows: range
    combine: Callable[[Tensor], Tensor]


class NewUsers(NamedTuple):
    """How a backbone represents a user who has a history but no row in the table.

    The representation is `sum of the items' messages / sqrt(number of items) + share * row`.

    Args:
        messages: what each item sends to a new user who has it, shape (n_items, dimension); `None`
            if nothing.
        share: weight of a row that is trained for the user as those of the table were; 0 if the
            history alone makes the representation.
    """

    messages: Tensor | None = None
    share: float = 1.0


class Backbone(nn.Module, ABC):
    """Base of all backbones: `backbone(noise)` gives the representations, which the loss scores.

    The trained parameters are `user_table`, with a row per user unless the backbone
    `sums_histories`, and `item_table`; everything else, such as a graph,
    follows from `train`, is built once and is not in the state dict.

    The arguments of `__init__` beside `train` and `seed` are the settings of a backbone: each is
    kept in an attribute of the same name, from which `options` reads it.

    Args:
        train: the interactions to learn from. Repeated pairs count once, weights are ignored.
        dimension: columns of the tables. More columns can hold more, and cost more.
        initialization: how the tables start, see `initial_tables`; `None` takes the backbone's
            `default_initialization`.
        seed: of the tables' first values.
    """

    name: str = ""
    reference: str = ""
    # A row of the representations is a row of the table, so that a step need not touch the others.
    is_lookup: ClassVar[bool] = False
    # Users have no rows of their own: `user_table` has a row per item, and a user is made of those
    # in the history. Training then predicts every history from a part of it.
    sums_histories: ClassVar[bool] = False
    # With `sums_histories`: it sums the items of `item_part` and combines what processes found.
    takes_item_parts: ClassVar[bool] = False
    default_initialization: ClassVar[str] = "normal"
    # The learning rate that `auto` takes, for 64 columns and steps of 256 to 4,096 pairs.
    auto_rate: ClassVar[float] = 0.004
    search_space: ClassVar[SearchSpace] = {}
    # Above 0 where the rows of the users are divided among processes, and these are not the first.
    first_user: int = 0
    # Which items the tables have rows of, where the items are divided among processes.
    item_part: "ItemPart | None" = None
    # Torch types calls of a module as Any.
    __call__: Callable[..., Representations]

    def __init__(
        self,
        train: Interactions,
        *,
        dimension: int = 64,
        initialization: str | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.dimension = whole_number("dimension", dimension, maximum=MOST_DIMENSIONS)
        self.initialization = initialization
        # A generator of its own: the tables do not depend on what else was drawn before.
        generator = torch.Generator().manual_seed(derive_seed(seed, "initialization"))
        make_tables = initial_tables
        if self.sums_histories:
            make_tables = initial_history_tables
        users, items = make_tables(
            initialization or self.default_initialization,
            train,
            dimension=self.dimension,
            generator=generator,
        )
        self.user_table = nn.Parameter(users)
        self.item_table = nn.Parameter(items)

    @abstractmethod
    def forward(self, noise: torch.Generator | None = None) -> Representations:
        """Representations of all users and items.

        Args:
            noise: source of random numbers for a backbone that perturbs its representations in
                training; without it, and in evaluation mode, nothing is perturbed.
        """

    def step_tables(self, noise: torch.Generator | None = None) -> Representations:
        """What a training step computes once, and takes the batch's users from by `users_of`.

        Args:
            noise: as in `forward`.
        """
        return self(noise)

    def users_of(
        self,
        tables: Representations,
        users: Tensor,
        visible: Rows | None = None,  # noqa: ARG002
    ) -> Tensor:
        """Representations of some users, differentiable, shape (len(users), dimension).

        Args:
            tables: what `step_tables` returned.
            users: row numbers; a user may come several times.
            visible: the part of every history that the step may see, where histories make users;
                all of it if not given.
        """
        if self.first_user:
            users = users - self.first_user
        # An embedding's gradient is written in parallel, an index's is not.
        return functional.embedding(users, tables.users)

    def encode(self, histories: Rows) -> Tensor | None:  # noqa: ARG002
        """Representations of users by their histories alone, without training.

        Args:
            histories: items of each user, ascending.

        Returns:
            Shape (len(histories), dimension); `None` where users have rows of their own.
        """
        return None

    def auxiliary_loss(
        self,
        representations: Representations,  # noqa: ARG002
        users: Tensor,  # noqa: ARG002
        items: Tensor,  # noqa: ARG002
    ) -> Tensor | None:
        """The backbone's own loss on a batch, added to the ranking loss; `None` if it has none.

        Args:
            representations: what `forward` returned for this step.
            users: row number of the user of each positive pair, shape (batch,).
            items: row number of its item, shape (batch,).
        """
        return None

    def new_users(self) -> NewUsers:
        """How users who were not there in training are represented by the model as it is."""
        return NewUsers()

    def options(self) -> dict[str, Any]:
        """The settings that construct this backbone again, without the data and the seed."""
        options = {}
        for parameter in constructor_parameters(type(self)):
            if parameter.name not in NOT_SETTINGS:
                options[parameter.name] = getattr(self, parameter.name)
        return options

    def extra_repr(self) -> str:
        """The options, as torch prints modules."""
        return ", ".join(f"{name}={value!r}" for name, value in self.options().items())


BACKBONES: Registry[type[Backbone]] = Registry("backbone", group="pslrec.backbones", base=Backbone)
AnyBackbone = TypeVar("AnyBackbone", bound=type[Backbone])


def register_backbone(name: str) -> Callable[[AnyBackbone], AnyBackbone]:
    """Class decorator that names a backbone and files it in `BACKBONES`.

    Args:
        name: what `backbone.name` and `--backbone` take.
    """

    def decorate(backbone: AnyBackbone) -> AnyBackbone:
        backbone.name = name
        BACKBONES.register(name)(backbone)
        return backbone

    return decorate
