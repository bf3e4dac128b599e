"""Health, labels, log, limits and stop time of a Compose service, and the names of its network and volumes."""

from dataclasses import replace
from typing import Final

from selfhost.core.tree import Tree, as_written
from selfhost.shapes.workload import Health, Mount, Ulimit
from selfhost.visibility.readers.compose_merge import by_name
from selfhost.visibility.readers.compose_project import Project
from selfhost.visibility.readers.durations import seconds
from selfhost.visibility.readers.life import UNSAID, line_words
from selfhost.visibility.readers.placed import Placed


def healthcheck(draft: Placed, tree: Tree, project: Project) -> None:
    """`test` as CMD, CMD-SHELL or one text for a shell; NONE and `disable` take away the image's own."""
    draft.at["health"] = project.spot(tree)
    test = tree.at("test")
    if tree.yes("disable") or test is None or test.is_null:
        return
    words = _test(test)
    if not words:
        return
    retries = tree.at("retries")
    count = retries.scalar if retries is not None else None
    draft.life.health = Health(
        test=words,
        interval_s=_time(tree, "interval", UNSAID.interval_s),
        timeout_s=_time(tree, "timeout", UNSAID.timeout_s),
        retries=count if isinstance(count, int) else UNSAID.retries,
        start_period_s=_time(tree, "start_period", UNSAID.start_period_s),
    )


def _test(tree: Tree) -> tuple[str, ...]:
    if tree.list is None:
        return line_words(tree.text)
    words = tuple(as_written(element) for element in tree.list if element.is_scalar)
    if words[:1] == ("CMD",):
        return words[1:]
    return line_words(" ".join(words[1:])) if words[:1] == ("CMD-SHELL",) else ()


def _time(tree: Tree, key: str, unsaid: float) -> float:
    found = seconds(tree.said(key))
    return unsaid if found is None else found


def labels(draft: Placed, tree: Tree, project: Project) -> None:
    listed = by_name(tree)
    for name, value in listed.items():
        if value.is_scalar:
            draft.life.labels[name] = as_written(value)
            draft.at[f"labels.{name}"] = project.spot_of(listed.key_spot(name))


def logging(draft: Placed, tree: Tree, project: Project) -> None:
    draft.at["log_driver"] = project.spot(tree)
    draft.life.log_driver = tree.said("driver")
    options = tree.at("options")
    for name, value in options.items() if options is not None else ():
        draft.life.log_options[name] = as_written(value)
        draft.mark_tree(f"log_options.{name}", value)


def ulimits(draft: Placed, tree: Tree, project: Project) -> None:
    """A number for both, or `soft` and `hard`."""
    del project
    for name, value in tree.items():
        soft, hard = (value, value) if value.map is None else (value.at("soft"), value.at("hard"))
        numbers = [one.scalar if one is not None else None for one in (soft, hard)]
        first, second = numbers
        if isinstance(first, int) and isinstance(second, int):
            draft.life.ulimits.append(Ulimit(name=name, soft=int(first), hard=int(second)))
            draft.mark_tree(f"ulimits.{name}", value)


def init(draft: Placed, tree: Tree, project: Project) -> None:
    draft.life.init = tree.yes()
    draft.at["init"] = project.spot(tree)


def read_only(draft: Placed, tree: Tree, project: Project) -> None:
    draft.life.read_only = tree.yes()
    draft.at["read_only"] = project.spot(tree)


def stop_grace(draft: Placed, tree: Tree, project: Project) -> None:
    draft.life.stop_grace_s = seconds(tree.text)
    draft.at["stop_grace_s"] = project.spot(tree)


def network(service: Tree, project: Project) -> str:
    """The engine's name of the one network that a service is in, where the file names it."""
    listed = service.at("networks")
    names = ["default"]
    if listed is not None and not listed.is_null:
        names = [key for key, _ in listed.items()] or [element.text for element in listed.elements()]
    return project.named("networks", names[0]) if len(names) == 1 else ""


def named_volumes(mounts: list[Mount], project: Project) -> list[Mount]:
    """With the engine's names of volumes in place of those of the file."""
    return [
        replace(mount, source=project.named("volumes", mount.source) or mount.source)
        if mount.kind == "volume" and mount.source
        else mount
        for mount in mounts
    ]


TAKERS: Final = {
    "healthcheck": healthcheck,
    "init": init,
    "labels": labels,
    "logging": logging,
    "read_only": read_only,
    "stop_grace_period": stop_grace,
    "ulimits": ulimits,
}
