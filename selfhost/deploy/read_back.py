"""The files of a bundle, with what a person put into `overrides/` → the one Workload that is to run."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from selfhost.core.errors import InputError
from selfhost.core.yaml import documents
from selfhost.render import compose, helm, kubernetes, run_line
from selfhost.render.compose import PREFIX
from selfhost.render.kubernetes import manifests
from selfhost.render.manifests.chart import over
from selfhost.render.process import SCRIPT
from selfhost.shapes.finding import Place
from selfhost.shapes.workload import EnvSource, Spot, Workload
from selfhost.visibility.readers import compose as compose_reader
from selfhost.visibility.readers import kubernetes as kubernetes_reader
from selfhost.visibility.readers import process as process_reader
from selfhost.visibility.readers import quadlet as quadlet_reader
from selfhost.visibility.readers import run as run_reader

_AS_WORKLOAD = {"no-new-privileges": "no-new-privileges:true", "no-new-privileges=true": "no-new-privileges:true"}
_UNIT = re.compile(r"(?P<name>[^/]+)\.container\Z")


def read_bundle(target: str, files: Mapping[str, str], *, folder: str = "") -> Workload:
    """`files` by relative path, overrides among them; `folder` is where they lie, for the workload's own path.

    Raises InputError where a file is missing, or where a reader or an override refuses it.
    """
    if target in ("helm", "kubernetes"):
        return _pod(target, files, folder)
    if target == "process":
        return process_reader.read(_text(files, SCRIPT, target), path=_path(folder, SCRIPT))
    reader = {"compose": _compose, "quadlet": _quadlet}.get(target, _run)
    return _normal(reader(files, folder))


def manifests_in(target: str, files: Mapping[str, str], *, folder: str = "") -> tuple[str, str]:
    """Path and text of the objects; of a chart as its values make them, the user's own over them."""
    if target == "kubernetes":
        return _path(folder, kubernetes.FILE), _text(files, kubernetes.FILE, target)
    return _path(folder, helm.FILE), manifests_of(files, folder=folder)


def _pod(target: str, files: Mapping[str, str], folder: str) -> Workload:
    """The engine's container as the objects have it."""
    path, text = manifests_in(target, files, folder=folder)
    found = kubernetes_reader.read(text, path=path, files=_Beside({}, {}))
    engine = next((one for one in found if one.name == "engine" and one.pod and one.pod.kind == "Deployment"), None)
    if engine is None:
        raise InputError(
            f"{path} has no Deployment with a container `engine`",
            why="It is the one that serves the model.",
            fix=(f"write it anew:\nselfhost render {target} MODEL -o DIR --overwrite",),
            id="CF087",
            place=Place(path=path),
        )
    return replace(engine, env_sources=_unsaid(engine))


def manifests_of(files: Mapping[str, str], *, folder: str, namespace: str = "") -> str:
    """What the chart makes of the values, by its twin: Helm need not be here."""
    values: Mapping[str, Any] = {}
    for name in (helm.FILE, helm.OVERRIDE):
        if name in files:
            trees = documents(files[name], path=_path(folder, name))
            said = trees[0].data if trees else {}
            values = over(values, said if isinstance(said, Mapping) else {}, keep_null=True)
    return manifests(values, release=str(values.get("fullnameOverride") or "release"), namespace=namespace)


def containers_in(text: str, *, path: str) -> tuple[Workload, ...]:
    """Every container of these manifests."""
    return tuple(kubernetes_reader.read(text, path=path, files=_Beside({}, {})))


@dataclass(frozen=True, slots=True)
class _Beside:
    """Of the bundle only: neither keys nor `.env` are looked into."""

    files: Mapping[str, str]
    names: Mapping[str, str]

    def text(self, path: str) -> str | None:
        return self.files.get(self.names.get(path, path))


def _compose(files: Mapping[str, str], folder: str) -> Workload:
    shown, override = _path(folder, compose.FILE), _path(folder, compose.OVERRIDE)
    beside = _Beside(
        {path: text for path, text in files.items() if path == compose.OVERRIDE},
        {"compose.override.yaml": compose.OVERRIDE},
    )
    found = compose_reader.read(_text(files, compose.FILE, "compose"), path=shown, files=beside)
    if len(found) != 1:
        raise InputError(
            f"{len(found)} services stand in {shown} and {override}",
            why="selfhost starts one container of a bundle, and would leave the others out.",
            fix=("put a further service into a Compose file of its own",),
            id="CF086",
            place=Place(path=override if compose.OVERRIDE in files else shown),
        )
    wrong = _path(folder, "compose.override.yaml")
    at = {key: replace(spot, path=override) if spot.path == wrong else spot for key, spot in found[0].at.items()}
    return replace(found[0], name=f"{PREFIX}{found[0].name}", at=at)


def _quadlet(files: Mapping[str, str], folder: str) -> Workload:
    name = next((path for path in files if _UNIT.fullmatch(path)), "")
    if not name:
        raise _missing("a .container unit", "quadlet")
    text, starts = files[name], [(0, "")]
    drop_ins = sorted(path for path in files if path.startswith(f"overrides/{name}.d/") and path.endswith(".conf"))
    for path in drop_ins:
        text = text.rstrip("\n") + "\n"
        starts.append((text.count("\n"), _path(folder, path)))
        text += files[path]
    beside = _Beside({path: one for path, one in files.items() if path.endswith((".network", ".volume"))}, {})
    found = quadlet_reader.read(text, path=_path(folder, name), files=beside)[0]
    restart = "unless-stopped" if found.restart == "always" else found.restart
    return replace(found, restart=restart, at={key: _spot(spot, starts) for key, spot in found.at.items()})


def _spot(spot: Spot, starts: list[tuple[int, str]]) -> Spot:
    before, path = next(start for start in reversed(starts) if start[0] < spot.line)
    return replace(spot, line=spot.line - before, path=path) if path else spot


def _run(files: Mapping[str, str], folder: str) -> Workload:
    path = _path(folder, run_line.FILE)
    found = run_reader.read(_text(files, run_line.FILE, "docker"), path=path, files=_Beside({}, {}))
    if not found:
        raise InputError(
            f"{path} starts no container",
            why="No `docker run` or `podman run` was found in it.",
            fix=("write it anew:\nselfhost render docker MODEL -o DIR --overwrite",),
            id="CF087",
            place=Place(path=path),
        )
    return replace(found[-1], detached=False)


def _normal(workload: Workload) -> Workload:
    """One way to say what files of several targets say in several."""
    files = {f"--env-file {path}" for path in workload.env_files}
    return replace(
        workload,
        requests=tuple(request for request in workload.requests if request.driver != "cdi"),
        security_opt=tuple(_AS_WORKLOAD.get(text, text) for text in workload.security_opt),
        opaque=tuple(text for text in workload.opaque if text not in files),
        env_sources=_unsaid(workload),
    )


def _unsaid(workload: Workload) -> dict[str, EnvSource]:
    """Variables whose value is not simply in the text."""
    return {name: source for name, source in workload.env_sources.items() if source is not EnvSource.TEXT}


def _path(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}" if folder else name


def _text(files: Mapping[str, str], name: str, target: str) -> str:
    if name not in files:
        raise _missing(name, target)
    return files[name]


def _missing(name: str, target: str) -> InputError:
    return InputError(
        f"the files for {target} have no {name}",
        why="It is the file that the container is started from.",
        fix=(f"write it anew:\nselfhost render {target} MODEL -o DIR",),
        id="CF088",
    )
