"""Health, labels, log, limits, restart and stop time of a container as `inspect` shows them."""

from selfhost.core.tree import Tree, as_written
from selfhost.shapes.workload import Health, Ulimit
from selfhost.visibility.readers.life import UNSAID, line_words
from selfhost.visibility.readers.placed import Placed

_NANO = 1e9


def inspected(draft: Placed, host: Tree, config: Tree) -> None:
    life = draft.life
    labels = config.at("Labels")
    for name, value in labels.items() if labels is not None else ():
        life.labels[name] = value.text
        draft.mark_tree(f"labels.{name}", value)
    log = host.at("LogConfig")
    if log is not None:
        life.log_driver = log.said("Type")
        options = log.at("Config")
        life.log_options = {name: as_written(value) for name, value in options.items()} if options is not None else {}
        draft.mark_tree("log_driver", log)
    stop = config.at("StopTimeout")
    if stop is not None and isinstance(stop.scalar, int):
        life.stop_grace_s = float(stop.scalar)
        draft.mark_tree("stop_grace_s", stop)
    limits = host.at("Ulimits")
    for element in limits.elements() if limits is not None else ():
        soft, hard = _number(element, "Soft"), _number(element, "Hard")
        if soft is not None and hard is not None:
            name = element.said("Name").removeprefix("RLIMIT_").lower()
            life.ulimits.append(Ulimit(name=name, soft=soft, hard=hard))
            draft.mark_tree(f"ulimits.{name}", element)
    life.health = _health(config)
    if life.health is not None:
        draft.mark_spot("health", config.key_spot("Healthcheck"))


def restart_of(host: Tree) -> str:
    """`on-failure:3` with the number of tries where there is one."""
    name, tries = host.said("RestartPolicy", "Name"), _number(host, "RestartPolicy", "MaximumRetryCount")
    return f"{name}:{tries}" if name == "on-failure" and tries else name


def _health(config: Tree) -> Health | None:
    said = config.at("Healthcheck")
    test = said.at("Test") if said is not None else None
    if said is None or test is None or test.list is None:
        return None
    words = tuple(element.text for element in test.list)
    if words[:1] == ("CMD-SHELL",):
        words = ("CMD", *line_words(" ".join(words[1:])))
    if words[:1] != ("CMD",):
        return None
    return Health(
        test=words[1:],
        interval_s=_time(said, "Interval", UNSAID.interval_s),
        timeout_s=_time(said, "Timeout", UNSAID.timeout_s),
        retries=_number(said, "Retries") or UNSAID.retries,
        start_period_s=_time(said, "StartPeriod", UNSAID.start_period_s),
    )


def _time(tree: Tree, key: str, unsaid: float) -> float:
    number = _number(tree, key)
    return number / _NANO if number else unsaid


def _number(tree: Tree, *path: str) -> int | None:
    found = tree.at(*path)
    return int(found.scalar) if found is not None and isinstance(found.scalar, int) else None
