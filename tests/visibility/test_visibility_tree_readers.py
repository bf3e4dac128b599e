"""Compose, Kubernetes, inspect and devcontainer files as documentation shows them; beside each its meaning, by hand."""

import json
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selfhost.core.errors import InputError
from selfhost.shapes.workload import Workload
from selfhost.visibility.files import NO_FILES
from selfhost.visibility.sources import read_source

CASES = Path(__file__).parent.parent / "cases" / "readers"
EXPECTED = sorted(CASES.glob("*/*.expected"))


class Beside:
    """Files that a text names, out of the folder `beside` next to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "beside"

    def text(self, path: str) -> str | None:
        place = self.folder / path
        return place.read_text(encoding="utf-8") if place.is_file() else None


def text_of(expected: Path) -> Path:
    return next(path for path in expected.parent.glob(f"{expected.stem}.*") if path != expected)


def read(path: Path) -> tuple[Workload, ...]:
    reader = import_module(f"selfhost.visibility.readers.{path.parent.name}")
    found: tuple[Workload, ...] = reader.read(
        path.read_text(encoding="utf-8"), path=path.name, files=Beside(path.parent)
    )
    return found


def spots(workload: Workload) -> dict[str, list[int | str]]:
    return {key: [spot.line, spot.column, *([spot.path] if spot.path else [])] for key, spot in workload.at.items()}


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_file_means_what_stands_beside_it(expected: Path) -> None:
    found = read(text_of(expected))
    wanted = json.loads(expected.read_text(encoding="utf-8"))
    assert [workload.name for workload in found] == [each["name"] for each in wanted]
    for workload, each in zip(found, wanted, strict=True):
        places = each.pop("spots")
        seen: dict[str, Any] = json.loads(json.dumps(asdict(workload)))
        assert {key: seen[key] for key in each} == each
        assert {key: spots(workload).get(key) for key in places} == places


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_place_is_inside_the_text_it_names(expected: Path) -> None:
    path = text_of(expected)
    for workload in read(path):
        assert "name" in workload.at
        for key, spot in workload.at.items():
            text = (path if not spot.path else path.parent / "beside" / spot.path).read_text(encoding="utf-8")
            lines = text.split("\n")
            assert 1 <= spot.line <= len(lines), key
            assert 1 <= spot.column <= len(lines[spot.line - 1]) + 1, key


SEEDS = [text_of(path).read_text(encoding="utf-8") for path in EXPECTED]
PARTS = st.sampled_from(
    [
        "services:\n",
        "  a:\n",
        "- ",
        ": ",
        "{",
        "}",
        "[",
        "]",
        "&a ",
        "*a",
        "<<: *a\n",
        "!x ",
        "|\n",
        ">-\n",
        "'",
        '"',
        "\t",
        "\n",
        "---\n",
        "${",
        "$",
        "${A:-${B",
        "}",
        "#",
        "%",
        "null",
        "~",
        "\0",
        "\ud800",
        "é",
        ",",
        "extends: a\n",
        "kind: Pod\n",
        "spec: 3\n",
        "containers: [1, {}]\n",
        "\\",
        "? ",
        "1e999",
        "0x",
        "{{ .Values.x }}",
        "//",
        "/*",
    ]
)
NAMES = ["compose.yaml", "pod.yaml", "x.json", "devcontainer.json", "stdin"]
IDS = {"", *(f"CF0{number}" for number in (21, 22, 44, 45, 46, 48, 50, 51, 52, 53, 54, 56, 59))}


class Everywhere:
    """A file of that text stands wherever a reader looks."""

    def __init__(self, text: str) -> None:
        self._text = text

    def text(self, path: str) -> str | None:
        return self._text if path else None


@settings(max_examples=300, deadline=None)
@given(
    seed=st.sampled_from(SEEDS),
    start=st.integers(0, 2500),
    length=st.integers(0, 60),
    parts=st.lists(PARTS, max_size=6),
    ends=st.booleans(),
    name=st.sampled_from(NAMES),
)
def test_whatever_is_read_only_an_input_error_escapes(
    seed: str, start: int, length: int, parts: list[str], ends: bool, name: str
) -> None:
    text = seed[:start] + "".join(parts) + ("" if ends else seed[start + length :])
    for files in (NO_FILES, Everywhere(seed), Everywhere(text)):
        refused = ""
        try:
            read_source(text, path=name, files=files)
        except InputError as error:
            refused = error.id if error.place and error.fix else "incomplete"
        assert refused in IDS


@settings(max_examples=200, deadline=None)
@given(text=st.text(max_size=200), form=st.sampled_from(["compose", "kubernetes", "inspect", "devcontainer", "helm"]))
def test_any_text_at_all_is_read_or_refused(text: str, form: str) -> None:
    reader = import_module(f"selfhost.visibility.readers.{form}")
    try:
        reader.read(text, path="x", files=NO_FILES)
    except InputError as error:
        assert error.id in IDS  # noqa: PT017 - most texts are read


JUNK = st.recursive(
    st.sampled_from([None, True, 3, 0.5, "all", "${A}", "x=y", "/dev/kfd:/dev/kfd", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "path", "source", "count", "value", "a", "spec", "limits"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)
SERVICE = [
    "image",
    "command",
    "entrypoint",
    "environment",
    "env_file",
    "gpus",
    "deploy",
    "devices",
    "runtime",
    "privileged",
    "user",
    "group_add",
    "cap_add",
    "security_opt",
    "ipc",
    "shm_size",
    "volumes",
    "tmpfs",
    "ports",
    "restart",
    "extends",
    "provider",
]
CONTAINER = [
    "name",
    "image",
    "command",
    "args",
    "env",
    "envFrom",
    "resources",
    "volumeMounts",
    "securityContext",
    "ports",
]
POD = [
    "containers",
    "initContainers",
    "volumes",
    "securityContext",
    "tolerations",
    "nodeSelector",
    "resourceClaims",
    "hostIPC",
    "runtimeClassName",
    "resources",
]
INSPECT = ["Name", "Id", "Mounts", "OCIRuntime"]
HOST_CONFIG = [
    "DeviceRequests",
    "Devices",
    "Runtime",
    "Privileged",
    "GroupAdd",
    "IpcMode",
    "ShmSize",
    "Binds",
    "Tmpfs",
    "PortBindings",
    "RestartPolicy",
]
CONFIG = ["Cmd", "Entrypoint", "Env", "Image", "User", "CreateCommand"]


def some(keys: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(keys), JUNK, max_size=6)


@settings(max_examples=120, deadline=None)
@given(
    service=some(SERVICE),
    container=some(CONTAINER),
    pod=some(POD),
    entry=some(INSPECT),
    host=some(HOST_CONFIG),
    config=some(CONFIG),
    top=some(["runArgs", "mounts", "containerEnv", "hostRequirements", "image", "name"]),
)
def test_values_of_any_type_in_any_place_are_read_or_refused(**parts: dict[str, Any]) -> None:
    texts = {
        "compose": {"services": {"a": parts["service"], "b": {"extends": "a"}}, "include": parts["top"].get("mounts")},
        "kubernetes": {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": parts["pod"].get("volumes"),
            "spec": {"containers": [parts["container"]], **parts["pod"]},
        },
        "inspect": [{**parts["entry"], "HostConfig": parts["host"], "Config": parts["config"]}],
        "devcontainer": parts["top"],
    }
    for form, data in texts.items():
        reader = import_module(f"selfhost.visibility.readers.{form}")
        try:
            reader.read(json.dumps(data, indent=1), path="x", files=NO_FILES)
        except InputError as error:
            assert error.id in IDS  # noqa: PT017 - most texts are read
