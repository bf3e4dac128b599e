"""The environment of a container in a pod, and `$(NAME)` in its command, as the kubelet fills them in."""

import re
from collections.abc import Mapping
from typing import Final

from selfhost.core.tree import Tree
from selfhost.shapes.workload import EnvSource
from selfhost.visibility.readers.kubernetes_claims import Known
from selfhost.visibility.readers.placed import Placed

_REFERENCE = re.compile(r"\$\$|\$\((?P<name>[A-Za-z_][\w.-]*)\)")


def environment(draft: Placed, container: Tree, namespace: str, found: Known) -> None:
    """Whole objects first, then single variables, of which the last wins."""
    sources = container.at("envFrom")
    for source in sources.elements() if sources is not None else ():
        _whole(draft, source, namespace, found)
    listed = container.at("env")
    for entry in listed.elements() if listed is not None else ():
        name = entry.said("name")
        if name:
            _single(draft, entry, name, namespace, found)


def _whole(draft: Placed, source: Tree, namespace: str, found: Known) -> None:
    kind = "configMapRef" if source.at("configMapRef") is not None else "secretRef"
    named = source.said(kind, "name")
    data = found.config.get((namespace, named)) if kind == "configMapRef" else None
    if data is None or len(data.map or {}) > _MOST:
        draft.opaque.append(f"--env-file {kind.removesuffix('Ref')}/{named}")
        return
    prefix = source.said("prefix")
    for name, value in data.items():
        if value.is_scalar:
            draft.variable_of(f"{prefix}{name}", value, EnvSource.ENV_FILE)


def _single(draft: Placed, entry: Tree, name: str, namespace: str, found: Known) -> None:
    value, reference = entry.at("value"), entry.at("valueFrom")
    place = entry if value is None else value
    if reference is not None and not reference.is_null:
        data = found.config.get((namespace, reference.said("configMapKeyRef", "name")))
        there = data.at(reference.said("configMapKeyRef", "key")) if data is not None else None
        if there is not None and there.is_scalar:
            draft.variable_of(name, there, EnvSource.ENV_FILE)
            return
        draft.variable_of(name, reference, EnvSource.REFERENCE)
        draft.env.pop(name, None)
        return
    text, certain = expanded("" if value is None or value.is_null else value.text, draft.env)
    draft.variable_of(name, place)
    if certain:
        draft.env[name] = text
    else:
        draft.env.pop(name, None)
        draft.env_sources[name] = EnvSource.REFERENCE


_MOST: Final = 500
"""Variables that one object may bring."""
_LONGEST: Final = 2**16
"""Letters that references may fill in: `B=$(A)$(A)`, `C=$(B)$(B)` has no end."""


def expanded(text: str, env: Mapping[str, str]) -> tuple[str, bool]:
    """With each `$(NAME)` that is known filled in, and whether all were."""
    missing = False
    grown = 0

    def fill(match: re.Match[str]) -> str:
        nonlocal missing, grown
        name = match["name"]
        if name is None:
            return "$"
        value = env.get(name)
        grown += len(value or "")
        if value is None or grown > _LONGEST:
            missing = True
            return match[0]
        return value

    return _REFERENCE.sub(fill, text), not missing
