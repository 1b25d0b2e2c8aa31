"""Names for interchangeable parts: losses, backbones, sources, formats.

A registry finds its parts in three places: the modules of its own package, the entry points of
other installed packages, and the modules that a person imports (`--import` on the command line).
"""

import inspect
import logging
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from importlib import import_module, invalidate_caches
from importlib.metadata import entry_points, packages_distributions, version
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Generic, NamedTuple, TypeVar

from pslrec.errors import ConfigError, UnknownNameError

logger = logging.getLogger(__name__)

Part = TypeVar("Part")
_imported: list[str] = []


def import_parts(package: str, path: Iterable[str]) -> None:
    """Import every module of a package, so that the parts in them register themselves.

    Args:
        package: its name, `__name__` within it.
        path: where its modules are, `__path__` within it.
    """
    for module in iter_modules(path):
        import_module(f"{package}.{module.name}")


def import_modules(modules: Iterable[str]) -> None:
    """Import modules that a person names, so that the parts in them register themselves.

    Args:
        modules: names of modules, looked for among the installed packages and then in the current
            directory, or paths of `.py` files.

    >>> import_modules(["json", "no_such_module"])
    Traceback (most recent call last):
    pslrec.errors.ConfigError: `--import` must name a module that is installed or in the current \
directory, or a .py file, got `no_such_module`
    """
    for module in modules:
        if module.endswith(".py"):
            name = _module_of_file(Path(module))
        else:
            name = module
            _make_importable(Path.cwd())
        _import_by_name(name, given=module)
        _imported.append(module)


def imported_modules() -> list[str]:
    """What `import_modules` has imported so far, for processes that this one starts."""
    return list(_imported)


def _make_importable(directory: Path) -> None:
    # At the end of the path: a file that happens to be called `random.py` must not take the place
    # of the module that a library imports later.
    if str(directory) not in sys.path:
        sys.path.append(str(directory))
    # The file may be younger than what Python remembers of the directory.
    invalidate_caches()


def _module_of_file(path: Path) -> str:
    """The name under which a file can be imported, after making its directory importable."""
    if not path.is_file():
        raise ConfigError(f"`--import` got {path}, and there is no such file")
    name = path.stem
    if not name.isidentifier():
        raise ConfigError(
            f"`--import` got {path}, whose name cannot be that of a module; rename it to letters, "
            "digits and underscores"
        )
    _make_importable(path.parent.resolve())
    # Python would not look at the file if another module of the name comes first.
    loaded = sys.modules.get(name)
    if loaded is not None:
        found = getattr(loaded, "__file__", None)
    else:
        spec = find_spec(name)
        found = None if spec is None else spec.origin
    if found is None or not Path(found).is_file() or not path.samefile(found):
        raise ConfigError(
            f"`--import` got {path}, but `{name}` is the name of another module here; "
            "rename the file"
        )
    return name


def _import_by_name(name: str, *, given: str) -> None:
    wanted = (
        "`--import` must name a module that is installed or in the current directory, or a .py "
        f"file, got `{given}`"
    )
    is_name = all(part.isidentifier() for part in name.split("."))
    if not is_name:
        raise ConfigError(wanted)
    try:
        import_module(name)
    except Exception as error:
        # A module that is missing inside of the one that was named is another mistake.
        missing = getattr(error, "name", None)
        if isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{missing}."):
            raise ConfigError(wanted) from error
        raise ConfigError(
            f"`--import {given}` failed{_place_of(error)}: {type(error).__name__}: {error}"
        ) from error


def _place_of(error: Exception) -> str:
    """The line in which an import failed, to stand within a sentence."""
    frames = traceback.extract_tb(error.__traceback__)
    # Python's own frames say nothing about the module; a syntax error leaves no others, and names
    # its line itself.
    if frames[-1].filename.startswith("<frozen "):
        return ""
    return f" in {frames[-1].filename}, line {frames[-1].lineno}"


class NameSuffix(NamedTuple):
    """Names of parts that are made of other parts: `sl@20` is made of `sl` and of `20`.

    Args:
        mark: what separates the two.
        is_valid: whether a text may stand after the mark.
        make: makes the part from that of the first half, the whole name and the second half.
        hint: what such names mean, for the message about an unknown one.
    """

    mark: str
    is_valid: Callable[[str], bool]
    make: Callable[[Any, str, str], Any]
    hint: str


class Origin(NamedTuple):
    """Where a part that is not one of pslrec's own came from.

    Args:
        module: the module that defines it.
        name: the name it is registered under.
        distribution: the installed package that holds the module, as `pip install` takes it
            (`name==version`); `None` if the module belongs to none, such as a file of one's own.
    """

    module: str
    name: str
    distribution: str | None


def constructor_parameters(part: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a part's constructor that can be settings: all but `*args` and `**kwargs`.

    Args:
        part: a class; one without an `__init__` of its own has none.

    >>> class Plain:
    ...     def __init__(self, margin: float = 0.1, **others) -> None: ...
    >>> [parameter.name for parameter in constructor_parameters(Plain)]
    ['margin']
    """
    collecting = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(part).parameters.values()
    return [parameter for parameter in parameters if parameter.kind not in collecting]


def derived_name(part: type) -> str:
    """The name of a class that was never registered: its own, in lower case and with hyphens.

    >>> class SoftHingeLoss: ...
    >>> derived_name(SoftHingeLoss)
    'soft-hinge-loss'
    >>> class BPRWithMargin2: ...
    >>> derived_name(BPRWithMargin2)
    'bpr-with-margin2'
    """
    # A run of capitals is one word, without the last if that begins the next: BPR, With.
    words = re.findall(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+", part.__name__)
    return "-".join(words).lower()


class Registry(Generic[Part]):
    """Parts of one kind by name.

    A part registers itself where it is defined; the command line, configuration and contract tests
    read the registry, so nothing else has to name it. Parts of other installed packages are found
    by their entry points.

    Args:
        kind: what the parts are, for messages.
        group: name of the entry points by which other packages announce such parts; the module or
            the part that an entry point names is imported when parts are listed, or when a name is
            not known yet.
        base: class from which all parts derive. With it, a class that was defined or imported but
            never registered is found by its `derived_name`.

    >>> surrogates: Registry[type] = Registry("surrogate")
    >>> @surrogates.register("tanh")
    ... class Tanh: ...
    >>> surrogates["tanh"].__name__
    'Tanh'
    >>> surrogates["tan"]
    Traceback (most recent call last):
    pslrec.errors.UnknownNameError: unknown surrogate `tan`; did you mean `tanh`? Available: tanh
    """

    def __init__(self, kind: str, *, group: str | None = None, base: type | None = None) -> None:
        self.kind = kind
        self._parts: dict[str, Part] = {}
        self._group = group
        self._base = base
        # Entry points are looked for once, when the parts at hand do not answer a question.
        self._has_searched = False
        self._suffix: NameSuffix | None = None
        # Parts that were made for a name with a suffix, each with the part it was made of.
        self._made: dict[str, tuple[Part, Part]] = {}

    def register(self, *names: str) -> Callable[[Part], Part]:
        """Decorator that files a part under one or more names."""

        def decorate(part: Part) -> Part:
            for name in names:
                known = self._parts.get(name)
                if known is not None and not _is_same_definition(known, part):
                    raise ValueError(f"{self.kind} `{name}` is registered twice")
                self._parts[name] = part
            return part

        return decorate

    def extend(self, suffix: NameSuffix) -> None:
        """Answer to names with a suffix as well; there are too many of them for `names` to list."""
        self._suffix = suffix

    def names(self) -> list[str]:
        """All names, sorted; those with a suffix are not among them."""
        self._find_others()
        return sorted(self._parts)

    def name_of(self, part: Part) -> str:
        """The name of a part; one that was never registered is registered under its `derived_name`.

        Args:
            part: a class of the kind.
        """
        for name, known in self._parts.items():
            if known is part:
                return name
        for name, (_, made) in self._made.items():
            if made is part:
                return name
        name = derived_name(self._checked(part))
        if name in self and not _is_same_definition(self._parts[name], part):
            raise ConfigError(
                f"`{self._checked(part).__qualname__}` would be called `{name}`, and there is "
                f"another {self.kind} of that name; register it under a name of its own"
            )
        self._adopt(name, part)
        return name

    def origin(self, name: str) -> Origin | None:
        """Where a part came from; `None` for those of pslrec itself.

        Args:
            name: of the part.
        """
        module = str(getattr(self[name], "__module__", ""))
        top = module.partition(".")[0]
        if top in ("", __package__):
            return None
        return Origin(module, name, _distribution_of(module, self._group))

    def _checked(self, part: Any) -> type:
        if not isinstance(part, type) or not issubclass(part, self._base or object):
            raise ConfigError(
                f"a {self.kind} must be a name, a class or an instance of one, got {part!r}"
            )
        return part

    def _adopt(self, name: str, part: Part) -> None:
        # The decorators of the packages give a part its name as well; messages show it.
        part.name = name  # type: ignore[attr-defined]
        self._parts[name] = part

    def _find_others(self) -> None:
        """Import what other packages announce; one that fails is reported and stops no others."""
        if self._has_searched or self._group is None:
            return
        # First, as what is imported may ask the registry for a name.
        self._has_searched = True
        for point in entry_points(group=self._group):
            try:
                part = point.load()
            except Exception as error:
                owner = "another package" if point.dist is None else f"`{point.dist.name}`"
                logger.warning(
                    "the %s `%s` of %s cannot be used: %s", self.kind, point.name, owner, error
                )
                continue
            is_part = isinstance(part, type) and self._base is not None
            if is_part and issubclass(part, self._base or object):
                self._adopt_announced(point.name, part)

    def _adopt_announced(self, name: str, part: Any) -> None:
        """Register a class that an entry point names, unless its module has done so."""
        if any(known is part for known in self._parts.values()):
            return
        if name in self._parts:
            logger.warning(
                "the %s `%s` of %s is left out: there is another one of that name",
                self.kind,
                name,
                part.__module__,
            )
            return
        self._adopt(name, part)

    def _find_unregistered(self, name: object) -> None:
        """Register the class of this `derived_name`, if one was defined or imported."""
        if self._base is None:
            return
        registered = list(self._parts.values())
        registered += [made for _, made in self._made.values()]
        found = None
        for part in _subclasses(self._base):
            is_ours = part.__module__.partition(".")[0] == __package__
            is_known = is_ours or part in registered
            if is_known or inspect.isabstract(part) or derived_name(part) != name:
                continue
            # The last one counts: a notebook defines a class again whenever its cell is run.
            found = part
        if found is not None:
            self._adopt(str(name), found)  # type: ignore[arg-type]

    def _find_made(self, name: object) -> Part | None:
        """The part of a name with a suffix, made when it is first asked for."""
        if self._suffix is None or not isinstance(name, str):
            return None
        stem, mark, rest = name.rpartition(self._suffix.mark)
        if not mark or not self._suffix.is_valid(rest) or stem not in self:
            return None
        of = self[stem]
        known = self._made.get(name)
        # A notebook defines a class again whenever its cell is run.
        if known is None or known[0] is not of:
            known = (of, self._suffix.make(of, name, rest))
            self._made[name] = known
        return known[1]

    def __getitem__(self, name: str) -> Part:
        if name in self._parts:
            return self._parts[name]
        made = self._find_made(name)
        if made is not None:
            return made
        if name in self:
            return self._parts[name]
        raise UnknownNameError(self._unknown(str(name)))

    def _unknown(self, name: str) -> str:
        near = get_close_matches(name.lower(), self._parts, n=1)
        meaning = ""
        if self._suffix is not None:
            meaning = f"; {self._suffix.hint}"
            stem, mark, rest = name.rpartition(self._suffix.mark)
            if mark and self._suffix.is_valid(rest):
                stems = get_close_matches(stem.lower(), self._parts, n=1)
                near = [f"{stem}{mark}{rest}" for stem in stems]
        hint = f"; did you mean `{near[0]}`?" if near else "."
        available = ", ".join(self.names())
        return f"unknown {self.kind} `{name}`{hint} Available: {available}{meaning}"

    def __contains__(self, name: object) -> bool:
        if name not in self._parts:
            self._find_others()
        if name not in self._parts:
            self._find_unregistered(name)
        return name in self._parts or self._find_made(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        self._find_others()
        return len(self._parts)


def _is_same_definition(known: object, part: object) -> bool:
    """Whether one is the other, defined again by a notebook's cell or by reloading a module."""
    if known is part:
        return True
    if not isinstance(known, type) or not isinstance(part, type):
        return False
    return (known.__module__, known.__qualname__) == (part.__module__, part.__qualname__)


def _subclasses(base: type) -> Iterator[type]:
    part: type
    for part in base.__subclasses__():
        yield part
        yield from _subclasses(part)


def _distribution_of(module: str, group: str | None) -> str | None:
    # An editable installation lists no files, but its entry points know whose they are.
    if group is not None:
        for point in entry_points(group=group):
            if point.module == module and point.dist is not None:
                return f"{point.dist.name}=={point.dist.version}"
    # This looks at every installed package, which takes a moment; a run asks once, when it begins.
    holders = packages_distributions().get(module.partition(".")[0])
    if not holders:
        return None
    return f"{holders[0]}=={version(holders[0])}"
