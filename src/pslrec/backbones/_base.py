"""What every backbone promises: two tables to train, and from them the representations of all users and items."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from pslrec.backbones._initialization import initial_tables
from pslrec.checks import whole_number
from pslrec.data import Interactions
from pslrec.registry import Registry, constructor_parameters
from pslrec.seeding import derive_seed

SearchSpace = Mapping[str, tuple[float, ...]]

# More than anybody trains; a larger number is a typing error, and should not be found by a full memory.
MOST_DIMENSIONS = 2**16
MOST_LAYERS = 64
# Arguments of every backbone that are no settings: they come from the data and from the run.
NOT_SETTINGS = ("train", "seed")


class Representations(NamedTuple):
    """What a backbone says of every user and item; scores are cosines or inner products of these rows.

    Args:
        users: one row per user, shape (n_users, dimension).
        items: one row per item, shape (n_items, dimension).
        contrast_users: a second view of the users, where the backbone's own loss compares two.
        contrast_items: the same of the items.
    """

    users: Tensor
    items: Tensor
    contrast_users: Tensor | None = None
    contrast_items: Tensor | None = None


class NewUsers(NamedTuple):
    """How a backbone represents a user that has a history, but no row: `sum of the items' messages / sqrt(items) + share * row`.

    Args:
        messages: what an item sends to a new user that has it, shape (n_items, dimension); `None` if nothing.
        share: of a row that is trained for the user as those of the table were; 0 if its history says it all.
    """

    messages: Tensor | None = None
    share: float = 1.0


class Backbone(nn.Module, ABC):
    """Base of all backbones: `backbone(noise)` gives the representations, to be scored by whatever the loss asks for.

    The trained parameters are `user_table` and `item_table`; everything else (a graph) follows from `train`, is built once and
    is not in the state dict.

    Args:
        train: the interactions to learn from. Repeated pairs count once, weights are ignored.
        dimension: columns of the tables: more hold more, cost more.
        initialization: how the tables start, see `initial_tables`; `None` takes the backbone's `default_initialization`.
        seed: of the tables' first values.
    """

    name: str = ""
    reference: str = ""
    is_lookup: ClassVar[bool] = False  # a row of the representations is a row of the table
    default_initialization: ClassVar[str] = "normal"
    search_space: ClassVar[SearchSpace] = {}
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
        generator = torch.Generator().manual_seed(derive_seed(seed, "initialization"))
        users, items = initial_tables(
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
            noise: where a backbone that perturbs its representations in training draws from; without it, and in evaluation
                mode, nothing is perturbed.
        """

    def auxiliary_loss(
        self,
        representations: Representations,  # noqa: ARG002
        users: Tensor,  # noqa: ARG002
        items: Tensor,  # noqa: ARG002
    ) -> Tensor | None:
        """The backbone's own loss on a batch, weighted and ready to be added to the ranking loss; `None` if it has none.

        Args:
            representations: what `forward` returned for this step.
            users: row number of the user of each positive pair, shape (batch,).
            items: row number of its item, shape (batch,).
        """
        return None

    def new_users(self) -> NewUsers:
        """How users who were not there in training are represented, with everything trained left as it is."""
        return NewUsers()

    def options(self) -> dict[str, Any]:
        """The settings that construct this backbone again, beside the data and the seed."""
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
    """Class decorator that names a backbone and files it in `BACKBONES`."""

    def decorate(backbone: AnyBackbone) -> AnyBackbone:
        backbone.name = name
        BACKBONES.register(name)(backbone)
        return backbone

    return decorate
