"""The row operation of exact training where each process holds some of the items.

Three collectives per block, none of them as large as users times items: the scores of the positives,
which say where H is needed; the largest score of each user; and the sums over items. Then each
process has all it needs for the gradient in the scores of its own items.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from pslrec.distributed import Group
from pslrec.forms import FusedForm
from pslrec.training._shard_forms import Form

# As in the compiled pass: how many nodes are tried first, how many at most, and how exact they
# have to be.
FIRST_NODES = 8
MOST_NODES = 64
TOLERANCE = 1e-7
# Up to here relu has a closed form; its binomial coefficients fit double precision.
MOST_MOMENTS = 256
# Numbers of one tensor where positives meet the items of this process.
LARGEST_PIECE = 2**22


@dataclass(eq=False)
class ShardRows:
    """The scores of a block of users for the items of one process.

    Args:
        scores: shape (block, items of this process).
        weights: how much each of them counts as a negative, same shape.
        totals: what all negatives of a user weigh, over all processes, shape (block,), float64.
        owners: position in the block of each positive's user, shape (pairs,), ascending.
        columns: column of each positive, of those that this process holds.
        is_here: whether this process holds the item of each positive, shape (pairs,).
        n_columns: items of all processes.
        group: the processes.
    """

    scores: Tensor
    weights: Tensor
    totals: Tensor
    owners: Tensor
    columns: Tensor
    is_here: Tensor
    n_columns: int
    group: Group

    def values_and_slopes(self, form: FusedForm, *, is_bounded: bool) -> tuple[Tensor, Tensor]:
        """The loss of each user, float64, and its gradient in `scores`.

        Args:
            form: what is computed; its factor is left to the caller.
            is_bounded: scores are half cosines.
        """
        positives = self._positive_scores()
        slopes = torch.zeros_like(self.scores)
        is_whole = form.exponent == round(form.exponent) and form.exponent <= MOST_MOMENTS
        if form.kind == "log-sum" and form.surrogate == "exp":
            values, pulls = self._softmax(form.exponent, positives, slopes)
        elif form.kind == "log-sum" and form.surrogate == "relu" and is_bounded and is_whole:
            values, pulls = self._binomial(round(form.exponent), positives, slopes)
        elif form.kind == "log-sum" and is_bounded:
            values, pulls = self._interpolated(Form(form), positives, slopes)
        else:
            everybody = torch.ones(len(self.scores), dtype=torch.bool)
            values = torch.zeros_like(positives)
            pulls = torch.zeros_like(positives)
            self._at_positives(Form(form), positives, everybody, (values, pulls, slopes))
        here = (self.owners[self.is_here], self.columns)
        slopes.index_put_(here, pulls[self.is_here].to(slopes.dtype), accumulate=True)
        by_user = torch.zeros(len(self.scores), dtype=torch.float64)
        return by_user.index_add_(0, self.owners, values), slopes

    def _positive_scores(self) -> Tensor:
        """The scores of all positives, wherever their items are, float64: the first collective."""
        found = torch.zeros(len(self.owners), dtype=torch.float64)
        found[self.is_here] = self.scores[self.owners[self.is_here], self.columns].double()
        self.group.sum(found)
        return found

    def _highest(self) -> Tensor:
        """The largest score among each user's negatives: the second collective."""
        hidden = self.scores.masked_fill(self.weights == 0, -math.inf)
        highest = torch.full((len(self.scores),), -math.inf)
        if hidden.shape[1]:
            highest = hidden.amax(dim=1)
        self.group.maximum(highest)
        return highest

    def _softmax(self, exponent: float, positives: Tensor, slopes: Tensor) -> tuple[Tensor, Tensor]:
        """exp: one sum per user serves all its positives, wherever they stand."""
        highest = self._highest()
        terms = self.weights * torch.exp(exponent * (self.scores - highest.unsqueeze(1)))
        sums = terms.sum(dim=1, dtype=torch.float64)
        self.group.sum(sums)
        counts = torch.bincount(self.owners, minlength=len(sums))
        log_sums = sums.log() + exponent * highest.double()
        values = log_sums[self.owners] - exponent * positives
        factors = (exponent * counts / sums).to(slopes.dtype)
        torch.mul(terms, factors.unsqueeze(1), out=slopes)
        return values, torch.full_like(positives, -exponent)

    def _binomial(self, k: int, positives: Tensor, slopes: Tensor) -> tuple[Tensor, Tensor]:
        """The closed form of relu with a whole exponent k: the moments of the scores up to the k-th are enough.

        With a = 1/2 + s and b = 1/2 - x, σ = a + b, and the binomial theorem makes H(x) a sum of
        moments of a, all terms positive.
        """
        tops = 0.5 + self._highest().double()
        shares = ((self.scores + 0.5) / tops.unsqueeze(1)).clamp_(0.0, 1.0).to(self.scores.dtype)
        moments = self._moments(shares, k)
        whole = tops[self.owners] + (0.5 - positives).clamp(min=0.0)
        alphas = tops[self.owners] / whole
        of_user = moments[self.owners]
        sums = (_binomials(k, alphas) * of_user).sum(dim=1)
        lower = _binomials(k - 1, alphas)
        factors = k / (whole * sums)
        pulls = -factors * (lower * of_user[:, :k]).sum(dim=1)
        coefficients = torch.zeros((len(tops), k), dtype=torch.float64)
        coefficients.index_add_(0, self.owners, factors.unsqueeze(1) * lower)
        single = coefficients.to(slopes.dtype)
        for power in reversed(range(k)):
            slopes.mul_(shares).add_(single[:, power].unsqueeze(1))
        slopes.mul_(self.weights)
        return k * whole.log() + sums.log(), pulls

    def _moments(self, shares: Tensor, k: int) -> Tensor:
        moments = torch.empty((len(shares), k + 1), dtype=torch.float64)
        powers = self.weights.clone()
        for power in range(k + 1):
            moments[:, power] = powers.sum(dim=1, dtype=torch.float64)
            powers.mul_(shares)
        self.group.sum(moments)
        return moments

    def _interpolated(self, form: Form, positives: Tensor, slopes: Tensor) -> tuple[Tensor, Tensor]:
        """The logarithm of H at Chebyshev nodes, as many as each user needs; see docs/explanation/exact.md."""
        values = torch.zeros_like(positives)
        pulls = torch.zeros_like(positives)
        highest = self._highest()
        counts = torch.bincount(self.owners, minlength=len(self.scores))
        is_open = counts > FIRST_NODES
        # With no more positives than nodes, the positives are the nodes, and nothing is
        # approximated.
        out = (values, pulls, slopes)
        self._at_positives(form, positives, ~is_open, out, highest)
        n_nodes = FIRST_NODES
        while bool(is_open.any()) and n_nodes <= MOST_NODES:
            users = torch.nonzero(is_open).squeeze(1)
            nodes = _Nodes(positives, self.owners, users, n_nodes)
            found = self._at_nodes(form, users, nodes.places, highest)
            is_resolved = nodes.is_resolved(found.values, found.pulls)
            self._spread(form, nodes, found, is_resolved, out)
            is_open[users[is_resolved]] = False
            n_nodes *= 2
            too_few = is_open & (counts <= n_nodes)
            self._at_positives(form, positives, too_few, out, highest)
            is_open &= ~too_few
        self._at_positives(form, positives, is_open, out, highest)
        return values, pulls

    def _spread(
        self,
        form: Form,
        nodes: "_Nodes",
        found: "_AtNodes",
        is_resolved: Tensor,
        out: tuple[Tensor, Tensor, Tensor],
    ) -> None:
        values, pulls, slopes = out
        kept = is_resolved[nodes.owners]
        pairs = nodes.pairs[kept]
        owners = nodes.owners[kept]
        shares = nodes.shares[kept]
        values[pairs] = (shares * found.values[owners]).sum(dim=1)
        pulls[pairs] = -(shares * found.pulls[owners]).sum(dim=1)
        multiplicity = torch.zeros_like(found.values).index_add_(0, owners, shares)
        users = found.users[is_resolved]
        factors = (multiplicity * found.growth)[is_resolved]
        for node in range(factors.shape[1]):
            _, steps = form.terms(
                self.scores[users] - found.places[is_resolved][:, node : node + 1],
                found.tops[is_resolved][:, node : node + 1],
            )
            slopes[users] += steps * self.weights[users] * factors[:, node : node + 1].float()

    def _at_nodes(self, form: Form, users: Tensor, places: Tensor, highest: Tensor) -> "_AtNodes":
        """What is known at the nodes of some users: the third collective, 2 numbers per node."""
        places = places.to(self.scores.dtype)
        tops = form.tops(highest[users].unsqueeze(1) - places)
        n_users, n_nodes = places.shape
        sums = torch.empty((2, n_users, n_nodes), dtype=torch.float64)
        scores = self.scores[users]
        weights = self.weights[users]
        for node in range(n_nodes):
            here = slice(node, node + 1)
            terms, steps = form.terms(scores - places[:, here], tops[:, here])
            sums[0, :, node] = (weights * terms).sum(dim=1, dtype=torch.float64)
            sums[1, :, node] = (weights * steps).sum(dim=1, dtype=torch.float64)
        self.group.sum(sums)
        totals = self.totals[users].unsqueeze(1)
        values, growth = form.values(sums[0], tops.double(), totals)
        return _AtNodes(users, places, tops, values, growth * sums[1], growth)

    def _at_positives(
        self,
        form: Form,
        positives: Tensor,
        wanted: Tensor,
        out: tuple[Tensor, Tensor, Tensor],
        highest: Tensor | None = None,
    ) -> None:
        """Every positive of the wanted users against every item: no approximation."""
        values, pulls, slopes = out
        pairs = torch.nonzero(wanted[self.owners]).squeeze(1)
        if not len(pairs):
            return
        if highest is None:
            highest = self._highest()
        # All processes must cut alike, whatever number of items each one has.
        size = LARGEST_PIECE * self.group.size // self.n_columns
        for some in pairs.split(max(size, 1)):
            owners = self.owners[some]
            found = self._at_nodes(form, owners, positives[some].unsqueeze(1), highest)
            values[some] = found.values.squeeze(1)
            pulls[some] = -found.pulls.squeeze(1)
            _, steps = form.terms(self.scores[owners] - found.places, found.tops)
            steps = steps * self.weights[owners] * found.growth.to(slopes.dtype)
            slopes.index_add_(0, owners, steps)


@dataclass(frozen=True, eq=False)
class _AtNodes:
    """The loss as a function of x at nodes of some users, all of shape (users, nodes) but `users`."""

    users: Tensor
    places: Tensor
    tops: Tensor
    values: Tensor
    # By how much the loss falls as x rises.
    pulls: Tensor
    # By how much the loss grows with the sum over items.
    growth: Tensor


class _Nodes:
    """Chebyshev nodes between the lowest and the highest positive of some users.

    Args:
        positives: scores of all positives of the block, float64.
        owners: their users.
        users: those that nodes are wanted for, ascending.
        n_nodes: of each user.
    """

    def __init__(self, positives: Tensor, owners: Tensor, users: Tensor, n_nodes: int) -> None:
        position = torch.full((int(owners.max()) + 1,), -1)
        position[users] = torch.arange(len(users))
        self.pairs = torch.nonzero(position[owners] >= 0).squeeze(1)
        self.owners = position[owners[self.pairs]]
        scores = positives[self.pairs]
        ends = torch.full((2, len(users)), math.inf, dtype=torch.float64)
        ends[0].scatter_reduce_(0, self.owners, scores, reduce="amin")
        ends[1].scatter_reduce_(0, self.owners, -scores, reduce="amin")
        low = ends[0]
        high = -ends[1]
        middles = 0.5 * (low + high)
        halves = 0.5 * (high - low)
        angles = math.pi * (2.0 * torch.arange(n_nodes, dtype=torch.float64) + 1.0) / (2 * n_nodes)
        self.places = middles.unsqueeze(1) + halves.unsqueeze(1) * torch.cos(angles)
        # Positives that are all alike stand in the middle, where any polynomial is right.
        widths = torch.where(halves < 1e-7, math.inf, halves)
        inside = ((scores - middles[self.owners]) / widths[self.owners]).clamp(-1.0, 1.0)
        degrees = torch.arange(n_nodes, dtype=torch.float64)
        # T_q at the nodes, and at the positives.
        self._at_nodes = torch.cos(degrees.unsqueeze(1) * angles)
        at_positives = torch.cos(torch.acos(inside).unsqueeze(1) * degrees)
        factors = torch.where(degrees == 0, 1.0, 2.0) / n_nodes
        self._transform = factors.unsqueeze(1) * self._at_nodes
        # How much each node counts at each positive: the Lagrange polynomials.
        self.shares = at_positives @ self._transform

    def is_resolved(self, values: Tensor, pulls: Tensor) -> Tensor:
        """Whether more nodes would not change the loss, by the last two Chebyshev coefficients.

        Args:
            values: at the nodes.
            pulls: by how much they fall, at the nodes.
        """
        value_tails = (values @ self._transform[-2:].T).abs().sum(dim=1)
        pull_tails = (pulls @ self._transform[-2:].T).abs().sum(dim=1)
        value_sizes = values.abs().amax(dim=1).clamp(min=1.0)
        pull_sizes = pulls.abs().amax(dim=1)
        is_right = value_tails <= TOLERANCE * value_sizes
        # A slope may be less exact than a value: it only steers.
        return is_right & (pull_tails <= 100.0 * TOLERANCE * pull_sizes)


def _binomials(n: int, alphas: Tensor) -> Tensor:
    """The probabilities C(n, m) α^m (1 - α)^(n - m), m = 0 .. n, shape (alphas, n + 1).

    >>> _binomials(2, torch.tensor([0.5], dtype=torch.float64)).tolist()
    [[0.25, 0.5, 0.25]]
    """
    powers = torch.arange(n + 1, dtype=torch.float64)
    coefficients = torch.tensor([float(math.comb(n, m)) for m in range(n + 1)], dtype=torch.float64)
    column = alphas.unsqueeze(1)
    return coefficients * column**powers * (1.0 - column) ** (n - powers)
