"""Which reader a text is for: by the name of its file, then by what it says."""

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import PurePosixPath
from typing import Final, cast

from selfhost.core.errors import InputError
from selfhost.core.tree import Tree
from selfhost.shapes.finding import Place
from selfhost.shapes.workload import Workload
from selfhost.visibility.files import Files

Reader = Callable[..., tuple[Workload, ...]]

READERS: Final = {
    "compose": "compose",
    "devcontainer": "devcontainer",
    "inspect": "inspect",
    "kubernetes": "kubernetes",
    "helm": "helm",
    "quadlet": "quadlet",
    "service": "service",
}
"""Forms that have a reader of their own in `readers/`, imported at use: YAML alone takes 20 ms."""

_BY_NAME: Final = (
    (re.compile(r"\.container\Z"), "quadlet"),
    (re.compile(r"\.kube\Z"), "kube"),
    (re.compile(r"\.(?:pod|volume|network|build|image)\Z"), "nothing"),
    (re.compile(r"\A\.?devcontainer\.json\Z"), "devcontainer"),
    (re.compile(r"\A(?:docker-|podman-)?compose(?:[._-][\w.-]+)?\.ya?ml\Z"), "compose"),
    (re.compile(r"\.service\Z"), "service"),
    (re.compile(r"\.(?:sh|bash|zsh|ksh|sbatch|slurm|slm|command)\Z"), "script"),
    (re.compile(r"\.(?:md|markdown)\Z"), "markdown"),
)
_BY_CONTENT: Final = tuple(
    (form, tuple(re.compile(pattern, re.MULTILINE) for pattern in patterns))
    for form, patterns in (
        ("inspect", (r"\A\s*[\[{]", r"\"HostConfig\"\s*:")),
        ("kubernetes", (r"\A\s*[\[{]", r"\"apiVersion\"\s*:", r"\"kind\"\s*:")),
        ("devcontainer", (r"\A\s*(?://[^\n]*\n\s*)*\{", r"\"(?:runArgs|hostRequirements|customizations)\"\s*:")),
        ("compose", (r"\A\s*\{", r"\"services\"\s*:\s*\{")),
        ("script", (r"\A#!",)),
        ("quadlet", (r"^\[Container\]\s*$",)),
        ("service", (r"^\[Service\]\s*$",)),
        ("helm", (r"^# Source: \S+/templates/",)),
        ("kubernetes", (r"^apiVersion\s*:", r"^kind\s*:")),
        # GitLab's CI files have a list `services`, charts' values often a map of ports
        (
            "compose",
            (r"^[\"']?services[\"']?\s*:(?!\s*(?:#.*)?\s*-\s)", r"^\s+[\"']?(?:image|build|extends)[\"']?\s*:"),
        ),
    )
)
"""All patterns of a row must be found."""
_COMMAND = re.compile(
    r"(?:^|[\s;&|(/])(?:docker|podman|nerdctl|srun|sbatch|apptainer|singularity|enroot|vllm|sglang|export)[\s.]",
    re.MULTILINE,
)
_FORMS: Final = (
    "a Compose file, a Quadlet .container, a Kubernetes manifest, a shell or batch script, a systemd service, "
    "`docker inspect` JSON, a devcontainer.json, or Markdown with such blocks"
)
NOT_OURS: Final = frozenset({"CF021", "CF054"})
"""Ids of what is no mistake in a file but only says that there is nothing in it for us."""


def form_of(text: str, *, path: str) -> str:
    """The form of a text; empty when it is none that we read."""
    name = PurePosixPath(path).name
    for pattern, form in _BY_NAME:
        if pattern.search(name):
            return form
    for form, patterns in _BY_CONTENT:
        if all(pattern.search(text) for pattern in patterns):
            return form
    is_data = name.endswith((".yaml", ".yml", ".json")) or re.match(r"\s*(?:---|[\[{\"])", text)
    return "script" if not is_data and _COMMAND.search(text) else ""


def read_source(text: str, *, path: str, files: Files) -> tuple[Workload, ...]:
    """What the text launches. Raises InputError when it is of no form that we read, or damaged in one."""
    from selfhost.visibility.readers.inner import unwrapped

    text = text.removeprefix("\ufeff")
    form = form_of(text, path=path)
    if not form:
        raise _unknown(text, path)
    if form in _INNER:
        found = _INNER[form](text, path=path, files=files)
    elif form == "nothing":
        found = ()
    else:
        found = _reader(READERS[form])(text, path=path, files=files)
    return tuple(unwrapped(workload) for workload in found)


def objects_in(text: str, *, path: str, files: Files) -> tuple[Tree, ...]:
    """The Kubernetes objects of a text, none for a text of another form. Raises InputError as `read_source` does."""
    from selfhost.visibility.readers.kubernetes import read_objects

    text = text.removeprefix("\ufeff")
    form = form_of(text, path=path)
    if form == "kube":
        place, manifest = _played(text, path, files)
        return () if manifest is None else read_objects(manifest, path=place)
    return read_objects(text, path=path) if form in ("kubernetes", "helm") else ()


def _reader(name: str) -> Reader:
    return cast("Reader", import_module(f"selfhost.visibility.readers.{name}").read)


def _script(text: str, *, path: str, files: Files) -> tuple[Workload, ...]:
    """Containers, batch steps and plain engines, in the order of the script."""
    from selfhost.visibility.readers.scripted import read

    return read(text, path=path, files=files)


def _kube(text: str, *, path: str, files: Files) -> tuple[Workload, ...]:
    """A Quadlet unit that plays a manifest: the manifest is what is judged."""
    place, manifest = _played(text, path, files)
    return () if manifest is None else _reader("kubernetes")(manifest, path=place, files=files)


def _played(text: str, path: str, files: Files) -> tuple[str, str | None]:
    from selfhost.visibility.readers.unit import entries

    named = next((entry.text.strip() for entry in entries(text) if (entry.section, entry.key) == ("Kube", "Yaml")), "")
    manifest = files.text(named) if named else None
    return str(PurePosixPath(path).parent / named), manifest


def _markdown(text: str, *, path: str, files: Files) -> tuple[Workload, ...]:
    """Blocks that are whole; a document shows fragments too, and those are no mistakes."""
    from selfhost.visibility.readers.markdown import blocks

    found: list[Workload] = []
    for block in blocks(text):
        form = _BLOCKS.get(block.language) or form_of(block.text, path="")
        try:
            if form in READERS or form == "script":
                reader = _script if form == "script" else _reader(READERS[form])
                found += reader(block.text, path=path, files=files)
        except InputError:
            continue
    return tuple(found)


_INNER: Final[dict[str, Reader]] = {"script": _script, "kube": _kube, "markdown": _markdown}
_BLOCKS: Final = dict.fromkeys(("sh", "bash", "shell", "zsh", "console", "shell-session", "shellsession"), "script")


def _unknown(text: str, path: str) -> InputError:
    what = f"{path} is empty" if not text.strip() else f"{path} is none of the forms that lint reads"
    return InputError(
        what,
        why=f"It reads {_FORMS}.",
        fix=("name a file of one of these forms:\nselfhost lint compose.yaml",),
        id="CF054",
        place=Place(path=path),
    )
