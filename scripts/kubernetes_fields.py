"""Write selfhost/visibility/manifests/fields.txt from the schemas that kubernetes-validate carries.

One line a type: its name, then `field=type` in order; `!` is required, `[` a list of, `{` a map of, `s` a string,
`i` an integer, `n` a number, `b` a boolean, `q` a quantity, `x` an integer or a string, `*` anything. The last line has
every kind of object by its API version.
"""

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

VERSION = "1.37.0"
TARGET = Path(__file__).resolve().parent.parent / "selfhost/visibility/manifests/fields.txt"
HEAD = (
    f"# Fields of the Kubernetes API {VERSION}: kubernetes/kubernetes, api/openapi-spec (Apache-2.0). "
    "Written by scripts/kubernetes_fields.py."
)
KINDS = {
    "core.v1": "Pod Service PersistentVolumeClaim PersistentVolume ConfigMap Secret ServiceAccount Namespace "
    "ResourceQuota LimitRange PodTemplate",
    "apps.v1": "Deployment StatefulSet DaemonSet ReplicaSet",
    "batch.v1": "Job CronJob",
    "policy.v1": "PodDisruptionBudget",
    "autoscaling.v2": "HorizontalPodAutoscaler",
    "autoscaling.v1": "HorizontalPodAutoscaler",
    "networking.v1": "NetworkPolicy Ingress",
    "node.v1": "RuntimeClass",
    "scheduling.v1": "PriorityClass",
    "storage.v1": "StorageClass",
    "rbac.v1": "Role RoleBinding ClusterRole ClusterRoleBinding",
    "resource.v1": "ResourceClaim ResourceClaimTemplate DeviceClass",
    "resource.v1beta2": "ResourceClaim ResourceClaimTemplate DeviceClass",
    "resource.v1beta1": "ResourceClaim ResourceClaimTemplate DeviceClass",
}
SCALARS = {"string": "s", "integer": "i", "number": "n", "boolean": "b"}


def main() -> None:
    folder = files("kubernetes_validate") / "kubernetes-json-schema" / f"v{VERSION}-local-strict"
    definitions = json.loads((folder / "_definitions.json").read_text())["$defs"]
    wanted = {f"io.k8s.api.{group}.{kind}" for group, kinds in KINDS.items() for kind in kinds.split()}
    lines, todo, seen = [], sorted(wanted), set(wanted)
    while todo:
        name = todo.pop(0)
        fields = []
        for field, schema in sorted(definitions[name].get("properties", {}).items()):
            if name in wanted and field == "status":
                kind = "*"
            else:
                kind = kind_of(schema, definitions)
                for other in refs(schema, definitions):
                    if other not in seen:
                        seen.add(other)
                        todo.append(other)
            required = "!" if field in definitions[name].get("required", ()) else ""
            fields.append(f"{field}={kind}{required}")
        lines.append(" ".join((short(name), *fields)))
    TARGET.write_text("\n".join((HEAD, *sorted(lines), f"kinds {' '.join(kinds(definitions))}")) + "\n")


def kinds(definitions: dict[str, Any]) -> list[str]:
    """Every kind of object that there is, as `apps/v1=Deployment`."""
    found = set()
    for schema in definitions.values():
        for one in schema.get("x-kubernetes-group-version-kind", ()):
            is_object = "metadata" in schema.get("properties", {}) and one["kind"] not in (
                "DeleteOptions",
                "WatchEvent",
            )
            if is_object:
                group = f"{one['group']}/" if one["group"] else ""
                found.add(f"{group}{one['version']}={one['kind']}")
    return sorted(found)


def short(name: str) -> str:
    return ".".join(name.removeprefix("io.k8s.").rsplit(".", 3)[-3:])


def refs(schema: dict[str, Any], definitions: dict[str, Any]) -> Iterator[str]:
    for inner in (schema, schema.get("items"), schema.get("additionalProperties")):
        name = inner.get("$ref", "").removeprefix("#/$defs/") if isinstance(inner, dict) else ""
        if name and is_open(name) and definitions[name].get("properties"):
            yield name


def is_open(name: str) -> bool:
    return not name.endswith((".Quantity", ".IntOrString", ".Time", ".MicroTime", ".FieldsV1", ".ManagedFieldsEntry"))


def kind_of(schema: dict[str, Any], definitions: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        special = {"Quantity": "q", "IntOrString": "x", "Time": "s", "MicroTime": "s"}.get(name.rpartition(".")[2])
        return special or (short(name) if is_open(name) and definitions[name].get("properties") else "*")
    types = schema.get("type", ())
    kind = types if isinstance(types, str) else next((one for one in types if one != "null"), "")
    if kind == "array":
        return f"[{kind_of(schema['items'], definitions)}"
    if kind == "object":
        inner = schema.get("additionalProperties")
        return f"{{{kind_of(inner, definitions)}" if isinstance(inner, dict) and inner else "*"
    return SCALARS.get(kind, "*")


if __name__ == "__main__":
    main()
