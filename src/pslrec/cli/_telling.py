"""Lines for people, as every command prints them."""

from pslrec.terminal import can_redraw, tell

__all__ = ["can_redraw", "tell"]
