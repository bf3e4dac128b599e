"""Variables of the roles from the command line, held against their argument_specs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from selfhost.core.errors import InputError
from selfhost.core.resources import resource

_ROLES: Final = ("docker", "podman", "nvidia_container_toolkit", "amd_access")
_FORMS: Final = {
    "str": "a text",
    "int": "a whole number",
    "list": "texts with commas between them",
    "dict": "a JSON object",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One option of a role, as its meta/argument_specs.yml says."""

    role: str
    name: str
    type: str
    choices: tuple[str, ...] = ()


def known() -> Mapping[str, Variable]:
    import yaml  # at use: most runs set none

    found: dict[str, Variable] = {}
    for role in _ROLES:
        text = resource("playbooks", f"roles/{role}/meta/argument_specs.yml").read_text(encoding="utf-8")
        for name, said in yaml.safe_load(text)["argument_specs"]["main"]["options"].items():
            found[name] = Variable(role=role, name=name, type=said["type"], choices=tuple(said.get("choices", ())))
    return found


def read(settings: Sequence[str]) -> Mapping[str, object]:
    """NAME=VALUE each; the last of a name counts. Raises InputError."""
    if not settings:
        return {}
    there = known()
    return dict(_read(setting, there) for setting in settings)


def of_roles(variables: Mapping[str, object], roles: Sequence[str]) -> None:
    """Raises InputError for a variable of a role that is not run: it would do nothing."""
    there = known() if variables else {}
    for name in variables:
        if there[name].role not in roles:
            raise InputError(
                f"--set {name}: the role {there[name].role} is not run here",
                why="A variable of a role that does not run changes nothing.",
                fix=(f"run it as well:\nselfhost prepare --only {there[name].role} --set {name}=…", "or leave it out"),
                id="RT111",
            )


def _read(setting: str, there: Mapping[str, Variable]) -> tuple[str, object]:
    name, equals, text = setting.partition("=")
    if not equals:
        raise InputError(
            f"--set {setting}: there is no `=`",
            why="A variable is set by its name, `=`, and its value.",
            fix=("for one:\nselfhost prepare --only docker --set docker_source=docker.com",),
            id="RT110",
        )
    variable = there.get(name)
    if variable is None:
        raise _unknown(name, there)
    value = _value(variable, text)
    if variable.choices and value not in variable.choices:
        raise _unfit(variable, text, f"one of: {', '.join(variable.choices)}")
    return name, value


def _unknown(name: str, there: Mapping[str, Variable]) -> InputError:
    near = get_close_matches(name, list(there), n=3, cutoff=0.6)
    return InputError(
        f"--set {name}: no role has a variable of this name",
        why=f"The nearest: {', '.join(near)}." if near else f"There are: {', '.join(sorted(there))}.",
        fix=("take one of them; docs/prepare.md says what each does",),
        id="RT110",
    )


def _value(variable: Variable, text: str) -> object:
    match variable.type:
        case "int":
            if not (text.isascii() and text.isdigit()):
                raise _unfit(variable, text, _FORMS["int"])
            return int(text)
        case "list":
            return [one.strip() for one in text.split(",") if one.strip()]
        case "dict":
            return _object(variable, text)
        case _:
            return text


def _object(variable: Variable, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise _unfit(variable, text, _FORMS["dict"])
    return value


def _unfit(variable: Variable, text: str, wanted: str) -> InputError:
    return InputError(
        f"--set {variable.name}={text}: the value does not fit",
        why=f"{variable.name} of the role {variable.role} is {wanted}.",
        fix=(f"give it {wanted}",),
        id="RT112",
    )
