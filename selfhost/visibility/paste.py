"""A correction in the words of the file's own form, to paste. Pure."""

from typing import Final

from selfhost.shapes.workload import ContainerEngine, Form, Workload

_VARIABLE: Final = {
    Form.COMPOSE: 'environment:\n  {name}: "{value}"',
    Form.RUN: "-e {name}={value}",
    Form.INSPECT: "-e {name}={value}",
    Form.QUADLET: "Environment={name}={value}",
    Form.POD: 'env:\n  - name: {name}\n    value: "{value}"',
}
_CARDS: Final = {
    Form.COMPOSE: "deploy:\n  resources:\n    reservations:\n      devices:\n        - driver: nvidia\n"
    '          device_ids: ["{ids}"]\n          capabilities: [gpu]',
    Form.RUN: "--gpus '\"device={plain}\"'",
    Form.INSPECT: "--gpus '\"device={plain}\"'",
    Form.QUADLET: "AddDevice=nvidia.com/gpu={first}",
}
_SHM: Final = {
    Form.COMPOSE: "ipc: host",
    Form.RUN: "--ipc=host",
    Form.INSPECT: "--ipc=host",
    Form.QUADLET: "ShmSize=16g",
    Form.POD: "volumes:\n  - name: shm\n    emptyDir:\n      medium: Memory\n      sizeLimit: 16Gi\n"
    "# and in the container\nvolumeMounts:\n  - name: shm\n    mountPath: /dev/shm",
}
_ALL: Final = {
    Form.COMPOSE: "deploy:\n  resources:\n    reservations:\n      devices:\n        - driver: nvidia\n"
    "          count: all\n          capabilities: [gpu]",
    Form.QUADLET: "AddDevice=nvidia.com/gpu=all",
}


def variable(workload: Workload, name: str, value: str) -> str:
    return _VARIABLE.get(workload.form, "export {name}={value}").format(name=name, value=value)


def cards(workload: Workload, *ids: str) -> str:
    """Exactly these cards, by names that do not change."""
    first = ids[0] if ids else "GPU-…"
    if workload.form is Form.RUN and workload.container_engine is ContainerEngine.PODMAN:
        return "\n".join(f"--device nvidia.com/gpu={name}" for name in ids or (first,))
    text = _CARDS.get(workload.form, "export CUDA_VISIBLE_DEVICES={plain}")
    return text.format(ids='", "'.join(ids or (first,)), plain=",".join(ids or (first,)), first=first)


def all_cards(workload: Workload) -> str:
    if workload.container_engine is ContainerEngine.PODMAN and workload.form is Form.RUN:
        return "--device nvidia.com/gpu=all"
    return _ALL.get(workload.form, "--gpus all")


def shared_memory(workload: Workload) -> str:
    return _SHM.get(workload.form, "--ipc=host")
