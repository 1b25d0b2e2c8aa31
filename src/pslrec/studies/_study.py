"""A study: a directory of runs, and books that any number of processes share."""

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pslrec.errors import ConfigError
from pslrec.files import exclusive, make_directory, read_json, write_text
from pslrec.studies._cells import Cell, State, Trial
from pslrec.studies._storage import open_storage, without_secrets

if TYPE_CHECKING:
    from optuna import Study as OptunaStudy
    from optuna.trial import FrozenTrial
    from optuna.trial import Trial as OptunaTrial

STUDY_FILE = "study.json"
RESULTS_FILE = "results.json"
TABLE_FILE = "results.csv"
# Our words for the states that Optuna knows.
STATES: dict[str, State] = {
    "WAITING": "waiting",
    "RUNNING": "running",
    "COMPLETE": "finished",
    "PRUNED": "pruned",
    "FAIL": "failed",
}
# Optuna wants a number of everything that is finished; this one stands for none.
NO_VALUE = float("-inf")


class Study:
    """Opens the study in a directory, or begins it there.

    Args:
        directory: is made if it does not exist. Every process that works on the study must see it:
            run directories are in it, and locks that a process drops when it ends, however it
            ends, tell which trials are being worked on.
        kind: what sort of study it is, such as `tuning`.
        asked: what must stay the same for all trials to belong together, as JSON can hold it; the
            study refuses to be opened with anything else.
        metric: of validation, by which trials are compared, such as `ndcg@20`.
        storage: address of a database for Optuna's books; a file in the directory if `None`.
    """

    def __init__(
        self,
        directory: Path,
        *,
        kind: str,
        asked: Mapping[str, Any] | None = None,
        metric: str = "ndcg@20",
        storage: str | None = None,
    ) -> None:
        self.directory = directory
        self.kind = kind
        self.metric = metric
        self.storage = storage
        make_directory(directory)
        self.asked = json.loads(json.dumps(asked or {}))
        with self.exclusively():
            self.name = self._begin()
            self._storage = open_storage(directory, storage)
            self.books = self._open_books()

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process opens it anew: connections cannot be handed over.
        opened = partial(
            Study, kind=self.kind, asked=self.asked, metric=self.metric, storage=self.storage
        )
        return opened, (self.directory,)

    def _begin(self) -> str:
        """The name of the study in its storage; the directory remembers it."""
        path = self.directory / STUDY_FILE
        storage = without_secrets(self.storage)
        content = {"kind": self.kind, "metric": self.metric, "storage": storage}
        if not path.exists():
            name = f"{self.directory.resolve().name}-{secrets.token_hex(4)}"
            content = {"name": name, **content, "asked": self.asked}
            write_text(path, json.dumps(content, indent=2) + "\n")
            return name
        known = read_json(path)
        asked = known.get("asked", {})
        now = {**self.asked, **content}
        for name in (*content, *sorted({*asked, *self.asked})):
            before = known.get(name) if name in content else asked.get(name)
            if before != now.get(name):
                raise ConfigError(
                    f"the study in {self.directory} has `{name}` = {before!r}, now it is "
                    f"{now.get(name)!r}; resume it with the same, or choose another directory"
                )
        return str(known["name"])

    def _open_books(self) -> "OptunaStudy":
        import optuna

        # Creating it with `load_if_exists` would add a line to the journal every time.
        try:
            return optuna.load_study(study_name=self.name, storage=self._storage)
        except KeyError:
            return optuna.create_study(
                study_name=self.name, storage=self._storage, direction="maximize"
            )

    @contextmanager
    def exclusively(self) -> Iterator[None]:
        """Hold the study for a moment: trials are added and claimed by one process at a time."""
        with exclusive(self.directory / "study.lock", wait=True):
            yield

    def hold(self, number: int) -> ExitStack | None:
        """Lock a trial for as long as the stack is open; `None` if another process has it."""
        held = ExitStack()
        lock = exclusive(self.directory / "locks" / f"{number}.lock", wait=False)
        if held.enter_context(lock):
            return held
        held.close()
        return None

    def run_directory(self, key: str) -> Path:
        """Where the run of a cell is."""
        return self.directory / "trials" / key

    def trials(self) -> list[Trial]:
        """All trials, in the order in which they were added; repetitions are left out."""
        found = []
        for frozen in self.books.get_trials(deepcopy=False):
            if "key" in frozen.user_attrs:
                found.append(self._read(frozen))
        return found

    def trial(self, number: int) -> Trial:
        """One of them."""
        return self._read(self.books.get_trials(deepcopy=False)[number])

    def _read(self, frozen: "FrozenTrial") -> Trial:
        attributes = frozen.user_attrs
        value = frozen.value
        if value == NO_VALUE:
            value = None
        return Trial(
            number=frozen.number,
            key=attributes["key"],
            settings=attributes["settings"],
            state=_state(frozen),
            directory=self.run_directory(attributes["key"]),
            found=attributes.get("found", {}),
            value=value,
            reason=attributes.get("reason", ""),
            seconds=attributes.get("seconds", 0.0),
            curve=frozen.intermediate_values,
        )

    def add(self, cells: Sequence[Cell]) -> None:
        """Add those whose keys the study does not know."""
        from optuna.trial import TrialState, create_trial

        with self.exclusively():
            known = {trial.key for trial in self.trials()}
            for cell in cells:
                if cell.key not in known:
                    known.add(cell.key)
                    attributes = {"key": cell.key, "settings": dict(cell.settings)}
                    waiting = create_trial(state=TrialState.WAITING, user_attrs=attributes)
                    self.books.add_trial(waiting)

    def start(self, number: int) -> "OptunaTrial":
        """Mark a trial as running and no longer paused, and give Optuna's handle of it."""
        from optuna.trial import Trial as OptunaTrial
        from optuna.trial import TrialState

        study_id = self._storage.get_study_id_from_name(self.name)
        trial_id = self._storage.get_trial_id_from_study_id_trial_number(study_id, number)
        if self._storage.get_trial(trial_id).state == TrialState.WAITING:
            self._storage.set_trial_state_values(trial_id, TrialState.RUNNING)
        handle = OptunaTrial(self.books, trial_id)
        if handle.user_attrs.get("paused"):
            handle.set_user_attr("paused", False)
            handle.set_user_attr("reason", "")
        return handle

    def to_frame(self, trials: Sequence[Trial] | None = None) -> pl.DataFrame:
        """One row per trial: its settings, its state, and the metrics that were found."""
        rows = []
        for trial in trials if trials is not None else self.trials():
            rows.append(_row(trial))
        return pl.DataFrame(rows, strict=False, infer_schema_length=None)

    @property
    def has_results(self) -> bool:
        """Whether `results.csv` was ever written."""
        return (self.directory / TABLE_FILE).exists()

    def write_results(self, trials: Sequence[Trial] | None = None, **more: Any) -> None:
        """Write `results.csv` and `results.json`.

        Args:
            trials: in the order in which they are to be listed; all of them by default.
            more: further content of `results.json`.
        """
        with self.exclusively():
            if trials is None:
                trials = self.trials()
            path = self.directory / RESULTS_FILE
            before = read_json(path) if path.exists() else {}
            content = {
                **before,
                "kind": self.kind,
                "metric": self.metric,
                "asked": self.asked,
                "trials": [_record(trial) for trial in trials],
                **more,
            }
            write_text(path, json.dumps(content, indent=1) + "\n")
            write_text(self.directory / TABLE_FILE, self.to_frame(trials).write_csv())


def _state(frozen: "FrozenTrial") -> State:
    state = STATES[frozen.state.name]
    if state == "running" and frozen.user_attrs.get("paused"):
        return "paused"
    return state


def _row(trial: Trial) -> dict[str, Any]:
    row: dict[str, Any] = {"trial": trial.number, "key": trial.key}
    for name, value in trial.settings.items():
        row[name] = value if isinstance(value, int | float) else str(value)
    row["state"] = trial.state
    for part in ("validation", "test"):
        for name, value in trial.found.get(part, {}).items():
            row[f"{part}_{name}"] = value
    for name in ("best_epoch", "trained_epochs", "seconds_per_epoch", "seed"):
        row[name] = trial.found.get(name)
    row["seconds"] = round(trial.seconds, 3)
    row["reason"] = trial.reason or None
    return row


def _record(trial: Trial) -> dict[str, Any]:
    return {
        "trial": trial.number,
        "key": trial.key,
        "settings": dict(trial.settings),
        "state": trial.state,
        "value": trial.value,
        "seconds": trial.seconds,
        "reason": trial.reason,
        "curve": dict(trial.curve),
        "found": dict(trial.found),
    }
