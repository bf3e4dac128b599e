"""The services of one Compose project: its file, the override beside it, what it includes, what services extend."""

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Final

from selfhost.core.errors import InputError
from selfhost.core.tree import Tree
from selfhost.core.yaml import documents
from selfhost.shapes.finding import Place
from selfhost.shapes.workload import Spot
from selfhost.visibility.files import Files
from selfhost.visibility.readers.compose_interpolate import fill
from selfhost.visibility.readers.compose_merge import merged, without_resets
from selfhost.visibility.readers.dotenv import entries

_USUAL: Final = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")
_OVERRIDES: Final = (
    "compose.override.yml",
    "compose.override.yaml",
    "docker-compose.override.yml",
    "docker-compose.override.yaml",
)
_MOST_FILES: Final = 50
"""That one project may include or extend."""


@dataclass(frozen=True, slots=True)
class Service:
    """One service, merged. `missing` names files that it extends and that were not there."""

    name: str
    tree: Tree
    spot: Spot
    missing: tuple[str, ...] = ()


@dataclass(slots=True)
class Project:
    """`path` is the file that was handed in; other files are known by the path that a person would give them."""

    path: str
    files: Files
    folders: dict[str, str] = field(default_factory=dict)
    """Folder of each file, as `files` wants it; empty for that of the file itself."""
    lines: dict[str, list[str]] = field(default_factory=dict)
    variables: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """What `.env` gives, by the folder it lies in."""
    documents: dict[str, Tree | None] = field(default_factory=dict)
    included: set[str] = field(default_factory=set)
    root: Tree | None = None
    """The file with its override, for what stands beside the services."""
    podman: bool = False

    def spot(self, tree: Tree) -> Spot:
        return self.spot_of(tree.spot)

    def spot_of(self, spot: Spot) -> Spot:
        """A file is named only where it is another one."""
        return replace(spot, path="") if spot.path == self.path else spot

    def named(self, section: str, key: str) -> str:
        """The `name` that a network or volume has in the engine; empty where the file leaves it to Compose."""
        return self.root.said(section, key, "name") if self.root is not None else ""

    def beside(self, tree: Tree, name: str) -> str:
        """The path of a file that a value names, as `files` wants it."""
        return (
            name if name.startswith("/") else posixpath.normpath(posixpath.join(self.folders.get(tree.path, ""), name))
        )

    def shown(self, name: str) -> str:
        """The path of a file beside the first, as a person would give it."""
        if name.startswith("/"):
            return name
        return posixpath.normpath(str(PurePosixPath(self.path).parent / name))


def services(text: str, *, path: str, files: Files) -> tuple[Project, tuple[Service, ...]]:
    """Every service by name. Raises InputError where Compose would refuse the file."""
    project = Project(path=path, files=files)
    project.folders[path] = ""
    root = _parsed(project, text, path)
    if root is None:
        raise _empty(path)
    over = _override(project, path)
    if over is not None:
        root = _named_by(root, merged(root, over))
    project.root = root
    project.podman = any(key.startswith("x-podman") for key in root.map or {})
    found = {service.name: service for service in _included(project, root, path)}
    found |= {service.name: service for service in _own(project, root, path)}
    return project, tuple(found.values())


def _named_by(first: Tree, both: Tree) -> Tree:
    """`both`, whose services stand where the first file names them: comments that speak of a service are there."""
    names, listed = first.at("services"), both.at("services")
    if names is None or listed is None or both.map is None:
        return both
    return replace(both, map={**both.map, "services": replace(listed, keys={**listed.keys, **names.keys})})


def _own(project: Project, root: Tree, path: str) -> Iterator[Service]:
    listed = root.at("services")
    if listed is None or listed.is_null:
        return
    if listed.map is None:
        raise _shape(listed, path, "`services` is no map of services by name")
    for name, tree in listed.items():
        missing: list[str] = []
        service = _extended(project, root, name, tree, ((path, name),), missing)
        yield Service(name, without_resets(service), project.spot_of(listed.key_spot(name)), tuple(missing))


def _parsed(project: Project, text: str, path: str) -> Tree | None:
    """One file with its variables filled in: several documents count as one file over the other."""
    project.lines[path] = text.split("\n")
    root: Tree | None = None
    for document in documents(text, path=path):
        if document.map is None:
            raise _shape(document, path, "this is no Compose file: a map with `services` belongs here")
        root = document if root is None else merged(root, document)
    if root is None:
        return None
    known = _variables(project, project.folders.get(path, ""))
    parts = ("services", "include", "networks", "volumes")
    filled = {key: fill(tree, known) if key in parts else tree for key, tree in root.items()}
    return replace(root, map=filled)


def _variables(project: Project, folder: str) -> Mapping[str, str]:
    if folder not in project.variables:
        text = project.files.text(posixpath.join(folder, ".env"))
        if text is None and folder:
            project.variables[folder] = _variables(project, "")
        else:
            found = (entry for entry in entries(text or "", {}) if entry.value is not None and not entry.value.unknown)
            project.variables[folder] = {entry.name: entry.value.text for entry in found if entry.value is not None}
    return project.variables[folder]


def _override(project: Project, path: str) -> Tree | None:
    if PurePosixPath(path).name not in _USUAL:
        return None
    for name in _OVERRIDES:
        text = project.files.text(name)
        if text is not None:
            shown = project.shown(name)
            project.folders[shown] = ""
            return _parsed(project, text, shown)
    return None


def _other(project: Project, name: str, by: Tree) -> tuple[str, Tree] | None:
    """Another file of the project and its path; None when it is not there."""
    where = project.beside(by, name)
    shown = project.shown(where)
    if shown in project.documents:
        known = project.documents[shown]
        return None if known is None else (shown, known)
    if len(project.documents) >= _MOST_FILES:
        raise _shape(by, by.path, f"more than {_MOST_FILES} files are included or extended")
    text = project.files.text(where)
    project.folders[shown] = posixpath.dirname(where)
    project.documents[shown] = None if text is None else _parsed(project, text, shown)
    found = project.documents[shown]
    return None if found is None else (shown, found)


def _included(project: Project, root: Tree, path: str, chain: tuple[str, ...] = ()) -> Iterator[Service]:
    include = root.at("include")
    if include is None:
        return
    for entry in include.elements() if include.list is not None else (include,):
        paths = entry.at("path") if entry.map is not None else entry
        for named in paths.elements() if paths is not None and paths.list is not None else (paths,):
            if named is None or not named.is_scalar or named.unknown or not named.text:
                continue
            other = _other(project, named.text, named)
            if other is None:
                continue
            if other[0] in (*chain, path):
                raise _shape(named, named.path, f"{named.text} includes itself in the end")
            if other[0] in project.included:
                continue
            project.included.add(other[0])
            yield from _included(project, other[1], other[0], (*chain, path))
            yield from _own(project, other[1], other[0])


def _extended(
    project: Project, root: Tree, name: str, tree: Tree, chain: tuple[tuple[str, str], ...], missing: list[str]
) -> Tree:
    if tree.map is None and not tree.is_null:
        raise _shape(tree, tree.path, f"service `{name}` is no map")
    extends = tree.at("extends")
    if extends is None or extends.is_null:
        return tree
    base_name = extends.text if extends.is_scalar else extends.said("service")
    file = extends.at("file")
    where, base_root = chain[-1][0], root
    if file is not None and file.text:
        other = None if file.unknown else _other(project, file.text, file)
        if other is None:
            missing.append(file.text)
            return tree
        where, base_root = other
    base = base_root.at("services", base_name)
    if base is None:
        raise _shape(extends, extends.path, f"service `{name}` extends `{base_name}`, which {where} does not have")
    if (where, base_name) in chain or len(chain) > _MOST_FILES:
        raise _shape(extends, extends.path, f"service `{name}` extends itself in the end")
    under = _extended(project, base_root, base_name, base, (*chain, (where, base_name)), missing)
    return merged(without_resets(under), tree) if under.map is not None else tree


def _shape(tree: Tree, path: str, words: str) -> InputError:
    return InputError(
        words,
        why="Compose refuses the file, so nothing of it starts.",
        fix=("see what Compose says of it:\ndocker compose config",),
        id="CF044",
        place=Place(path=path, line=tree.line, column=tree.column),
    )


def _empty(path: str) -> InputError:
    return InputError(
        f"{path} is empty",
        why="It has no services, so nothing can be judged.",
        fix=("name a Compose file with `services`",),
        id="CF054",
        place=Place(path=path),
    )
