"""Which image a container is made from: the user's own, a tag that was read, or what the project's rule gives."""

from dataclasses import dataclass

from selfhost.core.errors import InputError
from selfhost.engines.names import shown
from selfhost.plan.command_line import command_line
from selfhost.plan.origin import by
from selfhost.shapes.plan import Decision, EngineBuild, Evidence, Image
from selfhost.shapes.service import Service

_ARCHITECTURES = {"x86_64": ("x86_64", "amd64"), "aarch64": ("aarch64", "arm64")}
"""How tags write what the kernel calls by the left name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """As `docker pull` takes it, and why."""

    text: str
    decision: Decision


def reference_of(
    image: Image | None, *, build: EngineBuild, service: Service, architecture: str, pulled: bool = True
) -> Reference:
    """Raises InputError where no image of this build is published for the device and none was named.

    `pulled`: by us, on this machine.
    """
    if service.image:
        return Reference(text=service.image, decision=_asked(service, image, build))
    if image is None:
        raise _none(build, service)
    if image.tag:
        return Reference(text=image.reference, decision=_read(image))
    tag = _by_rule(image, architecture)
    if tag:
        text = f"{image.name}:{tag}"
        return Reference(text=text, decision=_expected(image, text, pulled=pulled))
    if image.newest_read:
        text = f"{image.name}:{image.newest_read}"
        return Reference(text=text, decision=_older(image, text))
    raise _none(build, service)


def _by_rule(image: Image, architecture: str) -> str:
    """The tag where the rule leaves nothing open; empty where it names a date or something else that nobody knows."""
    tags = [tag.strip() for tag in image.tag_pattern.split(",") if tag.strip()]
    if any("…" in tag or "DATE" in tag for tag in tags):
        return ""
    if len(tags) == 1:
        return tags[0]
    names = _ARCHITECTURES.get(architecture, (architecture,))
    return next((tag for tag in tags if tag.endswith(names)), "")


def _asked(service: Service, image: Image | None, build: EngineBuild) -> Decision:
    own = f" instead of {image.name}" if image is not None else ""
    return Decision(
        field="image",
        value=service.image,
        reason=f"asked for{own}; it has to hold {shown(build.engine)} {build.version}, whose flags it is given",
        source="user",
        evidence=Evidence.ASSUMED,
        by=by(service, "image", service.image),
    )


def _command(image: Image) -> str:
    return f"; it starts no server by itself: `{' '.join(image.command)}`" if image.command else ""


def _read(image: Image) -> Decision:
    return Decision(
        field="image",
        value=image.reference,
        reason=f"of {image.version}, {image.toolkit}{_command(image)}",
        source=image.source,
        evidence=Evidence.SEEN_ELSEWHERE,
    )


def _expected(image: Image, text: str, *, pulled: bool) -> Decision:
    shows = (
        "the pull shows whether it exists, and its digest is kept"
        if pulled
        else f"it was read nowhere, and `docker manifest inspect {text}` shows whether it exists"
    )
    newest = f"; the newest tag that was read somewhere is {image.newest_read}" if image.newest_read else ""
    return Decision(
        field="image",
        value=text,
        reason=f"the tag that the project's rule gives for {image.version}; {shows}{newest}{_command(image)}",
        source=image.source,
        evidence=Evidence.ASSUMED,
        evidence_note="no tag of this version was read anywhere",
    )


def _older(image: Image, text: str) -> Decision:
    held = image.newest_read.removeprefix("v").partition("-")[0]
    return Decision(
        field="image",
        value=text,
        reason=f"tags of {image.version} look like {image.tag_pattern}, and which day stands in them was read nowhere: "
        f"this is the newest that was read, it holds {shown(image.engine)} {held}, and its flags are those of "
        f"{image.version}; another one: --image {image.name}:TAG{_command(image)}",
        source=image.source,
        evidence=Evidence.ASSUMED,
        evidence_note="another version than the planned one",
    )


def _none(build: EngineBuild, service: Service) -> InputError:
    name = f"{shown(build.engine)} {build.version}"
    return InputError(
        f"no image of {name} ({build.backend}) is known for this device",
        why="A container needs one, and images.toml has no row for it.",
        fix=(
            "name an image that has this engine:\n" + command_line("up", service, change={"image": "NAME:TAG"}),
            "or start it as a process:\n" + command_line("up", service, change={"runtime": "process"}),
        ),
        evidence=build.source,
        id="PL074",
    )
