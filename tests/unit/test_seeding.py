import random

import numpy as np
import pytest
import torch

from pslrec.seeding import derive_seed, generator


def test_derived_seed_depends_on_seed_and_each_part_of_the_purpose():
    seeds = {
        derive_seed(0, "negatives", 1),
        derive_seed(1, "negatives", 1),
        derive_seed(0, "batches", 1),
        derive_seed(0, "negatives", 2),
        derive_seed(0, "negatives"),
    }
    assert len(seeds) == 5


def test_derived_seed_is_the_same_on_every_machine():
    # Written down once: a change of this number changes every random draw of a run.
    assert derive_seed(2024, "negatives", 3) == 9188343306724639711


@pytest.mark.parametrize("seed", [0, -1, 2**80])
def test_derived_seed_fits_into_63_bits(seed):
    assert 0 <= derive_seed(seed, "any") < 2**63


def test_generator_repeats_its_stream():
    assert np.array_equal(
        generator(7, "x").integers(1000, size=50), generator(7, "x").integers(1000, size=50)
    )


def test_generators_of_different_purposes_are_not_correlated():
    one, other = (
        generator(7, "x").standard_normal(20_000),
        generator(7, "y").standard_normal(20_000),
    )
    # Six standard deviations of a sample correlation.
    assert abs(np.corrcoef(one, other)[0, 1]) < 6 / np.sqrt(20_000)


def test_generator_leaves_global_states_alone():
    before = random.getstate(), torch.get_rng_state()
    generator(7, "x").standard_normal(10)
    assert before[0] == random.getstate()
    assert torch.equal(before[1], torch.get_rng_state())
