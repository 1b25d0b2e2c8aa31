"""Vectors of people who were not there in training: their histories against frozen items, under the training loss."""

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

from pslrec.backbones import Backbone, NewUsers, Representations
from pslrec.data import Interactions, Vocabulary
from pslrec.errors import ConfigError
from pslrec.inference._run_files import ModelError
from pslrec.inference._starting_rows import StartingRows, sums
from pslrec.kernels import sampled_scores
from pslrec.losses import Loss, Setup
from pslrec.rows import Rows
from pslrec.sampling import CatalogBlock, PairBatches, UserBlocks
from pslrec.seeding import derive_seed
from pslrec.training import CatalogObjective, SampledObjective, scored_tables

N_DRAWN = 100  # negatives of a positive, for losses that can not take the whole catalogue
SEED = 0


@dataclass(frozen=True)
class StepPlan:
    """How the row of a new user is trained.

    Args:
        n_steps: each over the whole history and the whole catalogue.
        turn: how far the first step may turn a row, about, as a share of its length; later ones are shorter.
    """

    n_steps: int
    turn: float


# By the similarity of the loss: among inner products long steps make rows longer, and longer rows fit the history and nothing
# else. Chosen on validation items of people held out: `reproductions/fold_in.py --choose`.
PLANS = {"half-cosine": StepPlan(3, 0.1), "inner-product": StepPlan(3, 0.05)}


@dataclass(frozen=True, eq=False)
class FrozenModel:
    """A trained backbone that stays as it is, and how it was trained.

    Args:
        backbone: with its trained tables.
        items: representations of all items.
        train: what it was trained on.
        make_loss: builds the loss anew: what it learns on the way belongs to the users it is built for.
        penalty: weight decay times the number of training pairs: what the length of a row costs beside its loss.
    """

    backbone: Backbone
    items: Tensor
    train: Interactions
    make_loss: Callable[[], Loss]
    penalty: float = 0.0


class FoldIn:
    """Makes vectors of new users; nothing in it changes once it is made.

    Args:
        frozen: what they are fitted to.
        memory_budget: bytes for scores; less means fewer users at a time.
        plan: how rows are trained; that of `PLANS` for the similarity of the loss if not given.
    """

    def __init__(
        self, frozen: FrozenModel, *, memory_budget: int, plan: StepPlan | None = None
    ) -> None:
        self._frozen = frozen
        self._rule: NewUsers = frozen.backbone.new_users()
        user_rows = frozen.backbone.user_table.detach()
        # Of double precision: the squares of long rows overflow before the rows do.
        lengths = torch.linalg.vector_norm(user_rows, dim=1, dtype=torch.float64)
        self._row_length = float(lengths.mean())
        self._users_at_once = max(memory_budget // (12 * len(frozen.items)), 1)
        self._similarity = frozen.make_loss().similarity
        self._plan = plan or PLANS[self._similarity]
        # Normalising once what every step would normalise again.
        self._items = scored_tables(
            Representations(frozen.items[:0], frozen.items), self._similarity
        )[1]

    def vectors(self, histories: Rows) -> Tensor:
        """User vectors whose inner products with the scored item vectors are scores; an empty history gives zeros."""
        found = torch.zeros((len(histories.lengths), self._items.shape[1]))
        # Somebody who has everything leaves nothing to rank lower, so there is nothing to train on.
        can_train = (histories.lengths < len(self._items)) & (self._rule.share > 0)
        for trains in (False, True):
            given = np.flatnonzero((histories.lengths > 0) & (can_train == trains))
            for start in range(0, len(given), self._users_at_once):
                users = given[start : start + self._users_at_once]
                found[torch.from_numpy(users)] = self._vectors_of(
                    histories.select(users), trains=trains
                )
        self._check(found)
        return found

    def _check(self, found: Tensor) -> None:
        n_spoilt = int((~found.isfinite()).any(dim=1).sum())
        if n_spoilt:
            raise ModelError(
                f"`histories` must give vectors of finite numbers, got {n_spoilt} of {len(found)} "
                "that are not: the model left single precision (mean length of its user rows "
                f"{self._row_length:.3g}, weight decay times pairs {self._frozen.penalty:.3g}); "
                "train again with a smaller learning rate or weight decay"
            )

    def _vectors_of(self, histories: Rows, *, trains: bool) -> Tensor:
        # Where a row counts for nothing, there is nothing to start with.
        rows = (
            self._start(histories)
            if self._rule.share > 0
            else torch.zeros((len(histories.lengths), self._items.shape[1]))
        )
        backbone = _NewUserBackbone(self._fixed(histories), rows, self._items, self._rule.share)
        if trains:
            self._train(backbone, histories)
        found = backbone().users.detach()
        users, _, scale = scored_tables(Representations(found, found[:0]), self._similarity)
        return users * scale

    def _fixed(self, histories: Rows) -> Tensor:
        messages = self._rule.messages
        if messages is None:
            return torch.zeros((len(histories.lengths), self._items.shape[1]))
        roots = torch.from_numpy(np.sqrt(histories.lengths)).float().unsqueeze(1)
        return sums(messages.detach(), histories) / roots

    def _start(self, histories: Rows) -> Tensor:
        return self._starting_rows.directions(histories) * self._row_length

    @cached_property
    def _starting_rows(self) -> StartingRows:
        backbone = self._frozen.backbone
        return StartingRows(
            backbone.item_table.detach(),
            backbone.user_table.detach(),
            self._frozen.train.rows,
        )

    def _train(self, backbone: "_NewUserBackbone", histories: Rows) -> None:
        loss, people = self._frozen.make_loss(), _as_interactions(histories, len(self._items))
        _build(loss, people, backbone.dimension)
        rate = self._plan.turn * self._row_length / math.sqrt(backbone.dimension)
        groups = loss.parameter_groups(rate)
        beside = Adam(groups, lr=rate) if groups else None
        steps = _AdamSteps(backbone.user_table)
        for step, (objective, batch) in enumerate(
            _batches(backbone, loss, people, self._plan.n_steps)
        ):
            loss.start_epoch(step)
            # Of all pairs, not of the mean one: a user's vector must not depend on who else is asked for.
            value = objective(backbone(), batch) * len(people)
            length = self._frozen.penalty / 2 * backbone.user_table.square().sum()
            (value + length).backward()
            steps.take(rate * 0.5 * (1 + math.cos(math.pi * step / self._plan.n_steps)))
            if beside is not None:
                beside.step()
                beside.zero_grad()
            loss.after_step(objective.step_of(batch))


class _AdamSteps:
    """Adam on one table. Torch's own brings its compiler along, seconds before the first answer.

    Steps do not depend on the scale of the gradient, so a large weight decay is no reason to fail:
    the moments are of double precision, in which no square of a gradient overflows.
    """

    def __init__(self, table: nn.Parameter) -> None:
        self._table, self._step = table, 0
        self._first = torch.zeros_like(table, dtype=torch.float64)
        self._second = torch.zeros_like(table, dtype=torch.float64)

    @torch.no_grad()
    def take(self, rate: float) -> None:
        assert self._table.grad is not None
        gradient = self._table.grad.double()
        self._step += 1
        self._first.lerp_(gradient, 0.1)
        self._second.lerp_(gradient.square(), 0.001)
        mean, square = self._first / (1 - 0.9**self._step), self._second / (1 - 0.999**self._step)
        move = rate * mean / (square.sqrt() + 1e-8)
        self._table.sub_(move.to(self._table.dtype))
        self._table.grad = None


class _NewUserBackbone(Backbone):
    """New users beside items that stand still."""

    def __init__(self, fixed: Tensor, rows: Tensor, items: Tensor, share: float) -> None:
        nn.Module.__init__(self)  # no tables are to be drawn
        self.dimension, self.share = items.shape[1], share
        self.fixed, self.items = fixed, items
        self.user_table = nn.Parameter(rows)

    def forward(self, noise: torch.Generator | None = None) -> Representations:  # noqa: ARG002
        return Representations(self.fixed + self.share * self.user_table, self.items)


class _FrozenItemsObjective(CatalogObjective):
    """The exact objective with items that are normalised already, which no request has to repeat."""

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
    """An objective and what it is asked for, step by step: all users every time."""
    try:
        exact = _FrozenItemsObjective(backbone, loss)
    except ConfigError:
        sampled = SampledObjective(backbone, loss)
        draws = PairBatches(people, n_negatives=N_DRAWN, batch_pairs=len(people), seed=SEED)
        for epoch in range(n_steps):
            yield from ((sampled, batch) for batch in draws.epoch(epoch))
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
