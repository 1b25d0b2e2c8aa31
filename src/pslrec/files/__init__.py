"""Files as everything in pslrec writes and reads them.

A file that is written is whole or absent; one that is read must be regular and no longer than
allowed.
"""

from pslrec.files._locks import exclusive
from pslrec.files._places import (
    FileError,
    explained,
    is_about_room,
    is_temporary,
    local_path,
    make_directory,
)
from pslrec.files._reading import (
    LARGEST_LOG,
    check_regular,
    parsed_json,
    parsed_toml,
    read_json,
    read_text,
    read_toml,
)
from pslrec.files._tensors import read_tensors, write_tensors
from pslrec.files._writing import (
    append_line,
    drop_torn_line,
    replaced_directory,
    sync_directory,
    whole_directory,
    whole_file,
    write_bytes,
    write_text,
)

__all__ = [
    "LARGEST_LOG",
    "FileError",
    "append_line",
    "check_regular",
    "drop_torn_line",
    "exclusive",
    "explained",
    "is_about_room",
    "is_temporary",
    "local_path",
    "make_directory",
    "parsed_json",
    "parsed_toml",
    "read_json",
    "read_tensors",
    "read_text",
    "read_toml",
    "replaced_directory",
    "sync_directory",
    "whole_directory",
    "whole_file",
    "write_bytes",
    "write_tensors",
    "write_text",
]
