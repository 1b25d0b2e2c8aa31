"""Yelp2018: reviews of businesses with stars, edition of early 2018 (5.26 million reviews)."""

from pathlib import Path

from pslrec.data._cleaning import to_interactions
from pslrec.data._columns import Columns
from pslrec.data._interactions import Interactions
from pslrec.data.formats import ReadOptions, read_delimited, read_json_lines
from pslrec.data.sources._base import Source, Statistics, register

COLUMNS = Columns("user_id", "business_id", "stars", "date", weight="")


def read_reviews(path: Path) -> Interactions:
    """Read all reviews, from the JSON lines that Yelp publishes or from the CSV edition."""
    if path.name.removesuffix(".gz").endswith(".csv"):
        options = ReadOptions(COLUMNS, separator=",", header=True)
        return to_interactions(read_delimited(path, options))
    return to_interactions(read_json_lines(path, ReadOptions(COLUMNS)))


YELP_2018 = register(
    Source(
        name="yelp2018",
        title="Yelp2018",
        page="https://business.yelp.com/data/resources/open-dataset/",
        licence=(
            "Yelp Dataset User Agreement: academic, non-commercial use only; no redistribution."
        ),
        raw_file="yelp_academic_dataset_review.json",
        read_raw=read_reviews,
        sample=(
            '{"review_id":"r1","user_id":"u-1","business_id":"b_1","stars":4,"date":"2016-03-09",'
            '"text":"\\"Good\\"\\nand cheap \\u2603","useful":0,"funny":0,"cool":0}\n'
            '{"review_id":"r2","user_id":"u-2","business_id":"b_1","stars":1.0,'
            '"date":"2017-01-14 21:30:33","text":"","useful":0,"funny":0,"cool":0}\n'
        ),
        statistics=Statistics(n_users=55_616, n_items=34_945, n_interactions=1_506_777),
        stem="yelp2018",
        other_files=(
            "yelp_academic_dataset_review.json.gz",
            "yelp2018/review.json",
            "yelp2018/review.json.gz",
            "yelp_review.csv",
            "yelp_review.csv.gz",
        ),
        by_hand=(
            "accept Yelp's terms at "
            "https://www.kaggle.com/datasets/yelp-dataset/yelp-dataset/versions/1 "
            "(the edition of 2018, which the published counts are from) or at "
            "https://business.yelp.com/data/resources/open-dataset/ (the newest), unpack "
            "yelp_academic_dataset_review.json (if it comes as yelp_review.csv, keep that name)"
        ),
    )
)
