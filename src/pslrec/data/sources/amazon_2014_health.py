"""Amazon-Health: ratings of health and personal care; small, of the follow-up paper."""

from pslrec.data.sources._amazon import amazon_2014
from pslrec.data.sources._base import Statistics, register

AMAZON_HEALTH = register(
    amazon_2014(
        "Health",
        "Health_and_Personal_Care",
        Statistics(n_users=1_974, n_items=1_200, n_interactions=48_189),
    )
)
