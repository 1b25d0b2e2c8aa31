"""Files as everything in pslrec writes and reads them: whole or absent, regular, and no longer than they may be."""

from pslrec.files.locks import exclusive
from pslrec.files.places import FileError, explained, local_path, make_directory
from pslrec.files.reading import check_regular, parsed_json, parsed_toml, read_json, read_text, read_toml
from pslrec.files.writing import append_line, whole_directory, whole_file, write_bytes, write_text

__all__ = [
    "FileError",
    "append_line",
    "check_regular",
    "exclusive",
    "explained",
    "local_path",
    "make_directory",
    "parsed_json",
    "parsed_toml",
    "read_json",
    "read_text",
    "read_toml",
    "whole_directory",
    "whole_file",
    "write_bytes",
    "write_text",
]
