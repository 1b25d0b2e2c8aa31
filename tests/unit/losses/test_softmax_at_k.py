import numpy as np
import pytest
import torch

from pslrec.losses import Setup, SoftmaxAtKLoss, Step
from pslrec.losses._thresholds import padded_history, top_k_threshold
from pslrec.rows import Rows

HISTORY = Rows(np.array([0, 3, 4, 4]), np.array([2, 0, 5, 1]))
SCORES = torch.tensor(
    [
        [0.40, 0.10, 0.30, -0.10, 0.20, 0.05],
        [0.00, 0.25, -0.30, 0.15, 0.35, -0.20],
        [0.10, 0.20, 0.30, 0.40, 0.45, 0.50],
    ]
)


def score(users: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
    return SCORES[users].gather(1, items)


def built(**options: float) -> SoftmaxAtKLoss:
    loss = SoftmaxAtKLoss(**options)
    loss.build(Setup(n_users=3, n_items=6, dimension=4, history=HISTORY))
    return loss


def step(users: list[int], negatives: list[list[int]]) -> Step:
    return Step(
        torch.tensor(users),
        torch.zeros(len(users), dtype=torch.long),
        torch.tensor(negatives),
        score,
    )


def threshold_of(loss: SoftmaxAtKLoss, users: list[int]) -> list[float]:
    rows = torch.tensor(users)
    return loss.extra_inputs(rows, rows, rows.unsqueeze(1))["threshold"].tolist()


def test_thresholds_start_at_zero():
    assert threshold_of(built(), [0, 1, 2]) == [0, 0, 0]


def test_thresholds_move_only_in_the_last_of_every_few_epochs():
    loss = built(k=1, update_every=5)
    moved = []
    for epoch in range(10):
        loss.thresholds.values.zero_()
        loss.start_epoch(epoch)
        loss.after_step(step([0], [[3, 4]]))
        moved.append(threshold_of(loss, [0]) != [0.0])
    assert [epoch for epoch in range(10) if moved[epoch]] == [4, 9]


def test_threshold_is_the_kth_largest_of_positives_and_negatives():
    loss = built(k=2)
    loss.start_epoch(4)
    # History lengths 3, 1, 0 are cut at 2, the lowest items kept: user 0 has 0.40 and 0.30, user 1 has 0.25.
    loss.after_step(step([0, 1], [[3, 4], [4, 3]]))
    assert threshold_of(loss, [0, 1, 2]) == pytest.approx([0.30, 0.25, 0.0])


def test_user_without_positives_is_ranked_among_negatives():
    loss = built(k=2)
    loss.start_epoch(4)
    loss.after_step(step([2], [[5, 4]]))
    assert threshold_of(loss, [2]) == pytest.approx([0.45])


def test_last_pair_of_a_repeated_user_counts():
    loss = built(k=3)
    loss.start_epoch(4)
    loss.after_step(step([0, 1, 0], [[4, 3], [0, 2], [3, 5]]))
    assert threshold_of(loss, [0]) == pytest.approx([0.05])


def test_fewer_candidates_than_k_put_everything_into_the_list():
    assert top_k_threshold(torch.empty(1, 0), torch.tensor([[0.3, 0.1]]), k=3).tolist() == [-0.5]
    padded = torch.tensor([[0.2, -float("inf")]])
    assert top_k_threshold(padded, torch.tensor([[0.3]]), k=3).tolist() == [-0.5]


def test_history_is_cut_where_nine_users_of_ten_end():
    offsets = np.cumsum([0] + [1] * 9 + [30])
    items = np.arange(offsets[-1])[::-1]
    # The 90th percentile of nine ones and a 30, linearly interpolated, is 3.9.
    rows = padded_history(Rows(offsets, items))
    assert rows.shape == (10, 3)
    assert rows[-1].tolist() == [0, 1, 2]
    assert rows[0].tolist() == [38, -1, -1]


def test_k_selects_the_model():
    assert SoftmaxAtKLoss(k=50).selection_k == 50


def test_attached_weight_weakens_the_pull_on_the_positive():
    negative = torch.linspace(-0.4, 0.4, 1000).unsqueeze(0)
    slopes = {}
    for detach in (True, False):
        positive = torch.tensor([0.1], requires_grad=True)
        loss = SoftmaxAtKLoss(detach_weight=detach)
        loss(positive, negative, threshold=torch.tensor([0.2])).backward()
        slopes[detach] = positive.grad.item()
    assert slopes[True] < slopes[False] < 0


def test_attached_weight_can_turn_the_pull_around():
    # With a wide temperature the softmax loss is nearly constant while the weight still rises.
    positive = torch.tensor([0.1], requires_grad=True)
    loss = SoftmaxAtKLoss(temperature=0.25, weight_temperature=0.25)
    loss(positive, torch.zeros(1, 1000), threshold=torch.tensor([0.2])).backward()
    assert positive.grad.item() > 0


def test_no_gradient_reaches_the_thresholds():
    loss = built()
    assert not loss.extra_inputs(torch.tensor([0]), torch.tensor([0]), torch.tensor([[1]]))[
        "threshold"
    ].requires_grad
    assert list(loss.parameters()) == []
    assert set(loss.state_dict()) == {"thresholds.values"}


def test_what_is_missing_is_named():
    with pytest.raises(ValueError, match="`history` must be given"):
        SoftmaxAtKLoss().build(Setup(n_users=3, n_items=6, dimension=4))
    with pytest.raises(RuntimeError, match="call `build`, or pass `threshold=`"):
        SoftmaxAtKLoss().extra_inputs(torch.tensor([0]), torch.tensor([0]), torch.tensor([[1]]))
    loss = built()
    loss.start_epoch(4)
    with pytest.raises(ValueError, match="`step` must be given"):
        loss.after_step()
