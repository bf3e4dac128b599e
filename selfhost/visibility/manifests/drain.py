"""The end of a pod: time enough, and a signal that reaches the engine."""

import re
from collections.abc import Iterator
from typing import Final

from selfhost.core.tree import Tree
from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host
from selfhost.visibility.objects import Container, Manifests, Pod
from selfhost.visibility.rule import Found, manifest_rule

HOOKS = "https://kubernetes.io/docs/concepts/containers/container-lifecycle-hooks/"
DRAIN = "https://github.com/vllm-project/vllm/pull/43208"
SIGNALS = "https://github.com/vllm-project/vllm/blob/main/docs/deployment/k8s.md"
GRACE_S: Final = 30
_PLAIN_SHELLS: Final = ("sh", "dash", "ash")
_SLEEP = re.compile(r"\bsleep\s+(\d+)\b")
_ENGINE_WORDS = re.compile(r"\b(?:vllm\s+serve|sglang\s+serve|(?:vllm|sglang)\.[\w.]*(?:api_server|launch_server))")
_EXEC = re.compile(r"(?:^|[\s;&|({])exec\s+(?:\S+=\S+\s+)*[^\n;&|]*\b(?:vllm|sglang|python3?)")


def whole(tree: Tree | None) -> int | None:
    scalar = tree.scalar if tree is not None else None
    return int(scalar) if isinstance(scalar, int) and not isinstance(scalar, bool) else None


def grace_s(pod: Pod) -> int:
    said = whole(pod.spec.at("terminationGracePeriodSeconds"))
    return GRACE_S if said is None else said


def pre_stop_s(container: Container) -> tuple[int, Tree] | None:
    """Seconds that the hook before SIGTERM takes, as far as it is a sleep."""
    hook = container.tree.at("lifecycle", "preStop")
    if hook is None:
        return None
    slept = whole(hook.at("sleep", "seconds"))
    if slept is not None:
        return slept, hook.at("sleep", "seconds") or hook
    command = hook.at("exec", "command")
    words = " ".join(element.text for element in command.elements()) if command is not None else ""
    found = _SLEEP.search(words)
    return (int(found[1]), command or hook) if found else None


@manifest_rule("KX360", Severity.ERROR, source=HOOKS)
def hook_outlasts_the_grace(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod, container in manifests.containers:
        hook = pre_stop_s(container)
        grace = grace_s(pod)
        if hook is None or 0 <= hook[0] < grace:
            continue
        refused = container.tree.at("lifecycle", "preStop", "sleep") is not None and hook[0] != grace
        unsaid = pod.spec.at("terminationGracePeriodSeconds") is None
        yield Found(
            title=f"the preStop hook of {container.wrapped.label} takes all of its grace period",
            place=container.place(hook[1]),
            evidence=f"preStop {hook[0]} s · terminationGracePeriodSeconds {grace}{' (the default)' if unsaid else ''}",
            why=(
                "The API server refuses it: `must be non-negative and less than terminationGracePeriodSeconds "
                f"({grace})`."
                if refused
                else "The hook's time counts into the grace period: SIGKILL comes while it still sleeps, and the "
                "engine never gets SIGTERM."
            ),
            fix=(f"give more than hook and drain together:\nterminationGracePeriodSeconds: {max(hook[0], 0) + 75}",),
            severity=None if refused else Severity.WARNING,
        )


@manifest_rule("KX361", Severity.WARNING, source=DRAIN)
def no_time_to_drain(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod, container in manifests.engines:
        text = container.flag("--shutdown-timeout") or ""
        hook, grace = pre_stop_s(container), grace_s(pod)
        if not text.isdecimal() or int(text) == 0 or (hook is not None and hook[0] >= grace):
            continue
        needed = int(text) + (hook[0] if hook else 0)
        if grace > needed:
            continue
        yield Found(
            title=f"{container.wrapped.label} is killed before it has answered what it was asked",
            place=pod.place(pod.spec.at("terminationGracePeriodSeconds")),
            evidence=f"preStop {hook[0] if hook else 0} s + --shutdown-timeout {text} s >= "
            f"terminationGracePeriodSeconds {grace}",
            why="The grace period begins with the hook. It must be longer than hook and shutdown time-out together, or "
            "SIGKILL ends the requests that the time-out waits for.",
            fix=(f"give it longer:\nterminationGracePeriodSeconds: {needed + 15}",),
        )


@manifest_rule("KX362", Severity.WARNING, source=SIGNALS)
def shell_keeps_the_signal(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    """A dash keeps a child even for a single command; a bash gives its place to the last one, if nothing follows."""
    del host
    for _, container in manifests.engines:
        shell = _shell(container)
        if shell is None:
            continue
        name, script = shell
        if _EXEC.search(script) or not _ENGINE_WORDS.search(script) or "trap " in script:
            continue
        if name not in _PLAIN_SHELLS and not _bash_stays(script):
            continue
        yield Found(
            title=f"SIGTERM never reaches the engine of {container.wrapped.label}",
            place=container.place(container.tree.at("command") or container.tree.at("args")),
            evidence=f"{name} -c … without exec: the shell is process 1",
            why="The kubelet signals process 1. A shell there ignores SIGTERM and passes nothing on: requests are "
            "cut off by SIGKILL at the end of the grace period, and the pod stays Terminating with its cards until "
            "then.",
            fix=("start it without a shell (command: [vllm, serve], args: […]), or put `exec` before it",),
        )


def _shell(container: Container) -> tuple[str, str] | None:
    """The shell that is process 1, and what it is told."""
    words = list(container.wrapped.argv)
    for at, word in enumerate(words[:3]):
        name = word.rpartition("/")[2]
        if name in (*_PLAIN_SHELLS, "bash") and at + 1 < len(words):
            rest = words[at + 1 :]
            flags = next((number for number, one in enumerate(rest) if re.fullmatch(r"-[a-z]*c", one)), None)
            return (name, rest[flags + 1]) if flags is not None and flags + 1 < len(rest) else None
        if name != "env":
            return None
    return None


def _bash_stays(script: str) -> bool:
    """Whether bash remains: the engine runs in a pipe, in the background, or something comes behind it."""
    found = list(_ENGINE_WORDS.finditer(script))
    behind = re.sub(r"\\\n", " ", script[found[-1].end() :])
    return re.search(r"(?<!\|)\|(?!\|)|(?<![&>])&(?!&)|;\s*\S|\n\s*\S|\|\|", behind.rstrip().rstrip(";")) is not None
