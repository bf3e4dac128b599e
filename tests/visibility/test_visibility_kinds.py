"""Values of another kind than their key takes: Compose and the API server refuse the file, so lint must not pass it."""

import pytest

from selfhost.core.errors import InputError
from selfhost.visibility.files import NO_FILES
from selfhost.visibility.sources import read_source

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n"


def refused(text: str) -> InputError:
    with pytest.raises(InputError) as caught:
        read_source(text, path="x.yaml", files=NO_FILES)
    return caught.value


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("image: [vllm/vllm-openai]", "image"),
        ("command: {serve: m}", "command"),
        ("environment: HF_HOME=/models", "environment"),
        ("devices: /dev/kfd", "devices"),
        ("gpus: {driver: nvidia}", "gpus"),
        ("volumes: {/models: /models}", "volumes"),
        ("ports: 8000", "ports"),
        ("deploy: [resources]", "deploy"),
        ("deploy: {resources: {reservations: {devices: {driver: nvidia}}}}", "devices"),
        ("deploy: {resources: {reservations: [devices]}}", "reservations"),
        ("shm_size: [16g]", "shm_size"),
    ],
)
def test_a_service_with_a_value_of_another_kind_is_refused(line: str, key: str) -> None:
    error = refused(f"services:\n  vllm:\n    hostname: a\n    {line}\n    build: .\n")
    assert error.id == "CF044"
    assert error.what.startswith(f"`{key}` is ")
    assert error.place
    assert error.place.line == 4


@pytest.mark.parametrize(
    ("body", "key", "line"),
    [
        ("  containers: {name: v}\n", "containers", 5),
        ("  containers:\n  - name: v\n    image: i\n    args: --model m\n", "args", 8),
        ("  containers:\n  - name: v\n    command: vllm serve m\n", "command", 7),
        ("  containers:\n  - name: v\n    env: {A: b}\n", "env", 7),
        ("  containers:\n  - name: v\n    resources: {limits: [nvidia.com/gpu]}\n", "limits", 7),
        ("  tolerations: {key: a}\n  containers: []\n", "tolerations", 5),
    ],
)
def test_a_pod_with_a_value_of_another_kind_is_refused(body: str, key: str, line: int) -> None:
    error = refused(POD + body)
    assert error.id == "CF048"
    assert error.what.startswith(f"`{key}` is ")
    assert error.place
    assert error.place.line == line


def test_null_and_both_spellings_are_taken() -> None:
    keys = ("image: i", "command:", "environment: [A=b]", "tmpfs: /run", "gpus: all", "deploy: {}")
    text = "services:\n  a:\n" + "".join(f"    {key}\n" for key in keys)
    assert len(read_source(text, path="compose.yaml", files=NO_FILES)) == 1
