"""Containers that end: what their last words and exit codes mean where the pod, not the engine, is at fault."""

import re
from collections.abc import Iterator
from typing import Final

from selfhost.doctor.cluster.holders import allocatable
from selfhost.doctor.cluster.mend import logs, patch, patch_container
from selfhost.doctor.cluster.pod import Container, asked_by, asked_cards, containers, ended, engine, is_card
from selfhost.doctor.cluster.rule import Said, Seen, cluster_rule
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import Object, at, cut, label, name, namespace, number, part, rows, text
from selfhost.shapes.finding import RunOn, Severity
from selfhost.shapes.host import Vendor
from selfhost.visibility.images import vendor_of

LIFE: Final = "https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/"
_HOME_FOR_ALL: Final = "/tmp"  # noqa: S108 -- the one folder that every image lets everybody write
_ENGINE: Final = re.compile(r"vllm|sglang|text-generation-inference|lmdeploy|tritonserver|tensorrt")
_BESIDE_ENGINES: Final = re.compile(r"router|gateway|epp|proxy|operator|scheduler|controller|-cpu")
_UID: Final = re.compile(r"getpwuid\(?\)?: uid not found: (?P<uid>\d+)")
_HOME: Final = re.compile(r"PermissionError: \[Errno 13\] Permission denied: '(?P<path>/\.[\w-]+[^']*)'")
_NO_CARD: Final = re.compile(
    r"UnspecifiedPlatform|libcuda\.so\.1|Failed to infer device type|No CUDA GPUs are available|"
    r"Found no NVIDIA driver|libnvidia-ml\.so\.1|NVML Shared Library Not Found"
)
_RAY: Final = re.compile(
    r"\bray: (?:command )?not found|exec: \"ray\": executable file not found|No module named 'ray'"
)
_NOT_ALLOWED: Final = re.compile(
    r"(?P<program>/\S*bin/[\w.]+): Permission denied|exec: \"(?P<exec>[^\"]+)\": permission denied|"
    r"bad interpreter: Permission denied"
)
_NO_PROGRAM: Final = re.compile(
    r"exec: \"(?P<program>[^\"]+)\": (?:executable file not found|stat \S+: no such file|no such file)|"
    r"exec (?P<path>/\S+): no such file or directory|line \d+: (?P<shell>[\w./-]+): (?:command not|No such file)"
)
_PORT: Final = re.compile(r"VLLM_PORT '(?P<uri>tcp://[^']+)' appears to be a URI|VLLM_PORT.*tcp://")
_LINKS: Final = re.compile(r"Unknown vLLM environment variable detected: (?P<name>VLLM_\w+_(?:SERVICE|PORT)\w*)")


def said_last(pod: Object, pattern: re.Pattern[str]) -> Iterator[tuple[Container, re.Match[str]]]:
    for one in containers(pod):
        match = pattern.search(one.last_words) or pattern.search(one.waits_for)
        if match is not None:
            yield one, match


def line(one: Container, match: re.Match[str]) -> str:
    """The line of the last words that it stands in."""
    found = [each for each in f"{one.last_words}\n{one.waits_for}".splitlines() if match[0] in each]
    return cut(found[0] if found else match[0], 300)


@cluster_rule(
    "KX306",
    title="the Service's name makes VLLM_PORT a URI",
    source="https://github.com/vllm-project/vllm/issues/18209",
)
def service_links(cluster: Cluster, pod: Object) -> Iterator[Said]:
    said = next((line(one, match) for one, match in said_last(pod, _PORT)), "")
    links = at(pod, "spec", "enableServiceLinks") is not False
    called = [one for one in cluster.of("Service", namespace(pod)) if name(one) == "vllm" and links]
    there = any(text(one, "spec", "clusterIP") != "None" for one in called)
    silent = there and next((one for one in containers(pod) if _ends_silently(one)), None)
    if said or silent:
        yield Seen(
            title=f"{label(pod)} ends: VLLM_PORT is the address of a Service, not a port",
            evidence="; ".join(
                (
                    *((said,) if said else ("exit 1 without a word",)),
                    *((f"service {namespace(pod)}/vllm is in the namespace",) if called else ()),
                )
            ),
            why="Layer: kubelet. For each Service of the namespace it sets NAME_PORT=tcp://…; one called vllm makes "
            "the variable that vLLM reads as its own.",
            fix=(
                patch(cluster, pod, "leave these variables out", {"enableServiceLinks": False}),
                "or give the Service another name",
                *((logs(cluster, pod, silent.name, "its last words would say so too"),) if silent else ()),
            ),
        )


def _ends_silently(one: Container) -> bool:
    """A vLLM that ended by an error of its own and left no words; with a port of its own it is not this."""
    code = number(one.ended, "exitCode", default=0)
    own = "vllm" in one.image and not _BESIDE_ENGINES.search(one.image) and one.env("VLLM_PORT") is None
    return own and code == 1 and bool(one.restarts) and not one.ready and not one.last_words.strip()


@cluster_rule("KX319", title="variables of Services are reported as unknown by vLLM, which harms nothing",
              source="https://github.com/defilantech/LLMKube/issues/358", severity=Severity.INFO)  # fmt: skip
def harmless_links(cluster: Cluster, pod: Object) -> Iterator[Said]:
    for one, match in said_last(pod, _LINKS):
        yield Seen(
            title=f"{label(pod)}: vLLM warns of {match['name']}; these are warnings only, not the cause of a failure",
            evidence=line(one, match),
            why="Layer: kubelet. Services called vllm… put NAME_SERVICE_HOST and the like into every pod of the "
            "namespace, and vLLM names each variable of its prefix that it does not know.",
            fix=(patch(cluster, pod, "to be rid of them", {"enableServiceLinks": False}),),
        )
        return


@cluster_rule(
    "KX307",
    title="the user id of the pod has no passwd entry in the image",
    source="https://github.com/llm-d/llm-d-benchmark/issues/1573",
)
def no_passwd(cluster: Cluster, pod: Object) -> Iterator[Said]:
    for one, match in said_last(pod, _UID):
        user = at(one.spec, "securityContext", "runAsUser") or at(pod, "spec", "securityContext", "runAsUser")
        scc = text(pod, "metadata", "annotations", "openshift.io/scc")
        by = (
            f"the SCC {scc} chose it" if scc else f"runAsUser {user}" if user is not None else "no runAsUser in the pod"
        )
        yield Seen(
            title=f"{label(pod)} ends: uid {match['uid']} has no passwd entry in this image",
            evidence=f"{line(one, match)}; {by}; USER {'is set' if one.env('USER') else 'is not set'}; image "
            f"{one.image}",
            why="Layer: image. torch asks for the name of the user at import. A number that /etc/passwd of the image "
            "does not have has none, unless the environment names one.",
            fix=(
                patch_container(cluster, pod, one.name, "name a user in the environment",
                                {"env": [{"name": "USER", "value": "vllm"}, {"name": "HOME", "value": _HOME_FOR_ALL}]}),
                ("or run as the user that the image has: vllm/vllm-openai ships vllm=2000 since April 2026 (runAsUser: "
                "2000)"),
            ),
        )  # fmt: skip
        return


@cluster_rule(
    "KX308", title="the home folder is / and not writable", source="https://github.com/vllm-project/vllm/issues/20127"
)
def no_home(cluster: Cluster, pod: Object) -> Iterator[Said]:
    for one, match in said_last(pod, _HOME):
        yield Seen(
            title=f"{label(pod)} ends: it may not write {match['path']}, for its home is /",
            evidence=f"{line(one, match)}; HOME {one.env('HOME') or 'is not set'}",
            why="Layer: image. A user without an entry in the image's passwd gets / as its home, and caches go below "
            "it.",
            fix=(
                patch_container(cluster, pod, one.name, "give it a home that it may write, best on a volume",
                                {"env": [{"name": "HOME", "value": _HOME_FOR_ALL}]}),
                "or run as the user that the image has (vllm/vllm-openai: runAsUser: 2000)",
            ),
        )  # fmt: skip
        return


@cluster_rule(
    "KX309",
    title="a pod on a node with cards sees none inside",
    source="https://github.com/llm-d/llm-d-deployer/issues/273",
    after=("KX504", "KX508", "KX509"),
)
def no_card_inside(cluster: Cluster, pod: Object) -> Iterator[Said]:
    for one, match in said_last(pod, _NO_CARD):
        claims = [text(each, "name") for each in rows(one.spec, "resources", "claims")]
        asks = [*(resource for resource in asked_by(one.spec) if is_card(resource)), *claims]
        klass = text(pod, "spec", "runtimeClassName")
        known = [name(each) for each in cluster.of("RuntimeClass")]
        if not asks:
            yield Seen(
                title=f"{label(pod)}: container {one.name} asks for no card, so it has none inside",
                evidence=f"{line(one, match)}; resources.limits without a card",
                why="Layer: pod. Only a resource or a claim of the container lets a card in; being on a node with "
                "cards does not.",
                fix=(
                    patch_container(
                        cluster, pod, one.name, "ask for one", {"resources": {"limits": {"nvidia.com/gpu": 1}}}
                    ),
                ),
            )
            return
        missing = "nvidia" in known and not klass
        yield Seen(
            title=f"{label(pod)} was given {asks[0]} on {text(pod, 'spec', 'nodeName')}, and sees no card inside",
            evidence=f"{line(one, match)}; runtimeClassName {klass or 'none'}; RuntimeClasses: "
            f"{', '.join(known) or 'none'}",
            why="Layer: container runtime. The card was granted, but the driver's libraries were not put in: the "
            "container was "
            + (
                "started by the default runtime, not by NVIDIA's."
                if missing
                else "not started by the vendor's runtime."
            ),
            fix=(
                (patch(cluster, pod, "start it by NVIDIA's runtime", {"runtimeClassName": "nvidia"}),)
                if missing
                else (
                    (
                        "on the node, make NVIDIA's runtime the default, or turn CDI on:\n"
                        "sudo nvidia-ctk runtime configure --runtime=containerd --set-as-default\nsudo systemctl "
                        "restart containerd"
                    ),
                )
            ),
            run_on=RunOn.HERE if missing else RunOn.CLUSTER_ADMIN,
        )
        return


@cluster_rule("KX310", title="the image has no Ray", source="https://github.com/getainode/ainode/issues/84")
def no_ray(cluster: Cluster, pod: Object) -> Iterator[Said]:
    for one, match in said_last(pod, _RAY):
        yield Seen(
            title=f"{label(pod)} ends: the engine image lacks ray",
            evidence=f"{line(one, match)}; exit {number(one.ended, 'exitCode')}; image {one.image}",
            why="Layer: image. Current engine images come without Ray, and the command starts a Ray cluster.",
            fix=(
                (
                    "spread without Ray: --distributed-executor-backend=mp --nnodes=N --node-rank=R "
                    "--master-addr=LEADER, and --headless on every rank but the first"
                ),
                logs(cluster, pod, one.name, "see the command's own output"),
            ),
        )
        return


@cluster_rule(
    "KX320",
    title="a program of the image may not be run by this user",
    source="https://github.com/vllm-project/vllm/issues/15302",
)
def not_for_user(_: Cluster, pod: Object) -> Iterator[Said]:
    for one, match in said_last(pod, _NOT_ALLOWED):
        user = at(one.spec, "securityContext", "runAsUser") or at(pod, "spec", "securityContext", "runAsUser")
        yield Seen(
            title=f"{label(pod)} ends: uid {user if user is not None else 'of the pod'} may not run "
            f"{match['program'] or match['exec'] or 'its interpreter'} of {one.image}",
            evidence=line(one, match),
            why="Layer: image. Its programs lie in a folder of root's: known bad image range for non-root are vLLM "
            "0.8.x, whose Python lies below /root.",
            fix=(
                (
                    "take an image that serves as its own user (vllm/vllm-openai has vllm=2000 since April 2026: "
                    "runAsUser: 2000)"
                ),
                "or run this one as root, in a namespace that allows it",
            ),
        )
        return


@cluster_rule("KX316", title="the command is not in the image", source=LIFE, after=("KX310",))
def no_program(_: Cluster, pod: Object) -> Iterator[Said]:
    for one, match in said_last(pod, _NO_PROGRAM):
        program = match["program"] or match["path"] or match["shell"]
        yield Seen(
            title=f"{label(pod)}: {one.image} has no program {program}",
            evidence=line(one, match),
            why="Layer: container. `command` replaces the image's entry point, and is no shell line: a whole line as "
            "one word is looked for as a program's name."
            if " " not in program
            else "Layer: container. The whole line was given as one word; `command` is a list of words.",
            fix=('write it as a list, with a program that the image has: command: ["vllm", "serve"]',),
        )
        return


def _is_engine(image: str) -> bool:
    """An engine's image for NVIDIA; operators and routers need no card."""
    return vendor_of(image) is Vendor.NVIDIA and bool(_ENGINE.search(image)) and not _BESIDE_ENGINES.search(image)


@cluster_rule(
    "KX516",
    title="an engine on a node with cards has none of its own",
    source="https://github.com/vllm-project/production-stack/issues/1047",
    severity=Severity.WARNING,
    after=("KX309",),
    mute=True,
)
def no_card_of_its_own(cluster: Cluster, pod: Object) -> Iterator[Said]:
    """An image of NVIDIA's shows every card of the node to a container that was given none."""
    one, node = engine(pod), cluster.node_of(pod)
    if one is None or node is None or ended(pod) or asked_cards(pod) or not _is_engine(one.image):
        return
    offered = [resource for resource, count in allocatable(node).items() if is_card(resource) and count]
    hidden = one.env("NVIDIA_VISIBLE_DEVICES") in ("void", "none", "")
    if not offered or hidden or rows(one.spec, "resources", "claims"):
        return
    yield Seen(
        title=f"{label(pod)}: container {one.name} has no card in resources.limits, on a node that has {offered[0]}",
        evidence=f"image {one.image}; resources {dict(part(one.spec, 'resources')) or 'none'}",
        why="Layer: pod. The scheduler gave it none. Where NVIDIA's runtime is the default, the image still sees "
        "every card of the node and takes the first: two such pods share it, and the second finds its memory taken.",
        fix=(
            patch_container(cluster, pod, one.name, "ask for one; parts of a card are no number that a chart can round "
                            "down to 0", {"resources": {"limits": {offered[0]: 1}}}),
        ),
    )  # fmt: skip
