"""Several processes train what one process trains: the same losses, metrics and negatives."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from process_workers import run_together, start_together

from pslrec.config import RunConfig
from pslrec.data import Dataset
from pslrec.data._synthetic import TasteModel, planted_tastes
from pslrec.data.splits import split_by_name
from pslrec.distributed import Group, Partition
from pslrec.errors import ConfigError
from pslrec.experiment import run
from pslrec.sampling import PairBatches
from pslrec.training import BatchFinished, EpochFinished, TrainingInterrupted

Case = tuple[str, str, int | str]

N_EPOCHS = 2
MODES = ("catalog", "shared:30", 12)
# Each with everything that can be divided; others below, with replicated items.
SHARDED = [
    (loss, backbone, negatives)
    for loss in ("sl", "psl-relu", "psl-tanh")
    for backbone in ("mf", "history")
    for negatives in MODES
]
MORE_SHARDED = [
    ("bsl", "mf", "catalog"),
    ("bpr", "mf", "catalog"),
    ("bpr", "mf", 3),
    ("psl-atan", "mf", "catalog"),
    ("psl-softplus", "history", "catalog"),
]
REPLICATED = [
    *SHARDED,
    ("psl-atan", "lightgcn", "catalog"),
    ("sl", "lightgcn", 12),
    ("sl", "xsimgcl", 12),
    ("psl-relu", "xsimgcl", "catalog"),
    ("bpr", "mf", 3),
    ("adv-infonce", "mf", "catalog"),
    ("adv-infonce", "mf", 12),
    ("llpauc", "mf", 12),
    ("llpauc", "history", "catalog"),
    ("sl@5", "mf", "catalog"),
    ("sl@5", "mf", 12),
    ("psl-relu@5", "history", 12),
]


def dataset() -> Dataset:
    """Tastes with some long histories, so that Chebyshev nodes are needed."""
    model = TasteModel(n_topics=4, median_history=12, minimum_history=6)
    log = planted_tastes(90, 70, model=model, seed=2).interactions
    return split_by_name(log, "iid", validation="fraction", seed=1)


# So that what they do now and then is done within two epochs.
EXTRAS = {
    "adv-infonce": {"loss.adversarial_interval": 2},
    "sl@5": {"loss.update_every": 1},
    "psl-relu@5": {"loss.update_every": 1},
}


def settings(case: Case, **others: Any) -> RunConfig:
    loss, backbone, negatives = case
    return RunConfig.from_settings(
        {
            "loss.name": loss,
            "backbone.name": backbone,
            "backbone.dimension": 8,
            "sampling.negatives": negatives,
            "sampling.batch_pairs": 250,
            "training.epochs": N_EPOCHS,
            "training.validate_every": 1,
            "training.learning_rate": 0.02,
            "training.weight_decay": 1e-4,
            "evaluation.exchangeability": "off",
            **EXTRAS.get(loss, {}),
            **others,
        }
    )


def trained(case: Case, data: Dataset, **across: Any) -> dict[str, Any]:
    """What a run comes to: losses by epoch, metrics, and the tables."""
    losses = []

    def listen(event: object) -> None:
        if isinstance(event, EpochFinished):
            losses.append(event.loss)

    result = run(settings(case), data=data, listeners=[listen], **across)
    return {
        "losses": losses,
        "validation": result.metrics["validation"],
        "test": result.metrics["test"],
        "tables": dict(result.model.tables),
    }


def replicated_and_sharded(group: Group, data: Dataset) -> dict[Any, dict[str, Any]]:
    found = {}
    replicated = REPLICATED
    sharded = [*SHARDED, *MORE_SHARDED]
    if group.size > 2:
        # Two processes have shown that the losses are right; here it is about the number.
        replicated = SHARDED[::4]
        sharded = [*SHARDED[1::4], MORE_SHARDED[1]]
    for case in replicated:
        found[case, False] = trained(case, data, group=group)
    for case in sharded:
        found[case, True] = trained(case, data, group=group, shard_items=True)
    return found


@pytest.fixture(scope="module")
def data() -> Dataset:
    return dataset()


@pytest.fixture(scope="module")
def alone(data: Dataset) -> dict[Any, dict[str, Any]]:
    return {case: trained(case, data) for case in dict.fromkeys([*REPLICATED, *MORE_SHARDED])}


@pytest.mark.parametrize("size", [2, 4])
def test_processes_train_what_one_process_trains(
    size: int, data: Dataset, alone: dict[Any, dict[str, Any]], tmp_path: Path
) -> None:
    results = run_together(replicated_and_sharded, size, tmp_path / "result", data)
    for (case, is_sharded), found in results[0].items():
        what = f"{case}, {is_sharded=}"
        expected = alone[case]
        assert len(found["losses"]) == N_EPOCHS
        assert found["losses"] == pytest.approx(expected["losses"], rel=1e-5, abs=1e-5), what
        for part in ("validation", "test"):
            assert found[part] == pytest.approx(expected[part], abs=1e-6), what
        for name, table in expected["tables"].items():
            assert torch.allclose(found["tables"][name], table, atol=1e-4), what
    # Every rank holds the whole model and the whole evaluation at the end.
    for result in results[1:]:
        for key, found in result.items():
            assert found["test"] == results[0][key]["test"]
            assert torch.equal(found["tables"]["items"], results[0][key]["tables"]["items"])


def with_walks(group: Group, data: Dataset) -> list[dict[str, Any]]:
    """What is chosen after training: each rank ranks for its own users only."""
    found = []
    # Chosen as `auto` does it on little data, with two more trainings on other validation parts; or given.
    for regression in ("auto", 4.0):
        options = {
            "walks.weight": "auto",
            "walks.regression": regression,
            "auto.mode": "on",
            "auto.chosen": ("walks.popularity_exponent",),
        }
        config = settings(("sl", "history", "catalog"), **options)
        result = run(config, data=data, group=group)
        found.append({"walks": dict(result.config.walks), "test": result.metrics["test"]})
    return found


def test_processes_choose_the_walks_that_one_process_chooses(tmp_path: Path) -> None:
    model = TasteModel(n_topics=40, median_history=12, minimum_history=6)
    log = planted_tastes(300, 200, model=model, seed=2).interactions
    data = split_by_name(log, "iid", validation="fraction", seed=1)
    alone = with_walks(Group(), data)
    assert alone[0]["walks"]["weight"] > 0
    for together in run_together(with_walks, 2, tmp_path / "result", data):
        for found, expected in zip(together, alone, strict=True):
            assert found["walks"] == expected["walks"]
            assert found["test"] == pytest.approx(expected["test"], abs=1e-6)


def own_draws(group: Group, data: Dataset) -> dict[tuple[int, int], list[int]]:
    """The negatives of this rank's pairs in the second epoch."""
    counts = data.train.rows.lengths
    own = Partition.balanced(counts, group.size).of(group.rank)
    pairs = PairBatches(data.train, n_negatives=5, batch_pairs=100, seed=3)
    found = {}
    for batch in pairs.epoch(1, owned=own):
        rows = zip(batch.users.tolist(), batch.candidates.tolist(), strict=True)
        for user, (item, *negatives) in rows:
            found[user, item] = negatives
    return found


def test_negatives_are_those_of_one_process(data: Dataset) -> None:
    # Nothing is said between processes here, so none has to be started.
    expected = own_draws(Group(), data)
    assert len(expected) == len(data.train)
    together: dict[tuple[int, int], list[int]] = {}
    for rank in range(3):
        part = own_draws(Group(rank, 3), data)
        assert not together.keys() & part.keys()
        together |= part
    assert together == expected


STOPPED = ("psl-tanh", "mf", "catalog")
STOPPED_SAMPLED = ("sl@5", "mf", 12)


def stop_early(case: Case, data: Dataset, out: Path, **across: Any) -> None:
    """Ask the first process to stop in the middle of the second epoch, as Ctrl-C does."""

    def listen(event: object) -> None:
        if isinstance(event, BatchFinished) and (event.epoch, event.batch) == (1, 1):
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(TrainingInterrupted):
        run(settings(case), data=data, out=out, listeners=[listen], **across)


def stop_and_resume(group: Group, data: Dataset, directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for case in (STOPPED, STOPPED_SAMPLED):
        for is_sharded in (False, True):
            if is_sharded and case is STOPPED_SAMPLED:
                continue
            across = {"group": group, "shard_items": is_sharded}
            name = f"{case[0]}-{is_sharded}"
            found[f"{name}-whole"] = trained(case, data, **across)
            stop_early(case, data, directory / name, **across)
            again = trained(case, data, out=directory / name, resume=True, **across)
            found[f"{name}-resumed"] = again
        # Left for another number of processes, and taken over from one process.
        stop_early(case, data, directory / f"{case[0]}-from-2", group=group)
        other = directory / f"{case[0]}-from-1"
        found[f"{case[0]}-from-1"] = trained(case, data, out=other, resume=True, group=group)
    return found


def test_a_run_resumes_with_another_number_of_processes(data: Dataset, tmp_path: Path) -> None:
    for case in (STOPPED, STOPPED_SAMPLED):
        stop_early(case, data, tmp_path / f"{case[0]}-from-1")
    found = run_together(stop_and_resume, 2, tmp_path / "result", data, tmp_path)[0]
    for case in (STOPPED, STOPPED_SAMPLED):
        name = case[0]
        expected = trained(case, data)
        from_two = trained(case, data, out=tmp_path / f"{name}-from-2", resume=True)
        for other in (from_two, found[f"{name}-from-1"]):
            for key, table in expected["tables"].items():
                assert torch.allclose(other["tables"][key], table, atol=1e-4)
    for name in ("psl-tanh-False", "psl-tanh-True", "sl@5-False"):
        whole = found[f"{name}-whole"]
        resumed = found[f"{name}-resumed"]
        # The same number of processes: not a bit differs.
        for key, table in whole["tables"].items():
            assert torch.equal(resumed["tables"][key], table)
        assert resumed["test"] == whole["test"]


def refused(group: Group, data: Dataset) -> list[str]:
    messages = []
    for case in (("sl", "lightgcn", "catalog"), ("llpauc", "mf", 12), ("sl@5", "mf", "catalog")):
        with pytest.raises(ConfigError) as error:
            trained(case, data, group=group, shard_items=True)
        messages.append(str(error.value))
    return messages


def fail_on_one(group: Group, how: str) -> None:
    if group.rank == 1 and how == "error":
        raise ConfigError("`scissors` must be sharp, got blunt ones")
    if group.rank == 1 and how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if group.rank == 1 and how == "hang":
        time.sleep(600)
    group.sum(torch.ones(3))


def messages_of(how: str, size: int, place: Path) -> list[str]:
    workers = start_together(fail_on_one, size, place, how, timeout=2.0)
    for rank, worker in enumerate(workers):
        if how == "hang" and rank == 1:
            continue
        worker.join(60)
        assert worker.exitcode not in (0, None)
    workers[1].kill()
    workers[1].join()
    return [Path(f"{place}.{rank}.err").read_text() for rank in range(size)]


def test_what_stops_one_rank_is_named_by_the_others(data: Dataset, tmp_path: Path) -> None:
    by_lightgcn, by_llpauc, by_top_k = run_together(refused, 2, tmp_path / "refused", data)[0]
    assert "`lightgcn` makes them from the whole graph" in by_lightgcn
    assert "`fused_form`" in by_llpauc
    assert "K-th largest scores" in by_top_k
    first, own, last = messages_of("error", 3, tmp_path / "error")
    assert "`scissors` must be sharp" in own
    for other in (first, last):
        assert "rank 1 stopped: `scissors` must be sharp" in other
    assert "rank 1 ended without a message" in messages_of("kill", 2, tmp_path / "kill")[0]
    hanging = messages_of("hang", 2, tmp_path / "hang")[0]
    assert "rank 1 did not answer within 2 s and is taken to hang" in hanging
