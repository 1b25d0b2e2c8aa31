"""A baseline as strong as validation can make it, so that a comparison with it is fair."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pslrec.baselines import BASELINES, Baseline
from pslrec.checks import whole_number
from pslrec.data import Dataset
from pslrec.errors import ConfigError, DataError
from pslrec.evaluation import Protocol, evaluate
from pslrec.registry import constructor_parameters


class Try(NamedTuple):
    """Settings of a baseline that were tried.

    Args:
        settings: options of its constructor.
        ndcg: NDCG@20 on the validation part.
        seconds: that fitting took.
    """

    settings: dict[str, Any]
    ndcg: float
    seconds: float


class TunedBaseline(NamedTuple):
    """The best baseline that a search has found.

    Args:
        baseline: fitted to the training part, without validation.
        settings: options of its constructor.
        tries: all settings that were tried, in order.
    """

    baseline: Baseline
    settings: dict[str, Any]
    tries: list[Try]


def tuned_baseline(
    name: str,
    dataset: Dataset,
    *,
    protocol: Protocol = "strict",
    fixed: Mapping[str, Any] | None = None,
    most_tries: int = 100,
    on_try: Callable[[Try], None] | None = None,
) -> TunedBaseline:
    """Search the declared space of a baseline for the highest NDCG@20 on validation.

    One option after the other goes through its values, the others held at the best so far, until
    a round over all options changes nothing. From the second round on only neighbouring values
    are tried, step by step while they improve. A number chosen at the edge of its grid widens the
    grid, by the ratio of its last two values, until the best value lies inside, a
    `search_limits` is reached or the baseline refuses the value. The test part is never read, and
    equal arguments give equal tries.

    Args:
        name: of the baseline.
        dataset: with a validation part; fitting sees its training part alone.
        protocol: which users count in the mean.
        fixed: options of the constructor to hold at a value instead of searching them.
        most_tries: settings to try at most; the search then ends with the best so far.
        on_try: called after each try.

    >>> from pslrec.data import planted_tastes
    >>> from pslrec.data.splits import carve_validation, iid_split
    >>> log = planted_tastes(60, 40).interactions
    >>> dataset = carve_validation(iid_split(log), "paper")
    >>> tuned = tuned_baseline("ease", dataset, most_tries=3)
    >>> [tried.settings for tried in tuned.tries]
    [{'regularization': 200.0}, {'regularization': 10.0}, {'regularization': 50.0}]
    """
    if dataset.validation is None:
        raise DataError(
            "`dataset` must have a validation part to tune on; `carve_validation` makes one"
        )
    search = _Search(
        BASELINES[name],
        dataset,
        protocol=protocol,
        fixed=dict(fixed or {}),
        most_tries=whole_number("most_tries", most_tries),
        on_try=on_try,
    )
    search.run()
    best = search.best.settings
    # Fitted once more: keeping the best through the search would double the memory of the largest.
    baseline = BASELINES[name](**best).fit(dataset.train)
    return TunedBaseline(baseline, best, search.tries)


class _OutOfTriesError(Exception):
    """Ends a search from within."""


class _Search:
    """Coordinate search over the options of one baseline."""

    def __init__(
        self,
        baseline: type[Baseline],
        dataset: Dataset,
        *,
        protocol: Protocol,
        fixed: dict[str, Any],
        most_tries: int,
        on_try: Callable[[Try], None] | None,
    ) -> None:
        self.baseline = baseline
        self.dataset = dataset
        self.protocol: Protocol = protocol
        self.fixed = fixed
        self.most_tries = most_tries
        self.on_try = on_try
        self.tries: list[Try] = []
        self.by_settings: dict[tuple[Any, ...], Try] = {}
        self.grids: dict[str, list[Any]] = {}
        for option, values in baseline.search_space.items():
            if option not in fixed:
                self.grids[option] = list(values)

    @property
    def best(self) -> Try:
        """The best so far; of equal ones, the first."""
        return max(self.tries, key=lambda tried: tried.ndcg)

    def run(self) -> None:
        """Search until a round changes nothing, or tries run out."""
        try:
            self._try(self._start())
            self._round(is_first=True)
            settled = None
            while settled is not self.best:
                settled = self.best
                self._round(is_first=False)
        except _OutOfTriesError:
            return

    def _start(self) -> dict[str, Any]:
        """The defaults, or the middle of the grid for those that are not on it."""
        parameters = constructor_parameters(self.baseline)
        defaults = {parameter.name: parameter.default for parameter in parameters}
        settings = dict(self.fixed)
        for option, grid in self.grids.items():
            settings[option] = defaults[option]
            if defaults[option] not in grid:
                settings[option] = grid[len(grid) // 2]
        return settings

    def _round(self, *, is_first: bool) -> None:
        for option in self.grids:
            if is_first:
                self._try_values(option, self.grids[option])
            # Neighbours of the best value, and theirs, as long as this improves.
            before = None
            while before is not self.best:
                before = self.best
                self._try_values(option, self._neighbours(option, before.settings[option]))

    def _try_values(self, option: str, values: Sequence[Any]) -> None:
        settings = self.best.settings
        for value in values:
            self._try({**settings, option: value})

    def _neighbours(self, option: str, value: Any) -> list[Any]:
        grid = self.grids[option]
        if isinstance(value, (bool, str)):
            # Nothing lies between these, or beyond.
            return grid
        position = grid.index(value)
        if position == 0:
            self._widen(option, at_start=True)
        if position == len(grid) - 1:
            self._widen(option, at_start=False)
        # The grid may have grown in front.
        position = grid.index(value)
        return grid[max(0, position - 1) : position + 2]

    def _widen(self, option: str, *, at_start: bool) -> None:
        """Add the next value beyond one end of the grid, if there can be one."""
        grid = self.grids[option]
        if len(grid) < 2:
            return
        if at_start:
            edge, inner = grid[0], grid[1]
        else:
            edge, inner = grid[-1], grid[-2]
        # A grid that starts at 0 ends there.
        if edge <= 0 or inner <= 0:
            return
        beyond = float(f"{edge * edge / inner:.3g}")
        if isinstance(edge, int):
            beyond = round(beyond)
        largest = self.baseline.search_limits.get(option, float("inf"))
        if beyond == edge or beyond > largest:
            return
        try:
            self.baseline(**{**self.best.settings, option: beyond})
        except ConfigError:
            return
        if at_start:
            grid.insert(0, beyond)
        else:
            grid.append(beyond)

    def _try(self, settings: dict[str, Any]) -> None:
        key = tuple(settings.items())
        if key in self.by_settings:
            return
        if len(self.tries) == self.most_tries:
            raise _OutOfTriesError
        start = time.perf_counter()
        fitted = self.baseline(**settings).fit(self.dataset.train)
        seconds = time.perf_counter() - start
        result = evaluate(
            fitted,
            self.dataset,
            split="validation",
            k=[20],
            protocol=self.protocol,
            metrics=["ndcg"],
        )
        tried = Try(settings, result["ndcg@20"], seconds)
        self.by_settings[key] = tried
        self.tries.append(tried)
        if self.on_try is not None:
            self.on_try(tried)
