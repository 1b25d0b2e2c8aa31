"""Arguments of a constructor as scikit-learn reads and sets them."""

import inspect
from typing import Any, Self

from pslrec.errors import PslrecError
from pslrec.recommender._options import check_names


# The two built-in bases are those of scikit-learn's error; with the second one, `hasattr` says
# that a fitted attribute is absent instead of raising.
class NotFittedError(PslrecError, ValueError, AttributeError):
    """A recommender was used before it was fitted."""


class Parameters:
    """Keeps each argument of the constructor in an attribute of the same name.

    The constructor of a subclass calls `_keep` with all of its arguments.
    """

    _options: dict[str, Any]

    def _keep(self, options: dict[str, Any], **arguments: Any) -> None:
        check_names(
            arguments["loss"], arguments["backbone"], {**_settings_in(arguments), **options}
        )
        for name, value in arguments.items():
            setattr(self, name, value)
        self._options = options

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        """The arguments of the constructor that have names, with their defaults."""
        defaults = {}
        for parameter in inspect.signature(cls).parameters.values():
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
                defaults[parameter.name] = parameter.default
        return defaults

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """The arguments of the constructor.

        Args:
            deep: has no effect; scikit-learn passes it.
        """
        named = {name: getattr(self, name) for name in self._defaults()}
        return {**named, **self._options}

    def set_params(self, **params: Any) -> Self:
        """Change arguments of the constructor; a fitted model stays until the next `fit`.

        Args:
            params: the arguments to change, by name.
        """
        options = {**self._options}
        named = {name: getattr(self, name) for name in self._defaults()}
        for name, value in params.items():
            if name in named:
                named[name] = value
            else:
                options[name] = value
        # Raises for an unknown option before anything is changed.
        self._keep(options, **named)
        return self

    def _changed(self) -> dict[str, Any]:
        """The arguments that are not at their defaults."""
        defaults = self._defaults()
        changed = {}
        for name, value in self.get_params().items():
            # A value may be of any kind, so it is not compared with `==` only.
            is_default = name in defaults and value is defaults[name]
            if not is_default and repr(value) != repr(defaults.get(name)):
                changed[name] = value
        return changed

    def __getattr__(self, name: str) -> Any:
        # Python calls this only for attributes that it does not find otherwise. scikit-learn
        # expects every argument of the constructor to be one, options included.
        options = self.__dict__.get("_options", {})
        if name in options:
            return options[name]
        kind = type(self).__name__
        if name.endswith("_") and not name.startswith("_"):
            raise NotFittedError(
                f"this {kind} is not fitted yet, so it has no `{name}`; call `fit` first"
            )
        raise AttributeError(f"'{kind}' object has no attribute '{name}'")

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks about an estimator; called by scikit-learn only."""
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            # Interactions are pairs of ids, not rows of numbers.
            input_tags=InputTags(two_d_array=False, categorical=True),
        )


def _settings_in(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name not in ("loss", "backbone")}
