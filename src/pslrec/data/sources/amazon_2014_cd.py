"""Amazon-CD: ratings of records and CDs; in the paper's out-of-distribution table."""

from pslrec.data.sources._amazon import amazon_2014
from pslrec.data.sources._base import Statistics, register

AMAZON_CD = register(
    amazon_2014(
        "CD", "CDs_and_Vinyl", Statistics(n_users=12_784, n_items=13_874, n_interactions=360_763)
    )
)
