"""A paper as a folder: what `paper.toml` may say, and where folders are found."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pslrec.errors import ConfigError
from pslrec.files import read_toml
from pslrec.reporting import Gain

FILE = "paper.toml"
PACKAGE = Path(__file__).resolve().parents[1]
# In a wheel the folders lie inside the package, in a clone where they are edited.
COLLECTIONS = (PACKAGE / "papers", PACKAGE.parents[1] / "reproductions")


class Strict(BaseModel):
    """What a file that people write may say; a misspelt name in it is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Content = TypeVar("Content", bound=Strict)


def read_strict(path: Path, content: type[Content], *, purpose: str) -> Content:
    """Read a TOML file of a paper.

    Args:
        path: of the file.
        content: what it may say.
        purpose: what the file is there for, for the error where it does not.
    """
    try:
        return content.model_validate(read_toml(path, error=ConfigError))
    except ValidationError as error:
        raise ConfigError(f"{path} does not {purpose}: {error}") from error


class Part(Strict):
    """Cells of a table: every combination of data sets, backbones, losses, values and variants.

    Args:
        setting: what stands in the column of this name.
        datasets: by the names of the section `datasets`; `backbones` and `losses` likewise.
        published: files of `published/` with results; the first that has a cell counts.
        settings_from: files of `published/` with printed settings; a cell in none is left out.
        stand_ins: whether losses may take the settings of those that their `settings_of` names.
        split: which split of the data: `iid`, `popularity`, `temporal`.
        settings: of these cells only, by dotted name.
        vary: values to run, by the dotted name of a setting.
        variants: names of the section `variants`.
    """

    setting: str
    datasets: tuple[str, ...]
    backbones: tuple[str, ...]
    losses: tuple[str, ...]
    published: tuple[str, ...] = ()
    settings_from: tuple[str, ...] = ()
    stand_ins: bool = True
    split: str = "iid"
    settings: dict[str, Any] = Field(default_factory=dict)
    vary: dict[str, tuple[Any, ...]] = Field(default_factory=dict)
    variants: tuple[str, ...] = ("",)


class Table(Strict):
    """A table of a paper, and how it is laid out.

    Args:
        title: for reports.
        parts: its cells.
        across: the column whose values stand side by side, as on the axis of a figure.
        across_title: heading of that column.
        improvement: other than that of the whole paper.
        one_table: all backbones of a data set in one table, by published value.
        show_unrun: published rows without a run of ours are shown as well.
    """

    title: str
    parts: tuple[Part, ...] = ()
    across: str = ""
    across_title: str = ""
    improvement: Gain | None = None
    one_table: bool = False
    show_unrun: bool = False


class PaperFile(Strict):
    """What `paper.toml` holds.

    Args:
        title: of the paper.
        metrics: what its tables print; the last one is that of gains and charts.
        tolerance: a value within this share of the published one counts as close.
        settings: of every run, by dotted name.
        datasets: name of a source, or a data file below `--data-dir`, by printed name.
        backbones: options of each, by printed name.
        losses: options of each, by printed name, in the order of the tables; `settings_of` names
            losses whose printed settings it takes where it has none of its own.
        exceptions: options of a backbone on one data set.
        variants: settings of what differs from the paper, by name.
        improvement: the gain below the tables.
        tables: by name.
    """

    title: str
    metrics: tuple[str, ...] = ("recall@20", "ndcg@20")
    tolerance: float = 0.02
    settings: dict[str, Any] = Field(default_factory=dict)
    datasets: dict[str, str]
    backbones: dict[str, dict[str, Any]]
    losses: dict[str, dict[str, Any]]
    exceptions: dict[str, dict[str, dict[str, Any]]] = Field(default_factory=dict)
    variants: dict[str, dict[str, Any]] = Field(default_factory=dict)
    improvement: Gain | None = None
    tables: dict[str, Table]

    def named(self, kind: str) -> dict[str, str]:
        """The names that pslrec has for what was printed: `datasets`, `backbones` or `losses`."""
        names = {}
        for printed, options in getattr(self, kind).items():
            if isinstance(options, dict):
                names[printed] = str(options.get("name", printed))
            else:
                names[printed] = str(options)
        return names


def read_paper(folder: Path) -> PaperFile:
    """Read `paper.toml` and check the names in it.

    Args:
        folder: of the paper.
    """
    path = folder / FILE
    paper = read_strict(path, PaperFile, purpose="describe a paper")
    for name, table in paper.tables.items():
        for part in table.parts:
            _check_names(paper, part, f"{path}, table `{name}`")
    return paper


def _check_names(paper: PaperFile, part: Part, where: str) -> None:
    known: dict[str, Mapping[str, object]] = {
        "datasets": paper.datasets,
        "backbones": paper.backbones,
        "losses": paper.losses,
        "variants": {"": None, **paper.variants},
    }
    for kind, names in known.items():
        for name in getattr(part, kind):
            if name not in names:
                listed = ", ".join(filter(None, names))
                raise ConfigError(f"{where}: `{name}` is not in section `{kind}`, only {listed}")


def included_papers() -> dict[str, Path]:
    """The folders that come with pslrec, by name."""
    found: dict[str, Path] = {}
    for collection in COLLECTIONS:
        for path in sorted(collection.glob(f"*/{FILE}")):
            found.setdefault(path.parent.name, path.parent)
    return found


def find_paper(name: str) -> Path:
    """The folder of a paper.

    Args:
        name: of a folder that comes with pslrec, or the path of any other.
    """
    if (Path(name) / FILE).is_file():
        return Path(name)
    included = included_papers()
    if name in included:
        return included[name]
    raise ConfigError(
        f"`{name}` is neither a folder with a {FILE} nor a paper that comes with pslrec: "
        f"{', '.join(included) or 'none'}"
    )
