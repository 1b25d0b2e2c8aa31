"""Names for interchangeable parts: losses, backbones, sources, formats."""

from collections.abc import Callable, Iterator
from difflib import get_close_matches
from typing import Generic, TypeVar

from pslrec.errors import UnknownNameError

Part = TypeVar("Part")


class Registry(Generic[Part]):
    """Parts of one kind by name.

    A part registers itself where it is defined; the command line, configuration and contract tests read the registry,
    so nothing else has to name it.

    >>> surrogates: Registry[type] = Registry("surrogate")
    >>> @surrogates.register("tanh")
    ... class Tanh: ...
    >>> surrogates["tanh"].__name__
    'Tanh'
    >>> surrogates["tan"]
    Traceback (most recent call last):
    pslrec.errors.UnknownNameError: unknown surrogate `tan`; did you mean `tanh`? Available: tanh
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._parts: dict[str, Part] = {}

    def register(self, *names: str) -> Callable[[Part], Part]:
        """Decorator that files a part under one or more names."""

        def decorate(part: Part) -> Part:
            for name in names:
                if name in self._parts:
                    raise ValueError(f"{self.kind} `{name}` is registered twice")
                self._parts[name] = part
            return part

        return decorate

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted(self._parts)

    def __getitem__(self, name: str) -> Part:
        if name in self._parts:
            return self._parts[name]
        near = get_close_matches(str(name).lower(), self._parts, n=1)
        hint = f"; did you mean `{near[0]}`?" if near else "."
        raise UnknownNameError(f"unknown {self.kind} `{name}`{hint} Available: {', '.join(self.names())}")

    def __contains__(self, name: object) -> bool:
        return name in self._parts

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self._parts)
