"""MovieLens 100K: 100,000 ratings of 1997 and 1998; small, good for tests."""

from pslrec.data.sources._base import Statistics, register
from pslrec.data.sources._movielens import movielens

MOVIELENS_100K = register(
    movielens(
        "100k",
        member="ml-100k/u.data",
        separator="\t",
        checksum="md5:0e33842e24a9c977be4e0107933c0723",
        statistics=Statistics(n_users=939, n_items=1_016, n_interactions=80_393),
    )
)
