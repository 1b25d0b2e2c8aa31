"""Data that comes with the package and needs no network; docs/reference/embedded-data.md tells where it is from."""

from pslrec.data.embedded.debian import FILE, pack
from pslrec.data.embedded.debian import debian_packages as debian_packages

__all__ = ["FILE", "debian_packages", "pack"]
