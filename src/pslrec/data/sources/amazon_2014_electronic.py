"""Amazon-Electronic: ratings of electronic goods; in every table of the paper."""

from pslrec.data.sources._amazon import amazon_2014
from pslrec.data.sources._base import Statistics, register

AMAZON_ELECTRONIC = register(
    amazon_2014(
        "Electronic",
        "Electronics",
        Statistics(n_users=13_455, n_items=8_360, n_interactions=234_521),
    )
)
