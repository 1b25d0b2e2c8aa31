"""What a run will need, told before it takes long."""

import pytest

from pslrec.sampling import Hiding, PairBatches, UserBlocks
from pslrec.training._estimate import Pace, described_memory, memory_estimate
from pslrec.training._events import EstimateMade


def test_tables_gradients_and_moments_are_counted_exactly(build_parts, tiny_log) -> None:
    backbone, loss = build_parts("sl")
    memory = memory_estimate(backbone, loss, PairBatches(tiny_log, n_negatives=9, batch_pairs=10))
    table_bytes = (tiny_log.n_users + tiny_log.n_items) * 8 * 4
    assert memory["tables"] == memory["gradients"] == table_bytes
    assert memory["moments"] == 2 * table_bytes
    assert memory["batch"] == 10 * (1 + 9) * 20


def test_an_adversary_and_a_graph_need_more(build_parts, tiny_log) -> None:
    batches = PairBatches(tiny_log, n_negatives=9, batch_pairs=10)
    plain = memory_estimate(*build_parts("sl"), batches)
    adversarial = memory_estimate(*build_parts("adv-infonce"), batches)
    propagated = memory_estimate(*build_parts("sl", "xsimgcl"), batches)
    assert adversarial["tables"] == 2 * plain["tables"]
    assert adversarial["batch"] > plain["batch"]
    assert propagated["representations"] > plain["representations"] + 4 * plain["tables"]


@pytest.mark.parametrize("predicts", ["all", "hidden"])
def test_histories_cost_their_division_and_nothing_per_user(
    build_parts, tiny_log, predicts
) -> None:
    blocks = UserBlocks(tiny_log, batch_pairs=10, hiding=Hiding(0.5, predicts))
    rows = memory_estimate(*build_parts("sl"), UserBlocks(tiny_log, batch_pairs=10))
    sums = memory_estimate(*build_parts("sl", "history"), blocks)
    table_bytes = tiny_log.n_items * 8 * 4
    assert sums["tables"] == sums["gradients"] == 2 * table_bytes
    assert sums["histories"] == 48 * len(tiny_log)
    assert rows["histories"] == 0
    # Directions of items and their gradient, a second gradient of the sums, users of a block.
    assert sums["representations"] == 3 * table_bytes + 24 * blocks.n_users * 8


def test_a_batch_is_never_larger_than_the_data(build_parts, tiny_log) -> None:
    parts = build_parts("sl")
    whole = memory_estimate(*parts, PairBatches(tiny_log, n_negatives=1, batch_pairs=len(tiny_log)))
    assert memory_estimate(*parts, PairBatches(tiny_log, n_negatives=1, batch_pairs=10**6)) == whole


def test_memory_is_said_in_megabytes_without_what_is_too_small_to_see() -> None:
    assert described_memory({"tables": 20_000_000, "batch": 1000}) == "20 MB (tables 20)"
    assert described_memory({"tables": 1000}) == "0 MB"


def test_pace_leaves_out_the_first_step_and_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(
        [100.0, 100.4, 100.8, 101.2, 101.6, 102.0]
    )  # the first step, of which only the end is seen, then 0.4 s each
    monkeypatch.setattr("pslrec.training._estimate.time.perf_counter", lambda: next(clock))
    pace = Pace(least_steps=2, least_seconds=1.0)
    told = [pace.step() for _ in range(6)]
    assert told[:3] == [None, None, None]
    assert told[3] == pytest.approx(0.4)
    assert told[4:] == [None, None]


def test_pace_is_told_at_the_last_step_whatever_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.1, 0.2])
    monkeypatch.setattr("pslrec.training._estimate.time.perf_counter", lambda: next(clock))
    pace = Pace(least_seconds=100.0)
    assert [pace.step(), pace.step()] == [None, None]
    assert pace.step(is_last=True) == pytest.approx(0.1)


def test_the_trainer_estimates_the_steps_that_are_left(
    build_run, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = [0.0]

    def tick() -> float:
        seconds[0] += 2.0
        return seconds[0]

    monkeypatch.setattr(
        "pslrec.training._estimate.time", type("Clock", (), {"perf_counter": staticmethod(tick)})
    )
    run = build_run("adv-infonce", epochs=10, loss_options={"variant": "original"})
    run.trainer.fit()
    (estimate,) = [event for event in run.events if isinstance(event, EstimateMade)]
    n_batches = len(run.trainer.batches)
    # Two of the ten epochs have an adversarial pass beside the normal one; the estimate is made after step 1 + 3, or at the end
    # of the first pass.
    assert estimate.seconds == 2.0 * (12 * n_batches - min(4, n_batches))
    assert estimate.memory["tables"] > 0
