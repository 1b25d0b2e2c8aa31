"""What every backbone promises: two tables to train, and from them the representations of all users and items."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from pslrec.backbones._initialization import initial_tables
from pslrec.data import Interactions
from pslrec.errors import ConfigError
from pslrec.registry import Registry
from pslrec.seeding import derive_seed

SearchSpace = Mapping[str, tuple[float, ...]]


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
        self.dimension = whole_number("dimension", dimension, at_least=1, limit=MOST_DIMENSIONS)
        self.initialization = initialization
        generator = torch.Generator().manual_seed(derive_seed(seed, "initialization"))
        users, items = initial_tables(
            initialization or self.default_initialization,
            train,
            dimension=dimension,
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
        parameters = inspect.signature(type(self)).parameters
        return {name: getattr(self, name) for name in parameters if name not in ("train", "seed")}

    def extra_repr(self) -> str:
        """The options, as torch prints modules."""
        return ", ".join(f"{name}={value!r}" for name, value in self.options().items())


BACKBONES: Registry[type[Backbone]] = Registry("backbone", group="pslrec.backbones")
AnyBackbone = TypeVar("AnyBackbone", bound=type[Backbone])


def register_backbone(name: str) -> Callable[[AnyBackbone], AnyBackbone]:
    """Class decorator that names a backbone and files it in `BACKBONES`."""

    def decorate(backbone: AnyBackbone) -> AnyBackbone:
        backbone.name = name
        BACKBONES.register(name)(backbone)
        return backbone

    return decorate


# More than anybody trains, and little enough to be told from a slip of the finger before the memory is full.
MOST_DIMENSIONS, MOST_LAYERS = 2**16, 64
# Beyond these, what is divided or multiplied by a setting is no number of single precision any more.
SMALLEST, LARGEST = 1e-12, 1e12


def whole_number(
    name: str, value: int, *, at_least: int, at_most: int | None = None, limit: int | None = None
) -> int:
    """The value, if it is a whole number in the range; `limit` is an end that nobody should come near."""
    if (
        not isinstance(value, int)
        or isinstance(value, bool)
        or value < at_least
        or (at_most is not None and value > at_most)
    ):
        allowed = f"at least {at_least}" if at_most is None else f"from {at_least} to {at_most}"
        raise ConfigError(f"`{name}` must be a whole number {allowed}, got {value!r}")
    if limit is not None and value > limit:
        raise ConfigError(f"`{name}` must be a whole number at most {limit}, got {value!r}")
    return value


def finite_number(name: str, value: float, *, above: float | None = None) -> float:
    """The value, if it is finite and not negative; with `above`, greater than that."""
    is_allowed = value >= 0 if above is None else value > above
    if not is_allowed or value == float("inf"):
        allowed = "at least 0" if above is None else f"greater than {above:g}"
        raise ConfigError(f"`{name}` must be a finite number {allowed}, got {value!r}")
    if value > LARGEST or (above is not None and value < SMALLEST):
        raise ConfigError(f"`{name}` must be from {SMALLEST:g} to {LARGEST:g}, got {value!r}")
    return value
