"""`docker run`, `podman run`, `nerdctl run` in a script or alone → a Workload each."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Final

from selfhost.shapes.workload import ContainerEngine, Form, Workload
from selfhost.visibility.files import Files
from selfhost.visibility.readers.draft import Draft
from selfhost.visibility.readers.process import script_calls
from selfhost.visibility.readers.run_options import Line, Option, command_of, parse
from selfhost.visibility.readers.script import Call
from selfhost.visibility.readers.words import Word

ENGINES: Final = {
    "docker": ContainerEngine.DOCKER,
    "podman": ContainerEngine.PODMAN,
    "podman-remote": ContainerEngine.PODMAN,
    "nerdctl": ContainerEngine.UNKNOWN,
}
_COMMANDS: Final = (("run",), ("create",), ("container", "run"), ("container", "create"))
_SIGNS: Final = ("--gpus", "--device", "--runtime", "--rm", "--ipc", "--shm-size", "--privileged", "-it", "-d")
"""By one of them `$ENGINE run …` is known as a container's."""
_LOCAL = re.compile(r"(?:unix://)?/run/user/")


def read(text: str, *, path: str, files: Files) -> tuple[Workload, ...]:
    """Every container that the text starts. Raises InputError for a quote that is not closed."""
    found = (from_call(call, path=path, files=files) for call in script_calls(text, path=path))
    return tuple(workload for workload in found if workload is not None)


def from_call(call: Call, *, path: str, files: Files) -> Workload | None:
    """The container that one command starts; None when it starts none."""
    if not call.words or not _is_engine(call):
        return None
    options, rest = command_of(call.words[1:])
    texts = tuple(word.text for word in rest[:2])
    command = next((words for words in _COMMANDS if texts[: len(words)] == words), None)
    if command is None:
        return None
    line = parse(rest[len(command) :])
    draft = Draft(files=files)
    for option in (*_of_podman(call.program, options), *line.options):
        draft.take(option)
    draft.opaque += [word.text for word in line.opaque]
    draft.mark("name", call.words[0])
    return workload(draft, line, call=call, options=options, path=path)


def _is_engine(call: Call) -> bool:
    if call.program in ENGINES:
        return True
    texts = [word.text for word in call.words]
    return call.words[0].dynamic and texts[1:2] == ["run"] and any(text.startswith(_SIGNS) for text in texts[2:])


def _of_podman(program: str, options: Sequence[Option]) -> list[Option]:
    """`podman --runtime crun run`: its runtime and hooks are options of podman itself."""
    return [option for option in options if program == "podman" and option.name in ("runtime", "hooks-dir")]


def workload(draft: Draft, line: Line, *, call: Call, options: Sequence[Option], path: str) -> Workload:
    image = image_of(line.rest[0]) if line.rest else ""
    if line.rest:
        draft.mark("image", line.rest[0])
    for number, word in enumerate(line.rest[1:]):
        draft.mark(f"argv.{number}", word)
    engine = ENGINES.get(call.program, ContainerEngine.UNKNOWN)
    said = Workload(
        name=draft.single.get("name") or _short(image) or f"{call.program} run",
        argv=tuple(word.text for word in line.rest[1:]),
        form=Form.RUN,
        container_engine=engine,
        image=image,
        rootless=_rootless(engine, call.prefixes, options),
        path=path,
    )
    return filled(said, draft)


def filled(said: Workload, draft: Draft) -> Workload:
    """`said` with what was collected beside it."""
    lists = {key: tuple(values) for key, values in draft.lists.items()}
    return replace(
        said,
        env=draft.env,
        at=draft.at,
        entrypoint=draft.entrypoint,
        env_sources=draft.env_sources,
        devices=tuple(draft.devices),
        cdi=tuple(draft.cdi),
        requests=tuple(draft.requests),
        runtime=draft.single.get("runtime", ""),
        privileged=draft.privileged,
        user=draft.single.get("user", ""),
        group_add=lists.get("group_add", ()),
        cap_add=lists.get("cap_add", ()),
        cap_drop=lists.get("cap_drop", ()),
        security_opt=lists.get("security_opt", ()),
        ipc=draft.single.get("ipc", ""),
        pid=draft.single.get("pid", ""),
        network=draft.single.get("network", ""),
        shm_bytes=draft.shm_bytes,
        mounts=tuple(draft.mounts),
        ports=lists.get("publish", ()),
        restart=draft.single.get("restart", ""),
        opaque=tuple(draft.opaque),
        userns=draft.single.get("userns", ""),
        device_cgroup_rules=lists.get("device_cgroup_rule", ()),
        hooks_dirs=lists.get("hooks_dir", ()),
        detached=draft.detached,
        env_files=tuple(draft.env_files),
        init=draft.life.init,
        read_only=draft.life.read_only,
        stop_grace_s=draft.life.stop_grace_s,
        health=draft.life.health if draft.life.health is not None and draft.life.health.test else None,
        labels=draft.life.labels,
        log_driver=draft.life.log_driver,
        log_options=draft.life.log_options,
        ulimits=tuple(draft.life.ulimits),
    )


def image_of(word: Word) -> str:
    """The image as far as it is certain: `vllm/vllm-openai:$TAG` has no tag that we know, `$IMAGE` no name."""
    if not word.dynamic:
        return word.text
    known = ""
    for piece in word.pieces:
        if piece.kind != "text":
            break
        known += piece.text
    repository, colon, _ = known.rpartition(":")
    if colon and "/" not in known[len(repository) :]:
        return repository
    return ""


def _short(image: str) -> str:
    return PurePosixPath(image.partition("@")[0]).name.partition(":")[0]


def _rootless(engine: ContainerEngine, prefixes: Sequence[str], options: Sequence[Option]) -> bool | None:
    said = [option.value.text for option in options if option.value is not None]
    if any(text == "rootless" or _LOCAL.match(text) for text in said):
        return True
    if engine is ContainerEngine.PODMAN and prefixes and ("sudo" in prefixes or "doas" in prefixes):
        return False
    return None
