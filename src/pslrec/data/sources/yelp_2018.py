"""Yelp2018: reviews of businesses with stars, from the edition of early 2018 (5.26 million reviews)."""

from pathlib import Path

from pslrec.data._interactions import Interactions
from pslrec.data.sources._base import Source, Statistics, register
from pslrec.data.sources._raw import Kind, read_csv_table, read_json_lines, to_interactions

COLUMNS = {"user_id": Kind.TEXT, "business_id": Kind.TEXT, "stars": Kind.NUMBER, "date": Kind.TIME}
NAMES = {"user_id": "user", "business_id": "item", "stars": "rating", "date": "timestamp"}


def read_reviews(path: Path) -> Interactions:
    """All reviews, of the JSON lines that Yelp publishes or of the CSV edition; the texts are passed over."""
    is_csv = path.name.removesuffix(".gz").endswith(".csv")
    frame = read_csv_table(path, COLUMNS) if is_csv else read_json_lines(path, COLUMNS)
    return to_interactions(frame.rename(NAMES))


YELP_2018 = register(
    Source(
        name="yelp2018",
        title="Yelp2018",
        page="https://business.yelp.com/data/resources/open-dataset/",
        licence="Yelp Dataset User Agreement: academic, non-commercial use only; no redistribution.",
        raw_file="yelp_academic_dataset_review.json",
        read_raw=read_reviews,
        sample=(
            '{"review_id":"r1","user_id":"u-1","business_id":"b_1","stars":4,"date":"2016-03-09",'
            '"text":"\\"Good\\"\\nand cheap \\u2603","useful":0,"funny":0,"cool":0}\n'
            '{"review_id":"r2","user_id":"u-2","business_id":"b_1","stars":1.0,"date":"2017-01-14 21:30:33",'
            '"text":"","useful":0,"funny":0,"cool":0}\n'
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
            "accept Yelp's terms at https://www.kaggle.com/datasets/yelp-dataset/yelp-dataset/versions/1 ("
            "the edition of 2018, which the published counts are of) or at "
            "https://business.yelp.com/data/resources/open-dataset/ (the newest), unpack "
            "yelp_academic_dataset_review.json (if it comes as yelp_review.csv, keep that name)"
        ),
    )
)
