"""Names for interchangeable parts: losses, backbones, sources, formats."""

import logging
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from typing import Generic, TypeVar

from pslrec.errors import UnknownNameError

logger = logging.getLogger(__name__)

Part = TypeVar("Part")


def import_parts(package: str, path: Iterable[str]) -> None:
    """Import every module of a package, so that the parts in them register themselves.

    Args:
        package: its name, `__name__` within it.
        path: where its modules are, `__path__` within it.
    """
    for module in iter_modules(path):
        import_module(f"{package}.{module.name}")


class Registry(Generic[Part]):
    """Parts of one kind by name.

    A part registers itself where it is defined; the command line, configuration and contract tests read the registry,
    so nothing else has to name it. Parts of other installed packages are found by their entry points.

    Args:
        kind: what the parts are, for messages.
        group: name of the entry points by which other packages announce such parts; the module or the part that an entry
            point names is imported when parts are listed, or when a name is not known yet.

    >>> surrogates: Registry[type] = Registry("surrogate")
    >>> @surrogates.register("tanh")
    ... class Tanh: ...
    >>> surrogates["tanh"].__name__
    'Tanh'
    >>> surrogates["tan"]
    Traceback (most recent call last):
    pslrec.errors.UnknownNameError: unknown surrogate `tan`; did you mean `tanh`? Available: tanh
    """

    def __init__(self, kind: str, *, group: str | None = None) -> None:
        self.kind = kind
        self._parts: dict[str, Part] = {}
        # Looked for once, when something is asked that the parts at hand do not answer.
        self._group = group

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
        self._find_others()
        return sorted(self._parts)

    def _find_others(self) -> None:
        """Import what other packages announce; one that fails is told, and does not stop the others."""
        group, self._group = self._group, None
        if group is None:
            return
        for point in entry_points(group=group):
            try:
                point.load()
            except Exception as error:
                owner = "another package" if point.dist is None else f"`{point.dist.name}`"
                logger.warning(
                    "the %s `%s` of %s cannot be used: %s", self.kind, point.name, owner, error
                )

    def __getitem__(self, name: str) -> Part:
        if name not in self._parts:
            self._find_others()
        if name in self._parts:
            return self._parts[name]
        near = get_close_matches(str(name).lower(), self._parts, n=1)
        hint = f"; did you mean `{near[0]}`?" if near else "."
        raise UnknownNameError(
            f"unknown {self.kind} `{name}`{hint} Available: {', '.join(self.names())}"
        )

    def __contains__(self, name: object) -> bool:
        if name not in self._parts:
            self._find_others()
        return name in self._parts

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        self._find_others()
        return len(self._parts)
