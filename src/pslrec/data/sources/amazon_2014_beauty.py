"""Amazon-Beauty: ratings of cosmetics; small, good for tests."""

from pslrec.data.sources._amazon import amazon_2014
from pslrec.data.sources._base import Statistics, register

AMAZON_BEAUTY = register(
    amazon_2014("Beauty", "Beauty", Statistics(n_users=1_237, n_items=719, n_interactions=25_736))
)
