"""Probes that end an engine which only loads, ask what it has not, or do not wait for a busy one."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from selfhost.doctor.cluster.mend import patch_container
from selfhost.doctor.cluster.pod import Container, containers, ended
from selfhost.doctor.cluster.rule import Said, Seen, cluster_rule
from selfhost.doctor.cluster.rules.mounts import cache_volume
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import Object, cut, label, number, part, text, words

PROBES: Final = "https://kubernetes.io/docs/concepts/workloads/pods/probes/"
_FAILED: Final = re.compile(r"(?P<kind>Startup|Liveness|Readiness) probe (?:failed|errored)")
_KILLED: Final = re.compile(r"failed (?P<kind>startup|liveness) probe, will be restarted")
_REFUSED: Final = re.compile(r"connection refused|dial tcp|connect: |EOF|statuscode: 503")
_LATE: Final = re.compile(r"context deadline exceeded|Client\.Timeout|timed out|i/o timeout|command .* timed out")
_STATUS: Final = re.compile(r"statuscode: (?P<code>\d{3})")
_PARAMETERS: Final = re.compile(r"(?<![\w.])(?P<count>\d+(?:\.\d+)?)[Bb](?![A-Za-z])")
_ENGINES: Final = re.compile(r"vllm|sglang|text-generation-inference|tgi|lmdeploy|tensorrt|triton", re.IGNORECASE)
_NEARER: Final = ("KX303", "KX305", "KX306", "KX307", "KX308", "KX309", "KX310", "KX311", "KX316", "KX320", "EF")
"""Why it never opened its port, where that is known."""
_DOWNLOAD_BYTES_S: Final = 50e6
_READ_BYTES_S: Final = 500e6
_COMPILE_S: Final = 180
"""Kernels and graphs, after the weights are there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """One probe that failed, with the newest words."""

    kind: str
    container: Container
    message: str
    count: int
    killed: bool

    @property
    def spec(self) -> Object:
        return part(self.container.spec, f"{self.kind.lower()}Probe")

    @property
    def path(self) -> str:
        return text(self.spec, "httpGet", "path")


def failed(cluster: Cluster, pod: Object) -> tuple[Failed, ...]:
    return cluster.once(("probes", label(pod)), lambda: tuple(_failed(cluster, pod)))


def _failed(cluster: Cluster, pod: Object) -> Iterator[Failed]:
    if ended(pod):
        return
    own = [one for one in containers(pod) if not one.init]
    events = cluster.events(pod)
    for kind in ("Startup", "Liveness", "Readiness"):
        for one in own:
            mine = [
                event
                for event in events
                if event.container in ("", one.name)
                and (match := _FAILED.search(event.message))
                and match["kind"] == kind
            ]
            kills = [
                event
                for event in events
                if (match := _KILLED.search(event.message))
                and match["kind"] == kind.lower()
                and (len(own) == 1 or one.name in event.message)
            ]
            if part(one.spec, f"{kind.lower()}Probe") and (mine or kills):
                newest = (mine or kills)[0]
                yield Failed(
                    kind=kind,
                    container=one,
                    message=newest.message,
                    count=sum(event.count for event in mine),
                    killed=bool(kills) or one.restarts > 0,
                )


def seconds(probe: Object) -> int:
    """From the start of the container to the kill."""
    period, times = number(probe, "periodSeconds", default=10), number(probe, "failureThreshold", default=3)
    return number(probe, "initialDelaySeconds") + period * times


def expected_load(pod: Object, one: Container) -> tuple[int, str]:
    """At least so many seconds, and by what: the model's size as its name tells it."""
    said = " ".join(
        (*words(one.spec, "command"), *words(one.spec, "args"), one.env("MODEL") or "", one.env("MODEL_ID") or "")
    )
    model = next((word for word in said.split() if "/" in word and _PARAMETERS.search(word)), "")
    match = _PARAMETERS.search(model)
    if match is None:
        return _COMPILE_S, "kernels and graphs alone; the model's size is unknown"
    per = (
        0.55
        if re.search(r"awq|gptq|int4|w4a16|4bit|mxfp4|nvfp4", said, re.IGNORECASE)
        else 1
        if re.search(r"fp8|int8|w8a8", said, re.IGNORECASE)
        else 2
    )
    weights = float(match["count"]) * 1e9 * per
    load = weights / _READ_BYTES_S + _COMPILE_S
    if cache_volume(one, pod):
        return math.ceil(load), f"{weights / 1e9:.0f} GB of weights read at 500 MB/s, then {_COMPILE_S} s of compiling"
    return math.ceil(
        load + weights / _DOWNLOAD_BYTES_S
    ), f"{weights / 1e9:.0f} GB fetched at 50 MB/s and read, then {_COMPILE_S} s of compiling"


def budget_for(expected: int) -> int:
    """Three times what is expected, from ten minutes to three hours."""
    return min(10800, max(600, 3 * expected))


def _startup(budget: int, probe: Object) -> dict[str, object]:
    kept = {key: probe[key] for key in ("httpGet", "tcpSocket", "exec", "grpc") if key in probe} or {
        "httpGet": {"path": "/health", "port": 8000}
    }
    return {**kept, "periodSeconds": 10, "failureThreshold": math.ceil(budget / 10), "timeoutSeconds": 5}


@cluster_rule(
    "KX301",
    title="the startup budget is shorter than the load",
    source="https://github.com/vllm-project/aibrix/issues/1054",
    after=_NEARER,
)
def too_short(cluster: Cluster, pod: Object) -> Iterator[Said]:
    for one in failed(cluster, pod):
        if (
            one.kind != "Startup"
            or not one.killed
            or (_STATUS.search(one.message) and not _REFUSED.search(one.message))
        ):
            continue
        budget, (load, by) = seconds(one.spec), expected_load(pod, one.container)
        where = cache_volume(one.container, pod)
        again = (
            ""
            if where
            else " Nothing that was downloaded outlives a restart: no volume holds the cache, so each try downloads "
            "again."
        )
        yield Seen(
            title=f"{label(pod)}: startup budget {budget} s, expected load >= {load} s",
            evidence=f"{cut(one.message, 200)}; {one.container.restarts} restarts; startupProbe "
            f"{number(one.spec, 'periodSeconds', default=10)} s x {number(one.spec, 'failureThreshold', default=3)}",
            why="Layer: kubelet. It ends a container that is not up within the budget, and the next one begins anew. "
            f"{by}.{again}",
            fix=(
                patch_container(
                    cluster,
                    pod,
                    one.container.name,
                    f"give it {budget_for(load)} s",
                    {"startupProbe": _startup(budget_for(load), one.spec)},
                ),
                *(
                    ()
                    if where
                    else ("put the cache on a volume: a PersistentVolumeClaim, with HF_HOME below its mount",)
                ),
            ),
        )


@cluster_rule(
    "KX302",
    title="the liveness probe ends an engine that still loads",
    source="https://docs.vllm.ai/en/latest/deployment/k8s/",
    after=_NEARER,
)
def killed_loading(cluster: Cluster, pod: Object) -> Iterator[Said]:
    for one in failed(cluster, pod):
        if (
            one.kind != "Liveness"
            or not one.killed
            or part(one.container.spec, "startupProbe")
            or not _REFUSED.search(one.message)
        ):
            continue
        budget, (load, by) = seconds(one.spec), expected_load(pod, one.container)
        interrupted = (
            "; its last words: KeyboardInterrupt: terminated" if "KeyboardInterrupt" in one.container.last_words else ""
        )
        yield Seen(
            title=f"{label(pod)}: the liveness probe ends it after {budget} s, while it loads (expected >= {load} s)",
            evidence=f"{cut(one.message, 200)}; {one.container.restarts} restarts; no startupProbe{interrupted}",
            why="Layer: kubelet. Without a startupProbe liveness counts from the start, and an engine opens its port "
            f"only when the model is loaded. {by}.",
            fix=(
                patch_container(
                    cluster,
                    pod,
                    one.container.name,
                    "let a startupProbe wait for the load",
                    {"startupProbe": _startup(budget_for(load), one.spec)},
                ),
            ),
        )


@cluster_rule(
    "KX303",
    title="a probe asks for a path that the server does not have",
    source="https://github.com/llm-d/llm-d-inference-sim/issues/45",
)
def not_found(cluster: Cluster, pod: Object) -> Iterator[Said]:
    for one in failed(cluster, pod):
        match = _STATUS.search(one.message)
        if match is None or match["code"] not in ("404", "405", "410"):
            continue
        yield Seen(
            title=f"{label(pod)}: the {one.kind.lower()} probe asks for {one.path or 'a path'}, and the server "
            f"answers {match['code']}",
            evidence=f"{cut(one.message, 200)}; {one.container.restarts} restarts; image {one.container.image}",
            why=f"Layer: probe. {match['code']} is not slowness: the server is up and the path does not exist on it. "
            + ("Every restart ends the same way." if one.kind != "Readiness" else "The pod never gets traffic."),
            fix=(
                (
                    "ask for a path of this server: /health (vLLM, SGLang, TGI), /v1/health/ready (NIM), "
                    "/health/ready (Triton: /v2/health/ready):\n"
                    f"{cluster.in_(pod)} get pod {text(pod, 'metadata', 'name')} -o "
                    f"jsonpath='{{.spec.containers[*].{one.kind.lower()}Probe}}'"
                ),
            ),
        )


@cluster_rule(
    "KX305",
    title="a probe is refused for want of a key",
    source="https://docs.vllm.ai/en/latest/serving/openai_compatible_server/",
)
def locked(cluster: Cluster, pod: Object) -> Iterator[Said]:
    for one in failed(cluster, pod):
        match = _STATUS.search(one.message)
        port = part(one.spec, "httpGet").get("port", "http")
        if match is not None and match["code"] in ("401", "403"):
            yield Seen(
                title=f"{label(pod)}: the {one.kind.lower()} probe of {one.path} is answered {match['code']}",
                evidence=cut(one.message, 200),
                why="Layer: probe. The engine has an API key and guards /v1; the kubelet brings none. The engine "
                "itself is well.",
                fix=(
                    patch_container(
                        cluster, pod, one.container.name, "probe /health, which needs no key",
                        {f"{one.kind.lower()}Probe": {"httpGet": {"path": "/health", "port": port}}},
                    ),
                ),
            )  # fmt: skip


@cluster_rule(
    "KX304", title="a probe does not wait for a busy engine", source="https://github.com/gonka-ai/gonka/issues/1421"
)
def impatient(cluster: Cluster, pod: Object) -> Iterator[Said]:
    for one in failed(cluster, pod):
        timeout = number(one.spec, "timeoutSeconds", default=1)
        late = _LATE.search(one.message) is not None and not re.search(r"dial tcp", one.message)
        if not late or timeout >= 5 or one.kind == "Startup":
            continue
        ends = one.kind == "Liveness" and one.killed
        misses = 8 if one.kind == "Liveness" else 3
        yield Seen(
            title=f"{label(pod)}: the {one.kind.lower()} probe waits {timeout} s for a batch engine"
            + (" and restarts it" if ends else ""),
            evidence=f"{cut(one.message, 200)} (seen {one.count} times); timeoutSeconds "
            f"{timeout}{'' if 'timeoutSeconds' in one.spec else ' (the default)'}, failureThreshold "
            f"{number(one.spec, 'failureThreshold', default=3)}",
            why="Layer: probe. A probe timeout of 1-2 s on a batch engine is missed when it is saturated: it is "
            "busy, not dead.",
            fix=(
                patch_container(
                    cluster, pod, one.container.name, "wait longer, and for more misses",
                    {f"{one.kind.lower()}Probe": {"timeoutSeconds": 10, "failureThreshold": misses}},
                ),
            ),
        )  # fmt: skip
