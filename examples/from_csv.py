"""From a CSV file to recommendations: read, train, ask, save, load."""

import tempfile
from pathlib import Path

import polars as pl

from pslrec import Recommender
from pslrec.data import load_interactions


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "purchases.csv"
        write_log(path)

        # Columns of any name: say which is which.
        recommender = Recommender("psl-relu", preset="fast", k_core=10, epochs=3)
        recommender.fit(path, columns={"user": "customer", "item": "product"})

        print("For a customer from the file:")
        print(recommender.recommend("gimp", k=5))
        print("For a new customer, by what they have:")
        print(recommender.recommend_for(["libgtk-3-0", "libxml2"], k=5))
        print("Similar to a product:")
        print(recommender.similar_items("libssl3", k=5))

        recommender.save(Path(directory) / "model")
        again = Recommender.load(Path(directory) / "model")
        assert again.recommend("gimp", k=5).equals(recommender.recommend("gimp", k=5))


def write_log(path: Path) -> None:
    """A log such as a shop would have; here, Debian packages and what they depend on."""
    frame = load_interactions("debian").to_frame()
    frame.select(pl.col("user").alias("customer"), pl.col("item").alias("product")).write_csv(path)


if __name__ == "__main__":
    main()
