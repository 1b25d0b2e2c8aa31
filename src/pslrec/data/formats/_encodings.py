"""Text that is not UTF-8: what it probably is, and how it becomes UTF-8.

Nothing is ever read by a guess, and no character is replaced: an error says what to type.
"""

import codecs
from pathlib import Path

from pslrec.errors import DataError, EncodingError, shortened

# What a file begins with; that of UTF-32 begins with that of UTF-16.
MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# That of Windows comes first: it has every letter of Latin-1, and where Latin-1 has control
# characters, the euro sign, curly quotes and dashes. Then that of DOS, then what takes anything.
ONE_BYTE_ENCODINGS = ("cp1252", "cp850", "latin-1")
# Control characters that do occur in tables.
COMMON_CONTROLS = b"\t\n\r\f\x1c\x1d\x1e\x1f"
NUL = b"\0"


def checked_encoding(encoding: str | None) -> str | None:
    """The name of an encoding, or `None` where it is UTF-8, which needs no conversion.

    >>> checked_encoding("Latin1"), checked_encoding("UTF8")
    ('iso8859-1', None)
    """
    if encoding is None:
        return None
    try:
        name = codecs.lookup(encoding).name
        # Python has codecs that are not about text, such as base64, and says so only when used.
        b" ".decode(name, errors="ignore")
    except (LookupError, ValueError) as error:
        raise DataError(
            "`encoding` must be the name of a text encoding such as utf-8, latin-1, cp1252 or "
            f"utf-16, got `{shortened(encoding)}`"
        ) from error
    if name in ("utf-8", "utf-8-sig"):
        return None
    return name


def as_utf8(raw: bytes, encoding: str, path: Path) -> bytes:
    """The same text in UTF-8.

    Args:
        raw: text in another encoding.
        encoding: its name.
        path: the file, for messages.
    """
    try:
        return raw.decode(encoding).encode()
    except UnicodeError as error:
        raise wrong_encoding(path, encoding) from error


def wrong_encoding(path: Path, encoding: str) -> DataError:
    """The error about a file that is not in the encoding that was named."""
    return DataError(
        f"{path}: it is not text in {encoding}; without an encoding, the error says what it may be"
    )


def not_utf8(path: Path, number: int, line: bytes) -> DataError:
    """The error about a line that is not UTF-8, with the encoding that it probably has.

    Args:
        path: the file.
        number: of the line.
        line: its bytes.
    """
    place = f"{path}: line {number} is not UTF-8 text"
    guess = probable_encoding(line)
    if guess is None:
        return DataError(f"{place} but binary; give a text file, or one of another `format`")
    if guess.startswith("utf-"):
        return EncodingError(f"{place} but {guess}", guess)
    text = shortened(line.decode(guess).strip())
    known_as = {"cp1252": " (Windows, Latin-1)", "cp850": " (DOS)"}.get(guess, "")
    return EncodingError(f"{place}; in {guess}{known_as} it would be `{text}`", guess)


def not_utf8_in(path: Path, raw: bytes, position: int) -> DataError:
    """The same error, about the line in which a byte stands.

    Args:
        path: the file.
        raw: its content, unpacked.
        position: of the byte.
    """
    start = raw.rfind(b"\n", 0, position) + 1
    end = raw.find(b"\n", position)
    if end < 0:
        end = len(raw)
    number = raw.count(b"\n", 0, position) + 1
    return not_utf8(path, number, raw[start:end])


def probable_encoding(line: bytes) -> str | None:
    r"""The encoding of some bytes that are not UTF-8; `None` if they are no text.

    >>> probable_encoding("Käse".encode("latin-1")), probable_encoding("Käse".encode("utf-16"))
    ('cp1252', 'utf-16')
    """
    for mark, encoding in MARKS.items():
        if line.startswith(mark):
            return encoding
    # Without a mark: in UTF-16, every second byte of an ASCII character is zero.
    even, odd = line[0:8:2], line[1:8:2]
    if odd == 4 * NUL and NUL not in even:
        return "utf-16-le"
    if even == 4 * NUL and NUL not in odd:
        return "utf-16-be"
    if any(byte < 0x20 and byte not in COMMON_CONTROLS for byte in line):
        return None
    for encoding in ONE_BYTE_ENCODINGS:
        try:
            line.decode(encoding)
        except UnicodeDecodeError:
            continue
        return encoding
    return None
