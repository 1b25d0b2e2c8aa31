"""Names and addresses that can only mean this machine."""

import ipaddress
import re
import socket

# A port may be empty, as in `localhost:`.
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[^\[\]:]+)(:\d{0,5})?", re.ASCII | re.IGNORECASE)


def is_local_name(host: str) -> bool:
    """Whether a `Host` header, with or without a port, can only mean this machine.

    >>> [is_local_name(host) for host in ("localhost:8000", "127.0.0.1", "localhost.example.com")]
    [True, True, False]
    """
    found = _HOST.fullmatch(host.strip())
    if found is None:
        return False
    name = found["name"].lower()
    return name in ("localhost", "localhost.") or _is_loopback_address(name.strip("[]"))


def is_local_socket(listener: socket.socket) -> bool:
    """Whether only this machine can connect to a listening socket."""
    if listener.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    # An IPv6 address may carry the name of its interface.
    address = str(listener.getsockname()[0]).partition("%")[0]
    return _is_loopback_address(address)


def _is_loopback_address(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    # `is_loopback` does not look into ::ffff:127.0.0.1 in all versions of Python.
    mapped = getattr(address, "ipv4_mapped", None)
    if mapped is not None:
        address = mapped
    return address.is_loopback
