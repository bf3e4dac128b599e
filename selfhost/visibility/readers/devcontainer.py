"""devcontainer.json → the container that an editor starts by it."""

import re
from dataclasses import replace
from typing import Final

from selfhost.core.jsonc import tree_of_jsonc
from selfhost.core.tree import Tree
from selfhost.shapes.workload import ContainerEngine, DeviceRequest, EnvSource, Form, Workload
from selfhost.visibility.files import Files
from selfhost.visibility.readers.placed import Placed
from selfhost.visibility.readers.run import filled
from selfhost.visibility.readers.run_options import parse
from selfhost.visibility.readers.words import Word

_VARIABLE = re.compile(r"\$\{[A-Za-z]+(?::[^}]*)?\}")
_SCALARS: Final = {"containerUser": "user"}
_LISTS: Final = {"capAdd": "cap-add", "securityOpt": "security-opt"}


def read(text: str, *, path: str, files: Files) -> tuple[Workload, ...]:
    """One container; none where a Compose file describes it. Raises InputError for what is no JSON with comments."""
    tree = tree_of_jsonc(text, path=path)
    if tree.map is None or tree.at("dockerComposeFile") is not None:
        return ()
    draft = Placed(files=files, own=path)
    named, image = tree.at("name"), tree.at("image")
    draft.mark_tree("name", named if named is not None else tree)
    for key, option in _SCALARS.items():
        if (value := tree.at(key)) is not None:
            draft.option(option, value)
    for key, option in _LISTS.items():
        if (listed := tree.at(key)) is not None:
            draft.options(option, listed)
    privileged = tree.at("privileged")
    if privileged is not None:
        draft.privileged = privileged.yes()
        draft.mark_tree("privileged", privileged)
    _environment(draft, tree)
    _mounts(draft, tree)
    _arguments(draft, tree)
    _gpu(draft, tree)
    if image is not None:
        draft.mark_tree("image", image)
    said = Workload(
        name=tree.said("name") or "devcontainer",
        argv=(),
        path=path,
        form=Form.RUN,
        container_engine=ContainerEngine.DOCKER,
        image="" if _VARIABLE.search(tree.said("image")) else tree.said("image"),
    )
    return (replace(filled(said, draft), entrypoint=None),)


def _environment(draft: Placed, tree: Tree) -> None:
    """`${localEnv:NAME}` is a variable of the machine that the editor runs on."""
    listed = tree.at("containerEnv")
    for name, value in listed.items() if listed is not None else ():
        if not value.is_scalar:
            continue
        if _VARIABLE.search(value.text):
            itself = value.text == f"${{localEnv:{name}}}"
            source = EnvSource.PASSED_THROUGH if itself else EnvSource.REFERENCE
            draft.variable_of(name, value, source)
            draft.env.pop(name, None)
        else:
            draft.variable_of(name, value)


def _mounts(draft: Placed, tree: Tree) -> None:
    listed = tree.at("mounts")
    for element in listed.elements() if listed is not None else ():
        if element.map is not None:
            text = ",".join(f"{key}={value.text}" for key, value in element.items() if value.is_scalar)
            source = element.at("source") or element.at("target")
            if source is not None:
                draft.option("mount", source, text)
        else:
            draft.option("mount", element)


def _arguments(draft: Placed, tree: Tree) -> None:
    """`runArgs` are options of `docker run`, word by word."""
    listed = tree.at("runArgs")
    words = [
        Word(each.text, each.line, dynamic=bool(_VARIABLE.search(each.text)), column=each.column)
        for each in (listed.elements() if listed is not None else ())
        if each.is_scalar
    ]
    draft.place = tree.path
    for option in parse(words, only_options=True).options:
        draft.take(option)


def _gpu(draft: Placed, tree: Tree) -> None:
    """`hostRequirements.gpu` lets every card in by itself; `optional` only where the machine has one."""
    wanted = tree.at("hostRequirements", "gpu")
    if wanted is None or draft.requests:
        return
    if wanted.said() == "optional":
        draft.opaque.append("--gpus")
    elif wanted.map is not None or wanted.yes():
        key = "requests.0"
        draft.requests.append(DeviceRequest(count=-1, spelling="hostRequirements.gpu", key=key))
        draft.mark_tree(key, wanted)
