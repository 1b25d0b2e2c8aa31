"""Vectors of people who were not there in training: their histories against frozen items, under the training loss."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.optim import Adam

from pslrec.backbones import Backbone, NewUsers, Representations
from pslrec.data.interactions import Interactions
from pslrec.data.vocabulary import Vocabulary
from pslrec.errors import ConfigError
from pslrec.evaluation.task import RowLists
from pslrec.inference.ranking import selected_lists
from pslrec.kernels.sampled import sampled_scores
from pslrec.losses import Loss
from pslrec.losses.base import Setup
from pslrec.sampling import PairBatches, UserBlocks, item_rows
from pslrec.seeding import derive_seed
from pslrec.training import SampledObjective, scored_tables
from pslrec.training.catalog_objective import CatalogObjective

STEPS = 40
TURN = 0.3  # how far the first step may turn a row, about, as a share of its length
SEED = 0


@dataclass(frozen=True, eq=False)
class FrozenModel:
    """A trained backbone that stays as it is, and how it was trained.

    Args:
        backbone: with its trained tables.
        items: representations of all items.
        make_loss: builds the loss anew: what it learns on the way belongs to the users it is built for.
        penalty: weight decay times the number of training pairs: what the length of a row costs beside its loss.
        n_negatives: drawn for each positive if the loss can not take all.
    """

    backbone: Backbone
    items: Tensor
    make_loss: Callable[[], Loss]
    penalty: float = 0.0
    n_negatives: int = 1000


class FoldIn:
    """Makes vectors of new users.

    Args:
        frozen: what they are fitted to.
        memory_budget: bytes for scores; less means fewer users at a time.
    """

    def __init__(self, frozen: FrozenModel, *, memory_budget: int) -> None:
        self._frozen = frozen
        self._rule: NewUsers = frozen.backbone.new_users()
        self._row_length = float(frozen.backbone.user_table.detach().norm(dim=1).mean())
        self._users_at_once = max(memory_budget // (12 * len(frozen.items)), 1)
        similarity = frozen.make_loss().similarity
        # Normalising once what every step would normalise again.
        _, self._items, self._scale = scored_tables(Representations(frozen.items, frozen.items), similarity)
        self._similarity = similarity

    def vectors(self, histories: RowLists) -> Tensor:
        """User vectors whose inner products with the scored item vectors are scores; an empty history gives zeros."""
        n_users = len(histories.lengths)
        found = torch.zeros((n_users, self._items.shape[1]))
        given = np.flatnonzero(histories.lengths)
        # A caller may be in a mode that forbids gradients, which are needed here.
        with torch.inference_mode(False), torch.enable_grad():
            for block in np.array_split(given, math.ceil(len(given) / self._users_at_once)) if len(given) else []:
                found[block] = self._vectors_of(selected_lists(histories, block))
        return found

    def _vectors_of(self, histories: RowLists) -> Tensor:
        fixed = self._fixed(histories)
        if self._rule.share == 0:
            rows = fixed
        else:
            own = self._start(histories)
            rows = self._trained(own, fixed, histories)
        return scored_tables(Representations(rows, rows[:0]), self._similarity)[0] * self._scale

    def _fixed(self, histories: RowLists) -> Tensor:
        messages = self._rule.messages
        if messages is None:
            return torch.zeros((len(histories.lengths), self._items.shape[1]))
        roots = torch.from_numpy(np.sqrt(histories.lengths)).float().unsqueeze(1)
        return _sums(messages.detach(), histories) / roots

    def _start(self, histories: RowLists) -> Tensor:
        table = functional.normalize(self._frozen.backbone.item_table.detach(), dim=1)
        return functional.normalize(_sums(table, histories), dim=1) * self._row_length

    def _trained(self, own: Tensor, fixed: Tensor, histories: RowLists) -> Tensor:
        own = own.clone().requires_grad_()
        loss = self._frozen.make_loss()
        steps = self._steps(loss, histories)
        rate = TURN * self._row_length / math.sqrt(own.shape[1])
        optimizer = Adam([{"params": [own]}, *loss.parameter_groups(rate)], lr=rate)
        for number, objective in zip(range(STEPS), steps, strict=False):
            for group in optimizer.param_groups[:1]:
                group["lr"] = rate * 0.5 * (1 + math.cos(math.pi * number / STEPS))
            optimizer.zero_grad()
            users = fixed + self._rule.share * own
            value = objective(Representations(users, self._items))
            # Of all pairs, not of the mean one: a user's vector must not depend on who else is asked for.
            value = value * len(histories.items) + self._frozen.penalty / 2 * own.square().sum()
            value.backward()
            optimizer.step()
            loss.after_step()
        return (fixed + self._rule.share * own).detach()

    def _steps(self, loss: Loss, histories: RowLists) -> Iterator[Callable[[Representations], Tensor]]:
        people = _as_interactions(histories, len(self._items))
        rows = item_rows(people)
        loss.build(
            Setup(
                n_users=people.n_users,
                n_items=people.n_items,
                dimension=self._items.shape[1],
                generator=torch.Generator().manual_seed(derive_seed(SEED, "loss")),
                history=(rows.offsets, rows.items),
                products=lambda users, items, drawn: sampled_scores(users, items, drawn.int().contiguous()),
            )
        )
        try:
            objective = CatalogObjective(self._frozen.backbone, loss)
        except ConfigError:
            yield from self._sampled_steps(loss, people)
            return
        (block,) = UserBlocks(people, batch_pairs=max(len(people), 1)).epoch(0)
        while True:
            yield lambda representations: objective(representations, block)

    def _sampled_steps(self, loss: Loss, people: Interactions) -> Iterator[Callable[[Representations], Tensor]]:
        objective = SampledObjective(self._frozen.backbone, loss)
        batches = PairBatches(people, n_negatives=self._frozen.n_negatives, batch_pairs=len(people), seed=SEED)
        for epoch in range(STEPS):
            for batch in batches.epoch(epoch):
                yield lambda representations, batch=batch: objective(representations, batch)


def _sums(table: Tensor, histories: RowLists) -> Tensor:
    items, offsets = torch.from_numpy(histories.items).long(), torch.from_numpy(histories.offsets)
    return functional.embedding_bag(items, table, offsets, mode="sum", include_last_offset=True)


def _as_interactions(histories: RowLists, n_items: int) -> Interactions:
    n_users = len(histories.lengths)
    return Interactions(
        np.repeat(np.arange(n_users), histories.lengths),
        histories.items,
        Vocabulary(np.arange(n_users), kind="user"),
        Vocabulary(np.arange(n_items), kind="item"),
    )
