"""Amazon-Book: ratings of books; the largest data set of the paper."""

from pslrec.data.sources._amazon import amazon_2014
from pslrec.data.sources._base import Statistics, register

AMAZON_BOOK = register(
    amazon_2014(
        "Book", "Books", Statistics(n_users=135_109, n_items=115_172, n_interactions=4_042_382)
    )
)
