"""How NVIDIA's driver gets into a container, and when that way fails or does not last."""

import re
from collections.abc import Iterator

from selfhost.shapes.finding import RunOn, Severity
from selfhost.shapes.host import Host, Vendor
from selfhost.shapes.surroundings import Engine
from selfhost.shapes.workload import CdiName, Form, Workload
from selfhost.visibility import paste
from selfhost.visibility.allocation import Grant, card_of, granted, index_of, nvidia_nodes, tool_index
from selfhost.visibility.engines import engine_of_host, nvidia_toolkit, version
from selfhost.visibility.images import engine_of
from selfhost.visibility.nodes import cards
from selfhost.visibility.paste_options import options
from selfhost.visibility.rule import Found, place, rule

CDI = "https://github.com/NVIDIA/cloud-native-docs/blob/main/container-toolkit/cdi-support.md"
RELOAD = "https://github.com/NVIDIA/nvidia-container-toolkit/issues/48"
GENERATE = "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
MANAGEMENT = "management.nvidia.com/gpu"
_TEGRA = re.compile(r"\(nvgpu\)|\bThor\b|\bOrin\b|\bXavier\b|\bTegra\b", re.IGNORECASE)
_HOOKS = ("", "nvidia", "nvidia.runtime-hook")


def is_tegra(host: Host | None) -> bool:
    """Jetson and its like: the toolkit's csv mode."""
    return host is not None and (
        host.kernel.endswith("-tegra") or any(_TEGRA.search(card.name) for card in cards(host, Vendor.NVIDIA))
    )


@rule("DV025", Severity.ERROR, source="https://github.com/NVIDIA/TensorRT-LLM/issues/799")
def request_on_jetson(workload: Workload, host: Host | None) -> Iterator[Found]:
    engine = engine_of_host(workload, host)
    by_runtime = workload.runtime == "nvidia" or (engine is not None and engine.default_runtime == "nvidia")
    if not is_tegra(host) or by_runtime:
        return
    for number, request in enumerate(workload.requests):
        if request.driver in _HOOKS:
            key = request.key or f"requests.{number}"
            yield Found(
                title=f"{workload.label} asks by {request.spelling or '--gpus'}, which Jetson's toolkit refuses",
                place=place(workload, key),
                evidence=f"kernel {host.kernel if host else ''}; {request.spelling or '--gpus'}",
                why="On Jetson the toolkit mounts files from a list (mode csv), which only the runtime does: `invoking "
                "the NVIDIA Container Runtime Hook directly … is not supported`.",
                fix=(
                    "use the runtime instead:\n" + ("runtime: nvidia" if _is_compose(workload) else "--runtime nvidia"),
                ),
            )


def _is_compose(workload: Workload) -> bool:
    return workload.form is Form.COMPOSE


@rule("DV026", Severity.ERROR, source="https://github.com/NVIDIA/nvidia-container-toolkit/issues/1239")
def cdi_name_unknown(workload: Workload, host: Host | None) -> Iterator[Found]:
    yield from _of_a_management_class(workload)
    engine = engine_of_host(workload, host)
    offered = _offered(host, engine)
    for number, (name, key) in enumerate(_names(workload)):
        full = f"{name.kind}={name.name}"
        if name.kind == MANAGEMENT and name.name != "all":
            yield Found(
                title=f"{full} does not exist; of this kind there is only `all`",
                place=place(workload, key or f"cdi.{number}"),
                evidence=full,
                why="The management specification names all cards at once, for containers that look after the driver.",
                fix=(f"name the card by the other kind: nvidia.com/gpu={name.name}",),
            )
        elif offered is not None and full not in offered and "$" not in full and _is_listed(name, offered):
            alike = sorted(text for text in offered if text.startswith(f"{name.kind}="))
            yield Found(
                title=f"{full} is in no CDI specification of this machine",
                place=place(workload, key or f"cdi.{number}"),
                evidence=f"known: {', '.join(alike[:6]) or 'none of this kind'}",
                why="Names come from files in /etc/cdi and /var/run/cdi of the machine that runs the container; any "
                "other ends in `unresolvable CDI devices`.",
                fix=(
                    "list the names, and use one of them:\nnvidia-ctk cdi list",
                    f"write the file anew after a change of driver, cards or MIG slices:\n{GENERATE}",
                ),
                run_on=RunOn.CONTAINER_HOST,
            )


def _names(workload: Workload) -> Iterator[tuple[CdiName, str]]:
    """CDI names wherever a text may write them: devices, requests, NVIDIA_VISIBLE_DEVICES, a pod's annotations."""
    yield from ((name, name.key) for name in workload.cdi)
    said = {name.kind + "=" + name.name for name in workload.cdi}
    texts = [(text, f"requests.{number}") for number, request in enumerate(workload.requests) for text in request.ids]
    texts += [(text.strip(), "env.NVIDIA_VISIBLE_DEVICES") for text in _visible(workload).split(",")]
    for key, value in (workload.pod.annotations if workload.pod else {}).items():
        if key.startswith("cdi.k8s.io/"):
            texts += [(text.strip(), f"annotations.{key}") for text in value.split(",")]
    for text, key in texts:
        kind, equals, name = text.partition("=")
        if equals and "/" in kind and text not in said:
            yield CdiName(kind=kind, name=name), key


def _visible(workload: Workload) -> str:
    return workload.env.get("NVIDIA_VISIBLE_DEVICES", "")


def _of_a_management_class(workload: Workload) -> Iterator[Found]:
    pod = workload.pod
    if (
        pod is None
        or pod.runtime_class != "nvidia-cdi"
        or not any(name.startswith("nvidia.com/") for name in pod.limits)
    ):
        return
    yield Found(
        title=f"{workload.label} takes the runtime class nvidia-cdi beside a card of the device plugin",
        place=place(workload, "runtime_class"),
        evidence="runtimeClassName: nvidia-cdi · nvidia.com/gpu",
        why="Where the toolkit's CDI mode makes names out of the plugin's UUIDs, this class looks for them in the "
        "management specification, which has only `all` (`unresolvable CDI devices management.nvidia.com/gpu=GPU-…`). "
        "management.* is operator-only.",
        fix=("remove runtimeClassName, or use the class `nvidia`",),
        severity=Severity.WARNING,
    )


def _offered(host: Host | None, engine: Engine | None) -> set[str] | None:
    """Full names that can be resolved on this machine; None when the container runs elsewhere or nobody looked."""
    if host is None or host.surroundings is None or engine is None or engine.remote or engine.desktop:
        return None
    files = {
        device.name if "=" in device.name else f"{spec.kind}={device.name}"
        for spec in host.surroundings.cdi
        if not spec.fault
        for device in spec.devices
    }
    return files | set(engine.cdi_devices)


def _is_listed(name: CdiName, offered: set[str]) -> bool:
    """Whether the machine's names of this kind were seen, or it has the cards and no name for them."""
    return name.kind.startswith("nvidia.com/") or any(text.startswith(f"{name.kind}=") for text in offered)


@rule("DV028", Severity.WARNING, source=RELOAD)
def lost_at_daemon_reload(workload: Workload, host: Host | None) -> Iterator[Found]:
    engine = engine_of_host(workload, host)
    if engine is None or engine.kind != "docker" or engine.cgroup_driver != "systemd" or not _stays(workload):
        return
    way = _hook(workload, host, engine)
    if way is None or any(device.source.startswith("/dev/nvidia") for device in workload.devices):
        return
    key, said = way
    yield Found(
        title=f"{workload.label} loses its cards when systemd reloads",
        place=place(workload, key),
        evidence=f"{said}; docker {engine.version}, cgroup driver systemd",
        why="The hook adds the device rules behind runc's back. `systemctl daemon-reload`, which every package upgrade "
        "runs, writes the rules anew without them: `Failed to initialize NVML: Unknown Error` until it is made again.",
        fix=(
            "let the cards in by CDI instead:\n" + options(workload, *_by_cdi(workload)),
            "or name the nodes beside it: /dev/nvidiactl, /dev/nvidia-uvm and each /dev/nvidiaN",
        ),
    )


def _by_cdi(workload: Workload) -> Iterator[tuple[str, str]]:
    ids = [name for request in workload.requests for name in request.ids] or ["all"]
    yield from (("--device", f"nvidia.com/gpu={name}") for name in ids)


def _stays(workload: Workload) -> bool:
    """A service that is meant to run on, not a command."""
    lasting = workload.form is Form.COMPOSE or workload.detached or workload.restart not in ("", "no")
    return lasting or engine_of(workload) is not None


def _hook(workload: Workload, host: Host | None, engine: Engine) -> tuple[str, str] | None:
    """Key and words of an injection that runc does not know of; None for one that lasts or is not known."""
    toolkit = nvidia_toolkit(host)
    if workload.cdi:
        return None
    request = next((request for request in workload.requests if request.driver in _HOOKS), None)
    if request is not None and workload.runtime != "nvidia":
        hook = (0,) < version(engine) < (29,) or (version(engine) >= (29,) and "nvidia:cdi" not in engine.injects)
        return (request.key or "requests.0", request.spelling or "--gpus") if hook else None
    if workload.runtime == "nvidia" and toolkit is not None and toolkit.mode == "legacy":
        return "runtime", "runtime nvidia in mode legacy"
    return None


@rule("DV079", Severity.ERROR, source="https://github.com/microsoft/pai/issues/1667")
def nodes_and_request_differ(workload: Workload, host: Host | None) -> Iterator[Found]:
    nodes = dict(nvidia_nodes(workload))
    grant = granted(workload, host, Vendor.NVIDIA)
    if not nodes or grant is None or grant.everything or grant.by == "device nodes" or workload.pod is not None:
        return
    if grant.ids:
        found = [card_of(name, Vendor.NVIDIA, host) for name in grant.ids]
        numbers = [index_of(name) for name in grant.ids]
        let_in = {_minor(card) if card else number for card, number in zip(found, numbers, strict=True)}
        if None in let_in and len(nodes) <= len(grant.ids):
            return
    else:
        let_in = set(range(grant.count or 0))
    more = sorted(set(nodes) - let_in)
    if more:
        yield Found(
            title=f"/dev/nvidia{more[0]} comes in beside what {grant.by} grants",
            place=place(workload, nodes[more[0]]),
            evidence=f"nodes {', '.join(f'/dev/nvidia{number}' for number in sorted(nodes))} · "
            f"{grant.by}: {', '.join(grant.ids) or grant.count}",
            why="CUDA sees every card whose node opens: the union of both. Which number is which is not even sure, "
            "for a node is numbered by the kernel and a card by nvidia-smi.",
            fix=("remove the nodes from `devices`, and choose the cards in one place",),
        )


def _minor(card: object) -> int | None:
    """The number of the card's own node, else the one that nvidia-smi gives it."""
    from selfhost.shapes.host import Accelerator

    if not isinstance(card, Accelerator):
        return None
    found = [re.fullmatch(r"/dev/nvidia(\d+)", node.path) for node in card.nodes]
    return next((int(match[1]) for match in found if match), tool_index(card))


@rule("DV030", Severity.ERROR, source="https://github.com/kubernetes/kubernetes/issues/81256")
def privileged_sees_all(workload: Workload, host: Host | None) -> Iterator[Found]:
    if not workload.privileged:
        return
    for vendor in (Vendor.NVIDIA, Vendor.AMD, Vendor.INTEL):
        grant = granted(workload, host, vendor)
        if grant is None or not grant.subset or _is_whole(grant.count, workload, host, vendor):
            continue
        certain = workload.pod is not None or _wants_others(grant, host)
        yield Found(
            title=f"{workload.label} is privileged, so {grant.by} holds no card back",
            place=place(workload, "privileged"),
            evidence=f"privileged: true · {grant.by}: {', '.join(grant.ids) or grant.count}",
            why="A privileged container may open every device of the machine. The choice of cards is then a wish: the "
            "process sees them all, and takes memory that others were given.",
            fix=("remove privileged, and add the one capability that is needed:\n" + _capability(workload),),
            severity=None if certain else Severity.WARNING,
        )


WHOLE_NODE = 8
"""Cards of a full server: a pod that asks for so many takes the node, and privileged then adds none."""


def _wants_others(grant: Grant, host: Host | None) -> bool:
    """Whether other cards than the first ones are meant: an engine takes the first that it sees, so those are right."""
    here = cards(host, grant.vendor)
    found = [card_of(name, grant.vendor, host) for name in grant.ids]
    return bool(here) and bool(found) and any(card not in here[: len(found)] for card in found)


def _is_whole(count: int | None, workload: Workload, host: Host | None, vendor: Vendor) -> bool:
    if workload.pod is not None:
        return (count or 0) >= WHOLE_NODE
    here = len(cards(host, vendor))
    return bool(here) and (count or 0) >= here


def _capability(workload: Workload) -> str:
    return {
        Form.COMPOSE: "cap_add: [SYS_PTRACE]",
        Form.QUADLET: "AddCapability=SYS_PTRACE",
        Form.POD: "securityContext:\n  capabilities:\n    add: [IPC_LOCK]",
    }.get(workload.form, "--cap-add SYS_PTRACE")


@rule("DV017", Severity.WARNING, source="https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html")
def card_by_number(workload: Workload, host: Host | None) -> Iterator[Found]:
    here = cards(host, Vendor.NVIDIA)
    grant = granted(workload, host, Vendor.NVIDIA)
    if len(here) < 2 or grant is None or grant.everything or workload.pod is not None:
        return
    bare = [name for name in grant.ids if index_of(name) is not None]
    if not bare:
        return
    found = [card_of(name, Vendor.NVIDIA, host) for name in bare]
    uuids = [card.uuid for card in found if card is not None and card.uuid]
    exact = uuids if len(uuids) == len(bare) and not grant.mig else ["GPU-…"]
    yield Found(
        title=f"{workload.label} chooses {'cards' if len(bare) > 1 else 'a card'} by number: {', '.join(bare)}",
        place=place(workload, grant.key),
        evidence=f"{grant.by}: {', '.join(bare)}; this machine has {len(here)} cards",
        why="Numbers follow the order in which the driver finds the cards. A new card, a new slot or a start changes "
        "it; a UUID stays.",
        fix=(f"name the card itself (`nvidia-smi -L` lists them):\n{_named(workload, grant.by, exact)}",),
    )


def _named(workload: Workload, by: str, uuids: list[str]) -> str:
    """In the place where the numbers stand."""
    if by.endswith("_VISIBLE_DEVICES"):
        return options(workload, ("-e", f"{by}={','.join(uuids)}"))
    return paste.cards(workload, *uuids)
