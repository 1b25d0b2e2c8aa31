import pytest

from pslrec.data import read_interactions
from pslrec.errors import DataError


@pytest.fixture
def read(tmp_path):
    """Write a file and read it back as a frame."""

    def read(name, content, **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_interactions(path, **options).to_frame()

    return read


@pytest.fixture
def complaint(read, tmp_path):
    """What is said about a file, without the directory it lies in."""

    def complaint(name, content, **options):
        with pytest.raises(DataError) as caught:
            read(name, content, **options)
        message = str(caught.value)
        assert "\n" not in message
        return message.replace(f"{tmp_path}/", "")

    return complaint
