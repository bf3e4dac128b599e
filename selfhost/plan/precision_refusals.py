"""Precisions that are not possible: of this checkpoint, or on this card, each with what is possible instead."""

from selfhost.core.errors import InputError
from selfhost.models.checkpoints import Checkpoint
from selfhost.plan.archs import archs_of
from selfhost.plan.command_line import command_line
from selfhost.plan.devices import Devices
from selfhost.plan.fp8 import Support
from selfhost.plan.precision_form import Precision
from selfhost.shapes.model import Model
from selfhost.shapes.service import Service


def other_than_published(
    model: Model, service: Service, asked: str, *, own: str, checkpoint: Checkpoint | None
) -> InputError:  # fmt: skip
    other = "or name a repository that publishes it in the precision that you want"
    return InputError(
        f"{model.id} is published in {own}; it cannot be served in {asked}",
        why="Quantized weights are not expanded or converted again: what was rounded away does not come back.",
        fix=(
            f"serve it as published:\n{_up(service, precision=None)}",
            other if checkpoint is None else f"or {_other_model(service, checkpoint)}",
        ),
        id="PL006",
    )


def not_made_here(model: Model, service: Service, asked: str, *, checkpoint: Checkpoint | None) -> InputError:
    """`checkpoint`: the published one in that precision, with `id`; None where none is known."""
    fix = [_other_model(service, checkpoint)] if checkpoint is not None else []
    fix += [f"let selfhost choose:\n{_up(service, precision='auto')}"]
    if checkpoint is None:
        fix.append(f"or name a repository that publishes it in {asked}")
    return InputError(
        f"{model.id} is not published in {asked}; it cannot be served in {asked}",
        why=f"Weights in {asked} are made with sample texts and time, by whoever publishes them, not while loading.",
        fix=fix,
        id="PL006",
    )


def card_cannot(
    model: Model,
    service: Service,
    found: Support | Precision,
    *,
    devices: Devices,
    published: str = "",
    checkpoint: Checkpoint | None = None,
) -> InputError:
    """`found` says why; `published`: the precision that the checkpoint itself is in."""
    where = ", ".join(archs_of(devices)) if devices.cards else "this processor"
    asked = (published or "fp8").upper()
    fix = [_other_model(service, checkpoint)] if checkpoint is not None else []
    if published and checkpoint is None:
        fix.append("name a repository that publishes it in BF16, or in four bits (AWQ, GPTQ)")
    elif not published:
        fix.append(f"serve it as published:\n{_up(service, precision='auto')}")
        if checkpoint is None:
            fix.append("or name a repository that publishes it in four bits (AWQ, GPTQ, int4)")
    return InputError(
        f"{model.id} in {asked} is not possible on {where}",
        why=f"{found.why[:1].upper()}{found.why[1:]}.",
        fix=fix,
        evidence=f"source: {found.source}" if found.source else "",
        id="PL008",
    )


def no_bf16(model: Model, service: Service, devices: Devices) -> InputError:
    return InputError(
        f"{model.id} in BF16 is not possible on {', '.join(archs_of(devices))}",
        why="Cards before Ampere (sm_80) compute no BF16.",
        fix=(f"serve it in FP16, which such a card computes:\n{_up(service, precision='fp16')}",),
        id="PL008",
    )


def _up(service: Service, **change: str | None) -> str:
    return command_line("up", service, change=change)


def _other_model(service: Service, checkpoint: Checkpoint) -> str:
    return f"serve the checkpoint that was published so:\n{command_line('up', service, model=checkpoint.id)}"
