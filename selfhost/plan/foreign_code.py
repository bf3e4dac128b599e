"""Python and pickles that come with a model: run only when asked for, and at a pinned revision."""

from collections.abc import Iterator
from dataclasses import replace

from selfhost.core.errors import InputError
from selfhost.plan.command_line import command_line
from selfhost.plan.origin import by
from selfhost.shapes.host import Known
from selfhost.shapes.model import Model, Origin
from selfhost.shapes.plan import Decision, Evidence
from selfhost.shapes.service import Service


def refuse_foreign_code(model: Model, service: Service) -> None:
    """Python and pickles that came with a model run only when asked for and pinned. Raises InputError."""
    pinned = model.origin is not Origin.HUB or "@" in service.model
    if service.trust_remote_code and not pinned:
        raise InputError(
            f"the code of {model.id} would run here without a pinned revision",
            why="--trust-remote-code runs Python out of the model's repository; a branch can change overnight.",
            fix=(f"read the code at one revision, then name it:\n{_pinned(model, service)}",),
            id="PL030",
        )
    if model.pickled and not (service.allow_pickle and pinned):
        raise InputError(
            f"{model.id} keeps its weights in pickle files only",
            why="A pickle can run any program while it is read; safetensors cannot.",
            fix=(
                "use a repository with safetensors",
                "or, if you trust its author, at one revision:\n" + _pinned(model, replace(service, allow_pickle=True)),
            ),
            id="PL031",
        )


def _pinned(model: Model, service: Service) -> str:
    """The user's own command with the model at one revision; another revision keeps every other word."""
    if model.origin is not Origin.HUB:
        return command_line("up", service)
    revision = model.revision.value if isinstance(model.revision, Known) else "REVISION"
    return command_line("up", replace(service, model=f"{model.id}@{revision}", origins=_named(service)))


def _named(service: Service) -> dict[str, str]:
    """Origins without that of a model which selfhost chose: it is written out here."""
    return {field: origin for field, origin in service.origins.items() if field != "model"}


def foreign_code_decisions(model: Model, service: Service) -> Iterator[Decision]:
    """One decision when there is such code or it was asked for."""
    if model.remote_code or service.trust_remote_code:
        allowed = service.trust_remote_code
        yield Decision(
            field="remote code",
            value="runs" if allowed else "does not run",
            reason="asked for, at a pinned revision"
            if allowed
            else "the repository ships Python; the engine uses its own",
            source="config.json, auto_map",
            evidence=Evidence.SEEN_HERE,
            by=by(service, "trust_remote_code", True if allowed else None),
        )
