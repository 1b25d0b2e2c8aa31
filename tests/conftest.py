import os
from pathlib import Path

import pytest
import torch

# Two test processes share two cores; one thread each keeps timings and results steady.
torch.set_num_threads(1)

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def data_directory() -> Path:
    """Where the published data sets lie; tests that need them are skipped where they are absent."""
    directory = Path(os.environ.get("PSLREC_DATA_DIR", REPOSITORY.parent / "shared" / "data"))
    if not directory.is_dir():
        pytest.skip(f"no published data sets in {directory}; set PSLREC_DATA_DIR to run this test")
    return directory


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name bytes by their argument: gzip puts the time of day into its header, and a test's name must not change."""
    return argname if isinstance(val, bytes) else None
