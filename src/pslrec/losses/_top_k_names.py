"""The names of losses with top-K weighting: `sl@20` is `sl` with the weights of its top 20."""

import inspect
import re
from typing import Any, get_type_hints

from pslrec.losses._base import LOSSES, Loss
from pslrec.losses.top_k import TopK, declarations_of, own_settings
from pslrec.registry import NameSuffix, constructor_parameters


def named_top_k(kind: type[Loss], name: str, k: str) -> type[Loss]:
    """The class behind such a name: its settings are those of the loss and of `TopK`, without K.

    Args:
        kind: the loss that is weighted.
        name: of the class.
        k: K, as it stands in the name.
    """
    parameters = _parameters(kind)
    signature = inspect.Signature(parameters)

    def construct(self: TopK, *arguments: Any, **options: Any) -> None:
        of_loss = signature.bind(*arguments, **options).arguments
        of_weighting = {}
        for setting in own_settings():
            if setting in of_loss:
                of_weighting[setting] = of_loss.pop(setting)
        TopK.__init__(self, kind(**of_loss), int(k), **of_weighting)

    # Settings, their types and their defaults are read off the constructor.
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    construct.__signature__ = inspect.Signature([itself, *parameters])  # type: ignore[attr-defined]
    hints = get_type_hints(kind.__init__) | get_type_hints(TopK.__init__)
    for parameter in parameters:
        construct.__annotations__[parameter.name] = hints.get(parameter.name, Any)
    content = {
        **declarations_of(kind),
        "__init__": construct,
        "__doc__": f"`{kind.name}`, each positive weighted by how near it is to its top {k}.",
        # A run notes the module of a loss from outside.
        "__module__": kind.__module__,
        "name": name,
    }
    return type(f"{kind.__name__}@{k}", (TopK,), content)


def _parameters(kind: type[Loss]) -> list[inspect.Parameter]:
    """The settings of the loss, then those of the weighting."""
    own = own_settings()
    parameters = []
    for parameter in constructor_parameters(kind):
        # Where both have one of the same name, the constructor refuses the loss.
        if parameter.name not in own:
            parameters.append(parameter)
    for parameter in constructor_parameters(TopK):
        if parameter.name in own:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    return parameters


def _is_list_length(text: str) -> bool:
    # No more digits than the number of items of any catalogue has.
    return re.fullmatch("[1-9][0-9]{0,8}", text, re.ASCII) is not None


LOSSES.extend(
    NameSuffix(
        mark="@",
        is_valid=_is_list_length,
        make=named_top_k,
        hint="with `@K` after its name, as in `sl@20`, a log-sum loss has top-K weighting",
    )
)
