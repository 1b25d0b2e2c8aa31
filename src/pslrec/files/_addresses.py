"""Addresses of object storage such as `s3://bucket/run`: what is one, and what is shown of it."""

import os
import re
from pathlib import Path

from pslrec.errors import PslrecError
from pslrec.files._places import FileError

# By scheme: the package that fsspec needs for it, if it needs one.
BACKENDS = {
    "s3": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "az": "adlfs",
    "abfs": "adlfs",
    "abfss": "adlfs",
    "hf": "huggingface_hub",
    "memory": "",
}
# `Path` makes one slash of two.
_ADDRESS = re.compile(rf"({'|'.join(BACKENDS)}):/+(.*)", re.DOTALL)
# user:password@ before the host, and name=value after a question mark.
_PASSWORD = re.compile(r"^[^/@]*:[^/@]*@")
_QUERY = re.compile(r"\?[^/?]*=.*", re.DOTALL)
# The same within a text, such as the message of a library.
_PASSWORD_IN_TEXT = re.compile(r"(://)[^/@\s]*:[^/@\s]*@")
_QUERY_IN_TEXT = re.compile(r"\?[^\s/?]*=\S*")


def is_address(path: str | Path) -> bool:
    """Whether this is an address of object storage that pslrec reads from and writes to.

    >>> is_address("s3://bucket/log.parquet"), is_address("log.parquet"), is_address("https://a/b")
    (True, False, False)
    """
    return _ADDRESS.match(os.fspath(path)) is not None


def address_of(path: str | Path, *, error: type[PslrecError] = FileError) -> str:
    """The address as it was meant, also where `Path` took one of its slashes.

    Args:
        path: as a person gave it.
        error: raised if it carries a password or a query, which would end up in logs and files.

    >>> address_of(Path("s3://bucket/run"))
    's3://bucket/run'
    """
    found = _ADDRESS.match(os.fspath(path))
    if found is None:
        raise error(f"{path} is not an address of object storage")
    scheme, rest = found.groups()
    if _PASSWORD.match(rest) or _QUERY.search(rest):
        raise error(
            f"{shown_address(path)}: an address must not carry a password or a query; "
            "give credentials in the environment"
        )
    return f"{scheme}://{rest}".rstrip("/")


def shown_address(path: str | Path) -> str:
    """The address for messages, without password and query.

    >>> shown_address("s3://me:secret@bucket/run?token=abc")
    's3://bucket/run'
    """
    text = os.fspath(path)
    found = _ADDRESS.match(text)
    if found is not None:
        text = f"{found[1]}://{found[2]}"
    return without_secrets(text)


def without_secrets(text: str) -> str:
    """A text, such as the message of a library, without passwords and queries of addresses.

    Args:
        text: any text.
    """
    return _QUERY_IN_TEXT.sub("", _PASSWORD_IN_TEXT.sub(r"\1", text))
