"""`python reproductions/comparison.py --data-dir DIR`: losses and baselines, tuned alike.

BPR, SL, BSL and PSL-relu on matrix factorisation, EASE and iALS: the same number of trials on validation for each, then
five seeds. What is finished under `--runs` is not run again, so a stopped command is resumed by repeating it, and several
may work at the same time. Writes a directory per data set beside this file, once its comparison is complete.
"""

import argparse
from pathlib import Path

import torch

from pslrec.config import RunConfig, preset_settings
from pslrec.studies import ComparisonPlan, TrialEnded, compare_contestants, write_comparison

HERE = Path(__file__).resolve().parent
# Below the directory of the call, where `pslrec reproduce` keeps its runs as well.
RUNS = Path("runs") / "comparison"
DATASETS = {"MovieLens-100K": "movielens-100k", "Amazon-Health": "amazon2014-health"}
PLAN = ComparisonPlan(
    losses=("bpr", "sl", "bsl", "psl-relu"),
    baselines=("ease", "ials"),
    n_seeds=5,
    n_trials=20,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split(":", 1)[1].strip().splitlines()[0])
    parser.add_argument("--data-dir", type=Path, required=True, help="where the data sets lie")
    parser.add_argument("--runs", type=Path, default=RUNS, help=f"where the studies live ({RUNS})")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for name, file in DATASETS.items():
        # Exact training from a spectral start; the learning rates and temperatures are searched.
        settings = preset_settings("fixed", loss="sl") | {
            "data.source": str((options.data_dir / "iid" / f"{file}.zip").resolve())
        }
        found = compare_contestants(
            RunConfig.from_settings(settings), PLAN, out=options.runs / file, listener=_tell
        )
        # Without a budget, the call returns when everything is done.
        assert found is not None
        write_comparison({**found, "data": name}, HERE / "comparison" / file)


def _tell(event: object) -> None:
    if isinstance(event, TrialEnded):
        trial = event.trial
        print(
            f"{event.n_done}/{event.n_trials}",
            trial.settings,
            trial.state,
            trial.value,
            flush=True,
        )


if __name__ == "__main__":
    main()
