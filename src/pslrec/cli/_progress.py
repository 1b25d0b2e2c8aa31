"""What a person sees while a command trains; `Recommender.fit` shows the same."""

from pslrec.progress import EpochBar, TrainingProgress, clock, in_words

__all__ = ["EpochBar", "TrainingProgress", "clock", "in_words"]
