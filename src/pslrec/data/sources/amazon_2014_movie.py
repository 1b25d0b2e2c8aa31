"""Amazon-Movie: ratings of films and series; in the paper's tables without shift."""

from pslrec.data.sources._amazon import amazon_2014
from pslrec.data.sources._base import Statistics, register

AMAZON_MOVIE = register(
    amazon_2014(
        "Movie", "Movies_and_TV", Statistics(n_users=26_968, n_items=18_563, n_interactions=762_957)
    )
)
