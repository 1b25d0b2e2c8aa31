"""MovieLens 1M: one million ratings of 2000 to 2003."""

from pslrec.data.sources._base import Statistics, register
from pslrec.data.sources._movielens import movielens

MOVIELENS_1M = register(
    movielens(
        "1m",
        member="ml-1m/ratings.dat",
        separator="::",
        checksum="md5:c4d9eecfca2ab87c1945afe126590906",
        statistics=Statistics(n_users=6_033, n_items=3_123, n_interactions=834_449),
    )
)
