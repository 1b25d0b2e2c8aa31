"""A loss of pslrec in a training loop of your own: plain PyTorch, no other part of pslrec."""

import torch
from torch.nn import functional

from pslrec.losses import PairwiseSoftmaxLoss

N_USERS = 200
N_ITEMS = 100
N_NEGATIVES = 50
DIMENSION = 16


def main() -> None:
    generator = torch.Generator().manual_seed(0)
    # Users like the items of their own parity.
    users = torch.arange(N_USERS).repeat_interleave(10)
    items = 2 * torch.randint(N_ITEMS // 2, (len(users),), generator=generator) + users % 2

    user_table = torch.nn.Parameter(torch.randn(N_USERS, DIMENSION, generator=generator))
    item_table = torch.nn.Parameter(torch.randn(N_ITEMS, DIMENSION, generator=generator))
    loss = PairwiseSoftmaxLoss(surrogate="relu", temperature=0.1)
    optimizer = torch.optim.Adam([user_table, item_table], lr=0.05)

    for epoch in range(20):
        negatives = torch.randint(N_ITEMS, (len(users), N_NEGATIVES), generator=generator)
        candidates = torch.cat([items.unsqueeze(1), negatives], dim=1)
        vectors = functional.normalize(user_table, dim=1)[users].unsqueeze(1)
        others = functional.normalize(item_table, dim=1)[candidates]
        # The losses take half cosines, as the paper does.
        scores = (vectors * others).sum(dim=2) / 2
        value = loss(scores[:, 0], scores[:, 1:])
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        if epoch % 5 == 4:
            print(f"epoch {epoch + 1}: loss {float(value):.4f}")

    similarities = (
        functional.normalize(user_table, dim=1) @ functional.normalize(item_table, dim=1).T
    )
    best = similarities.topk(5, dim=1).indices
    share = float((best % 2 == torch.arange(N_USERS).unsqueeze(1) % 2).float().mean())
    print(f"{100 * share:.0f} % of the recommended items have the user's parity")
    assert share > 0.9


if __name__ == "__main__":
    main()
