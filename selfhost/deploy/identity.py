"""A deployment keeps its model: what makes two models the same, and the refusal of another one."""

from pathlib import Path

from selfhost.core.errors import InputError
from selfhost.deploy.state import State
from selfhost.plan.command_line import command_line, in_file
from selfhost.shapes.model import Model, Origin
from selfhost.shapes.service import Service


def refuse_other_model(state: State, service: Service, model: Model) -> None:
    """Two models of the same base name must not silently replace each other; with --name it was asked for.

    A name in a selfhost.yaml asks for nothing: another folder's file may have that name for another model.
    """
    before = state.plan()
    asked = service.origins.get("name", "").startswith("--")
    if before is None or asked or identity(before.model) == identity(model):
        return
    named = {"name": service.name if in_file(service) else f"{service.name}-2"}
    raise InputError(
        f"`{service.name}` already names a deployment of {before.model.path or before.model.id}",
        why="A deployment keeps its model; another model under the same name would replace it.",
        fix=(
            ("if that is meant, say so:\n" if in_file(service) else "give this one a name of its own:\n")
            + command_line("up", service, change=named),
            f"or take the other down first:\nselfhost down {service.name}",
        ),
        id="CF010",
    )


def identity(model: Model) -> str:
    """What makes two models the same: the folder itself however it was typed, else the hub's id."""
    return str(Path(model.path).resolve()) if model.origin is Origin.FOLDER else model.id.lower()
