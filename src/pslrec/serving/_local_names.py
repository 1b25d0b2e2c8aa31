"""What only this machine can be called by, and which sockets only this machine reaches."""

import ipaddress
import re
import socket

_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[^\[\]:]+)(:\d{0,5})?", re.ASCII | re.IGNORECASE)


def is_local_name(host: str) -> bool:
    """Whether a `Host` header, with or without a port, names this machine and can name no other.

    >>> [is_local_name(host) for host in ("localhost:8000", "127.0.0.1", "localhost.example.com")]
    [True, True, False]
    """
    found = _HOST.fullmatch(host.strip())
    if found is None:
        return False
    name = found["name"].lower()
    return name in ("localhost", "localhost.") or _is_loopback_address(name.strip("[]"))


def is_local_socket(listener: socket.socket) -> bool:
    """Whether a socket listens at an address of the network that only this machine reaches."""
    if listener.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    address = str(listener.getsockname()[0]).partition("%")[0]
    return _is_loopback_address(address)


def _is_loopback_address(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)
