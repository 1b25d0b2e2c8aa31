"""Help pages without the Python types that typer puts on them."""

from typing import Any

from typer.core import TyperCommand, TyperGroup


class Command(TyperCommand):
    """A command whose help page shows names and metavars, never `<bool>` or `<str>`."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, with their types hidden."""
        return _without_types(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The parts of the usage line, with required arguments unadorned."""
        pieces = super().collect_usage_pieces(ctx)
        # Newer releases of typer write `{RUN}`, which most readers take for a choice.
        return [piece.replace("{", "").replace("}", "") for piece in pieces]


class Group(TyperGroup):
    """A group of commands, with the same help pages."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, with their types hidden."""
        return _without_types(super().get_params(ctx))


def _without_types(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if parameter.param_type_name == "argument":
            # An argument shows its type even beside a metavar. Releases of typer that do not
            # know this method never call it.
            parameter.display_type_rich = _no_type
        elif getattr(parameter, "is_flag", False):
            # An empty metavar is shown as nothing; without one the help page says `<bool>`. Set
            # here because --help and the options for completion are typer's own.
            parameter.metavar = ""
    return parameters


def _no_type(*_: Any, **__: Any) -> None:
    return None
