"""The process target: a shell script that starts the engine, a systemd user unit, and how to use both."""

from collections.abc import Sequence

from selfhost.core.secret import HEADER_SUFFIX
from selfhost.engines.base import engine
from selfhost.plan.digest import digest_of
from selfhost.plan.workload import workload_of
from selfhost.render.asking import asking
from selfhost.render.templates import environment
from selfhost.shapes.bundle import Bundle
from selfhost.shapes.place import Place
from selfhost.shapes.plan import Plan

SCRIPT = "serve.sh"
UNIT = "selfhost.service"
README = "README.txt"


def render(plan: Plan, *, python: str, key_file: str, log_hint: str = "", folder: str = "") -> Bundle:
    """Files that start the plan's engine without selfhost; the same plan gives the same bytes.

    `python` is the absolute path of the engine's interpreter.
    `folder` is where they will lie; without it there is no unit, since a unit needs absolute paths.
    """
    workload = workload_of(plan, Place(python=python))
    facts: dict[str, object] = {
        "name": plan.name,
        "title": f"{plan.name}: {plan.model.id} on {plan.build.engine} {plan.build.version}, {plan.device_name}",
        "digest": digest_of(plan),
        "key_file": key_file,
        "header_file": key_file + HEADER_SUFFIX,
        "key_variable": engine(plan.build.engine).KEY_VARIABLE,
        "env": [{"name": name, "value": workload.env[name]} for name in sorted(workload.env)],
        "program": workload.argv[0],
        "lines": _lines(workload.argv[1:]),
        "model": plan.model.served_name,
        "base_url": plan.base_url,
        "chat_url": f"{plan.base_url}/chat/completions",
        **asking(plan),
        "log_hint": log_hint,
        "unit": f"selfhost-{plan.name}.service",
        "script": f"{folder}/{SCRIPT}",
    }
    names = [SCRIPT, README, *([UNIT] if folder else [])]
    templates = environment()
    files = {name: templates.get_template(f"process/{name}.j2").render(facts) for name in names}
    return Bundle(files=files, executable=frozenset({SCRIPT}))


def _lines(words: Sequence[str]) -> list[list[str]]:
    """One line for each flag with its values, as a person would write it."""
    lines: list[list[str]] = []
    for word in words:
        if word.startswith("--") or not lines:
            lines.append([word])
        else:
            lines[-1].append(word)
    return lines
