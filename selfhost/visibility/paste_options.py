"""Options of a run line in the words of the file's own form, to paste. Pure."""

from typing import Final

from selfhost.shapes.workload import Form, Workload

_COMPOSE: Final = {
    "--device": "devices",
    "-v": "volumes",
    "-e": "environment",
    "--security-opt": "security_opt",
    "--cap-add": "cap_add",
    "--group-add": "group_add",
}
_QUADLET: Final = {
    "--device": "AddDevice",
    "-v": "Volume",
    "-e": "Environment",
    "--cap-add": "AddCapability",
    "--group-add": "GroupAdd",
}
_QUADLET_SECURITY: Final = {
    "seccomp=unconfined": "SeccompProfile=unconfined",
    "label=disable": "SecurityLabelDisable=true",
}


def options(workload: Workload, *pairs: tuple[str, str]) -> str:
    """`("--device", "/dev/dri")` as the form of the workload writes it; as options where it is a run line."""
    if workload.form is Form.COMPOSE:
        return _compose(pairs)
    if workload.form is Form.QUADLET:
        return "\n".join(_quadlet(name, value) for name, value in pairs)
    if workload.form is Form.POD and all(name == "-e" for name, _ in pairs):
        entries = (value.partition("=") for _, value in pairs)
        return "env:" + "".join(f'\n  - name: {name}\n    value: "{value}"' for name, _, value in entries)
    if workload.form in (Form.PROCESS, Form.BATCH) and all(name == "-e" for name, _ in pairs):
        return "\n".join(f"export {value}" for _, value in pairs)
    return " ".join(f"{name} {value}" for name, value in pairs)


def _compose(pairs: tuple[tuple[str, str], ...]) -> str:
    lines: dict[str, list[str]] = {}
    for name, value in pairs:
        lines.setdefault(_COMPOSE[name], []).append(f'"{value}"' if name == "--group-add" else value)
    return "\n".join(f"{key}:" + "".join(f"\n  - {value}" for value in values) for key, values in lines.items())


def _quadlet(name: str, value: str) -> str:
    if name == "--security-opt":
        return _QUADLET_SECURITY.get(value, f"PodmanArgs={name} {value}")
    return f"{_QUADLET[name]}={value}"
