"""Files as everything in pslrec writes and reads them.

A file that is written is whole or absent; one that is read must be regular and no longer than
allowed.
"""

from pslrec.files._addresses import address_of, is_address, shown_address
from pslrec.files._arrays import array_file, forget_pages, map_array, read_array
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
from pslrec.files._remote import (
    StoredFile,
    at_hand,
    fetch,
    holds_file,
    named_as,
    store_directory,
    stored_files,
    working_directory,
)
from pslrec.files._tensors import read_tensors, write_tensors
from pslrec.files._writing import (
    append_line,
    drop_torn_line,
    remove_directory,
    remove_file,
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
    "StoredFile",
    "address_of",
    "append_line",
    "array_file",
    "at_hand",
    "check_regular",
    "drop_torn_line",
    "exclusive",
    "explained",
    "fetch",
    "forget_pages",
    "holds_file",
    "is_about_room",
    "is_address",
    "is_temporary",
    "local_path",
    "make_directory",
    "map_array",
    "named_as",
    "parsed_json",
    "parsed_toml",
    "read_array",
    "read_json",
    "read_tensors",
    "read_text",
    "read_toml",
    "remove_directory",
    "remove_file",
    "replaced_directory",
    "shown_address",
    "store_directory",
    "stored_files",
    "sync_directory",
    "whole_directory",
    "whole_file",
    "working_directory",
    "write_bytes",
    "write_tensors",
    "write_text",
]
