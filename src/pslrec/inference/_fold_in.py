"""Fold-in: vectors of new users, fitted to their histories under the training loss.

Items stay fixed, so a new user needs no training of the model.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import Adam

from pslrec.artifacts import ArtifactError
from pslrec.backbones import Backbone, NewUsers, Representations
from pslrec.data import Interactions, Vocabulary
from pslrec.errors import ConfigError
from pslrec.inference._starting_rows import StartingRows, sums
from pslrec.kernels import sampled_scores
from pslrec.losses import Loss, Setup
from pslrec.rows import Rows
from pslrec.sampling import CatalogBlock, PairBatches, UserBlocks
from pslrec.seeding import derive_seed
from pslrec.training import CatalogObjective, SampledObjective, scored_tables

# Negatives per positive, for losses that cannot be computed over the whole catalogue.
N_DRAWN = 100
# Fixed, so that the same history always gets the same vector.
SEED = 0
# Scores of a block of users and what is computed from them take about this much per item.
BYTES_PER_SCORE = 12


@dataclass(frozen=True)
class StepPlan:
    """How the row of a new user is trained.

    Args:
        n_steps: number of steps, each over the whole history and the whole catalogue.
        turn: about how far the first step may turn a row, as a share of its length; later steps
            are shorter.
    """

    n_steps: int
    turn: float


# By the similarity of the loss: with inner products, long steps make rows longer, and longer rows
# fit the history and nothing else. Chosen on validation items of held-out users, see
# `reproductions/fold_in.py --choose`.
PLANS = {"half-cosine": StepPlan(3, 0.1), "inner-product": StepPlan(3, 0.05)}


@dataclass(frozen=True, eq=False)
class FrozenModel:
    """A trained backbone that no longer changes, and how it was trained.

    Args:
        backbone: with its trained tables.
        items: representations of all items.
        train: the interactions that it was trained on.
        make_loss: constructs the loss; each fit needs a new one, as what a loss learns on the way
            belongs to the users it was built for.
        penalty: weight decay times the number of training pairs: the price of a row's length
            relative to the loss.
    """

    backbone: Backbone
    items: Tensor
    train: Interactions
    make_loss: Callable[[], Loss]
    penalty: float = 0.0


class FoldIn:
    """Computes vectors of new users; nothing in it changes after construction.

    Args:
        frozen: the model that they are fitted to.
        memory_budget: bytes for scores; less memory means fewer users at a time.
        plan: how rows are trained; by default the plan in `PLANS` for the loss's similarity.
    """

    def __init__(
        self, frozen: FrozenModel, *, memory_budget: int, plan: StepPlan | None = None
    ) -> None:
        self._frozen = frozen
        self._rule: NewUsers = frozen.backbone.new_users()
        user_rows = frozen.backbone.user_table.detach()
        # In double precision: the squares of long rows overflow before the rows do.
        lengths = torch.linalg.vector_norm(user_rows, dim=1, dtype=torch.float64)
        self._row_length = float(lengths.mean())
        self._users_at_once = max(memory_budget // (BYTES_PER_SCORE * len(frozen.items)), 1)
        self._similarity = frozen.make_loss().similarity
        self._plan = plan or PLANS[self._similarity]
        # Normalised once here instead of in every step of every request.
        no_users = frozen.items[:0]
        _, self._items, _ = scored_tables(Representations(no_users, frozen.items), self._similarity)

    def vectors(self, histories: Rows) -> Tensor:
        """User vectors whose inner products with the scored item vectors are scores.

        Args:
            histories: item rows of each user; an empty history gives a row of zeros.
        """
        encoded = self._frozen.backbone.encode(histories)
        if encoded is not None:
            # The backbone makes new users as it makes known ones, so there is nothing to fit.
            found = self._scored(encoded.detach())
            self._check_finite(found)
            return found
        found = self._zeros(histories)
        # A user who has every item leaves no negatives, so there is nothing to train on.
        can_train = (histories.lengths < len(self._items)) & (self._rule.share > 0)
        has_history = histories.lengths > 0
        for trains in (False, True):
            given = np.flatnonzero(has_history & (can_train == trains))
            for start in range(0, len(given), self._users_at_once):
                users = given[start : start + self._users_at_once]
                block = histories.select(users)
                found[torch.from_numpy(users)] = self._vectors_of(block, trains=trains)
        self._check_finite(found)
        return found

    def _check_finite(self, vectors: Tensor) -> None:
        is_spoilt = (~vectors.isfinite()).any(dim=1)
        n_spoilt = int(is_spoilt.sum())
        if n_spoilt:
            raise ArtifactError(
                f"`histories` must give vectors of finite numbers, got {n_spoilt} of "
                f"{len(vectors)} that are not: the model left single precision (mean length of "
                f"its user rows {self._row_length:.3g}, weight decay times pairs "
                f"{self._frozen.penalty:.3g}); "
                "train again with a smaller learning rate or weight decay"
            )

    def _vectors_of(self, histories: Rows, *, trains: bool) -> Tensor:
        # Where the backbone ignores a user's row, there is nothing to initialise.
        rows = self._zeros(histories)
        if self._rule.share > 0:
            rows = self._starting_rows.directions(histories) * self._row_length
        backbone = _NewUserBackbone(self._messages(histories), rows, self._items, self._rule.share)
        if trains:
            self._train(backbone, histories)
        return self._scored(backbone().users.detach())

    def _scored(self, representations: Tensor) -> Tensor:
        no_items = representations[:0]
        users, _, scale = scored_tables(
            Representations(representations, no_items), self._similarity
        )
        return users * scale

    def _zeros(self, histories: Rows) -> Tensor:
        n_users = len(histories.lengths)
        dimension = self._items.shape[1]
        return torch.zeros((n_users, dimension))

    def _messages(self, histories: Rows) -> Tensor:
        """The part of a representation that a graph sends from the items of the history."""
        messages = self._rule.messages
        if messages is None:
            return self._zeros(histories)
        roots = torch.from_numpy(np.sqrt(histories.lengths)).float().unsqueeze(1)
        return sums(messages.detach(), histories) / roots

    @cached_property
    def _starting_rows(self) -> StartingRows:
        backbone = self._frozen.backbone
        return StartingRows(
            backbone.item_table.detach(),
            backbone.user_table.detach(),
            self._frozen.train.rows,
        )

    def _train(self, backbone: "_NewUserBackbone", histories: Rows) -> None:
        loss = self._frozen.make_loss()
        people = _as_interactions(histories, len(self._items))
        _build(loss, people, backbone.dimension)
        # Adam moves every entry by about the rate, and so a row by rate * sqrt(dimension).
        rate = self._plan.turn * self._row_length / math.sqrt(backbone.dimension)
        loss_parameters = loss.parameter_groups(rate)
        loss_optimizer = None
        if loss_parameters:
            loss_optimizer = Adam(loss_parameters, lr=rate)
        row_optimizer = _AdamSteps(backbone.user_table)
        n_steps = self._plan.n_steps
        for step, (objective, batch) in enumerate(_batches(backbone, loss, people, n_steps)):
            loss.start_epoch(step)
            # The sum over all pairs, not their mean: otherwise a user's vector would depend on
            # who else is in the request.
            value = objective(backbone(), batch) * len(people)
            penalty = self._frozen.penalty / 2 * backbone.user_table.square().sum()
            (value + penalty).backward()
            # Cosine schedule, from the full rate towards 0.
            decay = 0.5 * (1 + math.cos(math.pi * step / n_steps))
            row_optimizer.take(rate * decay)
            if loss_optimizer is not None:
                loss_optimizer.step()
                loss_optimizer.zero_grad()
            loss.after_step(objective.step_of(batch))


class _AdamSteps:
    """Adam on one table.

    Torch's own loads a compiler at its first step, which would delay the first answer by seconds.
    Steps do not depend on the scale of the gradient, so a large weight decay must not make them
    fail: the moments are in double precision, where no square of a gradient overflows.
    """

    def __init__(self, table: nn.Parameter) -> None:
        self._table = table
        self._step = 0
        self._first = torch.zeros_like(table, dtype=torch.float64)
        self._second = torch.zeros_like(table, dtype=torch.float64)

    @torch.no_grad()
    def take(self, rate: float) -> None:
        assert self._table.grad is not None
        gradient = self._table.grad.double()
        self._step += 1
        self._first.lerp_(gradient, 0.1)
        self._second.lerp_(gradient.square(), 0.001)
        # Both moments start at zero, which the division corrects.
        mean = self._first / (1 - 0.9**self._step)
        square = self._second / (1 - 0.999**self._step)
        move = rate * mean / (square.sqrt() + 1e-8)
        self._table.sub_(move.to(self._table.dtype))
        self._table.grad = None


class _NewUserBackbone(Backbone):
    """New users beside items that stay fixed."""

    def __init__(self, messages: Tensor, rows: Tensor, items: Tensor, share: float) -> None:
        # Not that of `Backbone`, which would draw tables for all users and items.
        nn.Module.__init__(self)
        self.dimension = items.shape[1]
        self.share = share
        self.messages = messages
        self.items = items
        self.user_table = nn.Parameter(rows)

    def forward(self, noise: torch.Generator | None = None) -> Representations:  # noqa: ARG002
        return Representations(self.messages + self.share * self.user_table, self.items)


class _FrozenItemsObjective(CatalogObjective):
    """The exact objective with items that are normalised already."""

    def __call__(self, representations: Representations, batch: CatalogBlock) -> Tensor:
        users = functional.embedding(batch.users, representations.users)
        no_items = representations.items[:0]
        users, _, _ = scored_tables(Representations(users, no_items), self.loss.similarity)
        return self.ranking_loss(users, representations.items, batch)


def _build(loss: Loss, people: Interactions, dimension: int) -> None:
    loss.build(
        Setup(
            n_users=people.n_users,
            n_items=people.n_items,
            dimension=dimension,
            generator=torch.Generator().manual_seed(derive_seed(SEED, "loss")),
            history=people.rows,
            products=lambda users, items, drawn: sampled_scores(
                users, items, drawn.int().contiguous()
            ),
        )
    )


def _batches(
    backbone: Backbone, loss: Loss, people: Interactions, n_steps: int
) -> Iterator[tuple[Any, Any]]:
    """The objective and the batch of each step; every step is over all users."""
    try:
        exact = _FrozenItemsObjective(backbone, loss)
    except ConfigError:
        # The loss is not defined over a whole catalogue.
        sampled = SampledObjective(backbone, loss)
        draws = PairBatches(people, n_negatives=N_DRAWN, batch_pairs=len(people), seed=SEED)
        for epoch in range(n_steps):
            for batch in draws.epoch(epoch):
                yield sampled, batch
        return
    (block,) = UserBlocks(people, batch_pairs=len(people)).epoch(0)
    for _ in range(n_steps):
        yield exact, block


def _as_interactions(histories: Rows, n_items: int) -> Interactions:
    n_users = len(histories.lengths)
    return Interactions(
        np.repeat(np.arange(n_users), histories.lengths),
        histories.items,
        Vocabulary(np.arange(n_users), kind="user"),
        Vocabulary(np.arange(n_items), kind="item"),
    )
