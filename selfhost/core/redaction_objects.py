"""What of docker's, podman's and Kubernetes' objects goes into a snapshot: a list of what may. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from selfhost.core.device_env import is_device_variable
from selfhost.core.pseudonyms import Pseudonyms
from selfhost.core.redact import BLOT, is_secret

# moby, api/types/system/info.go: what tells about devices, runtimes, limits and versions.
_DOCKER_INFO = frozenset(
    (
        "ServerVersion", "OperatingSystem", "OSType", "OSVersion", "Architecture", "KernelVersion", "NCPU", "MemTotal",
        "Runtimes", "DefaultRuntime", "CgroupDriver", "CgroupVersion", "SecurityOptions", "DockerRootDir", "Driver",
        "DriverStatus", "CDISpecDirs", "DiscoveredDevices", "Containers", "ContainersRunning", "ContainersPaused",
        "ContainersStopped", "Images", "Warnings", "ServerErrors", "ContainerdCommit", "RuncCommit", "InitCommit",
        "InitBinary", "LiveRestoreEnabled", "Isolation", "ExperimentalBuild", "MemoryLimit", "SwapLimit",
        "CpuCfsPeriod", "CpuCfsQuota", "CPUShares", "CPUSet", "PidsLimit", "OomKillDisable", "LoggingDriver", "Debug",
    )
)  # fmt: skip
_CONTAINER = (
    "Id",
    "Name",
    "Image",
    "ImageName",
    "Created",
    "Path",
    "Args",
    "Pod",
    "Rootfs",
    "OCIRuntime",
    "Driver",
    "AppArmorProfile",
)
_STATE = (
    "Status",
    "Running",
    "Paused",
    "Restarting",
    "OOMKilled",
    "Dead",
    "ExitCode",
    "Pid",
    "StartedAt",
    "FinishedAt",
)
_CONFIG = ("Image", "Cmd", "Entrypoint", "User", "WorkingDir", "Tty", "OpenStdin", "StopSignal")
_HIDDEN_KINDS = ("Secret", "ConfigMap", "ServiceAccount", "Lease", "Event", "CertificateSigningRequest")
# Labels that decide about devices: Kubernetes' own, the vendors', the clouds' kinds of machines.
_LABELS = (
    "kubernetes.io/", "k8s.io/", "nvidia.com/", "amd.com/", "intel.com/", "cloud.google.com/gke-", "eks.amazonaws.com/",
    "kubernetes.azure.com/", "karpenter.sh/", "node-role", "volcano.sh/", "run.ai/", "hami.io/", "aliyun.com/",
)  # fmt: skip
_UNLABELLED = ("kubernetes.io/hostname",)


def docker_info(info: Mapping[str, Any], names: Pseudonyms) -> dict[str, Any]:
    kept = {key: value for key, value in info.items() if key in _DOCKER_INFO}
    client = info.get("ClientInfo")
    swarm = info.get("Swarm")
    if info.get("Name"):
        kept["Name"] = host(names, str(info["Name"]))
    if info.get("ID"):
        kept["ID"] = names.of("engine id", str(info["ID"]))
    if isinstance(client, Mapping):
        kept["ClientInfo"] = {key: client[key] for key in ("Version", "ApiVersion", "Os", "Arch") if key in client}
    if isinstance(swarm, Mapping):
        kept["Swarm"] = {"LocalNodeState": swarm.get("LocalNodeState", "")}
    return kept


def podman_info(info: Mapping[str, Any], names: Pseudonyms) -> dict[str, Any]:
    held = {key: dict(_map(info.get(key))) for key in ("host", "store", "version", "plugins") if key in info}
    if held.get("host", {}).get("hostname"):
        held["host"]["hostname"] = host(names, str(held["host"]["hostname"]))
    return held


def host(names: Pseudonyms, name: str) -> str:
    """Names that tools give to their own machines and that prove what they are stay, or keep their beginning."""
    if name in ("docker-desktop", "minikube", "localhost", "kind-control-plane", "toolbx", "toolbox"):
        return name
    if len(name) == 12 and set(name) <= set("0123456789abcdef"):
        return names.short_id(name)  # Docker names a container by its id
    kept = next((start for start in ("k3d-", "kind-") if name.startswith(start)), "")
    return kept + names.of("host", name)


def container(seen: Mapping[str, Any], names: Pseudonyms) -> dict[str, Any]:
    """An object of `docker inspect`: how it was started and what it was granted."""
    config, state = _map(seen.get("Config")), _map(seen.get("State"))
    kept: dict[str, Any] = {key: seen[key] for key in _CONTAINER if key in seen}
    if kept.get("Name"):
        slash = "/" if str(kept["Name"]).startswith("/") else ""
        kept["Name"] = slash + names.of("container", str(kept["Name"]).lstrip("/"))
    kept["Args"] = arguments(seen.get("Args"))
    kept["State"] = {key: state[key] for key in _STATE if key in state}
    kept["Config"] = {key: arguments(config[key]) for key in _CONFIG if key in config}
    kept["Config"]["Env"] = variables(config.get("Env"))
    kept["HostConfig"] = {
        key: value
        for key, value in _map(seen.get("HostConfig")).items()
        if key not in ("LogConfig", "Annotations", "ExtraHosts", "Links", "Dns", "DnsSearch")
    }
    mounts = seen.get("Mounts")
    kept["Mounts"] = [
        {key: one[key] for key in ("Type", "Source", "Destination", "Mode", "RW") if key in one}
        for one in (mounts if isinstance(mounts, list) else ())
        if isinstance(one, Mapping)
    ]
    return kept


def variables(env: object) -> list[str]:
    """`NAME=value` words: only of device variables the value."""
    words = [str(word) for word in env] if isinstance(env, list | tuple) else []
    return [word for word in words if is_device_variable(word.partition("=")[0])]


def arguments(argv: object) -> object:
    """A command line without the values of options that name a secret."""
    if not isinstance(argv, list | tuple):
        return argv
    kept: list[object] = []
    for word in argv:
        before = str(kept[-1]) if kept else ""
        hides = before.startswith("-") and "=" not in before and is_secret(before.lstrip("-").replace("-", "_"))
        kept.append(BLOT if hides or _is_secret_option(before) else word)
    return kept


def _is_secret_option(word: str) -> bool:
    return word.startswith("--") and "=" not in word and word.endswith(("key", "token", "password", "secret", "auth"))


def kubernetes(objects: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Without secrets, and of the rest without what people write into it."""
    found: list[dict[str, Any]] = []
    for one in objects:
        if isinstance(one.get("items"), list):
            found.append(
                {
                    **{key: one[key] for key in ("apiVersion", "kind") if key in one},
                    "items": kubernetes([item for item in one["items"] if isinstance(item, Mapping)]),
                }
            )
        elif one.get("kind") not in _HIDDEN_KINDS:
            found.append(_object(one))
    return found


def _object(one: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in one.items() if key not in ("metadata", "status", "data", "stringData")}
    metadata = _map(one.get("metadata"))
    kind = str(one.get("kind", ""))
    kept["metadata"] = {key: metadata[key] for key in _METADATA_KEYS if key in metadata}
    notes = {key: value for key, value in _map(metadata.get("annotations")).items() if key in _ANNOTATIONS}
    if notes:
        kept["metadata"]["annotations"] = notes
    if "labels" in metadata:
        kept["metadata"]["labels"] = {
            name: value
            for name, value in _map(metadata["labels"]).items()
            if name not in _UNLABELLED and any(known in name for known in _LABELS)
        }
    if kind == "Node":
        kept["spec"] = {
            key: value for key, value in _map(one.get("spec")).items() if key in ("taints", "unschedulable")
        }
    elif "spec" in kept:
        kept["spec"] = _spec(kept["spec"])
    if "status" in one:
        kept["status"] = _status(_map(one["status"]))
    return kept


_METADATA_KEYS = (
    "name", "namespace", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
)  # fmt: skip
_ANNOTATIONS = ("storageclass.kubernetes.io/is-default-class",)
"""Of no person, and a diagnosis needs it."""
_STATUS_KEYS = (
    "capacity", "allocatable", "phase", "conditions", "reason", "message", "containerStatuses",
    "initContainerStatuses", "qosClass", "allocation", "currentNumberScheduled", "desiredNumberScheduled",
    "numberReady", "replicas", "readyReplicas",
    "features",
)  # fmt: skip
_NODE_INFO = (
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "operatingSystem",
    "architecture",
)


def _status(status: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in status.items() if key in _STATUS_KEYS}
    info = _map(status.get("nodeInfo"))
    return {**kept, "nodeInfo": {key: info[key] for key in _NODE_INFO if key in info}} if info else kept


def _spec(value: Any) -> Any:
    """Environments to device variables, command lines without secrets, at any depth."""
    if isinstance(value, list):
        return [_spec(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    kept: dict[str, Any] = {}
    for key, item in value.items():
        if key == "env" and isinstance(item, list):
            kept[key] = [
                one for one in item if isinstance(one, Mapping) and is_device_variable(str(one.get("name", "")))
            ]
        elif key in ("command", "args"):
            kept[key] = arguments(item)
        elif key not in ("annotations", "envFrom", "imagePullSecrets", "hostAliases", "data", "stringData"):
            kept[key] = _spec(item)
    return kept


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
