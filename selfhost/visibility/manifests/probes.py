"""Probes of an engine: a path and a port that answer, without a key, and long enough for a busy engine."""

from collections.abc import Iterator
from typing import Final

from selfhost.core.tree import Tree
from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host
from selfhost.visibility.manifests.groups import is_worker
from selfhost.visibility.objects import Container, Manifests, Pod
from selfhost.visibility.rule import Found, manifest_rule

PROBES = "https://kubernetes.io/docs/tasks/configure-pod-container/configure-liveness-readiness-startup-probes/"
BUSY = "https://github.com/gonka-ai/gonka/issues/1421"
PATHS = "https://github.com/llm-d/llm-d-inference-sim/issues/45"
KEYED = "https://docs.vllm.ai/en/latest/usage/security/"
DELAYS = "https://github.com/vllm-project/aibrix/issues/1054"
KEYS: Final = ("startupProbe", "livenessProbe", "readinessProbe")
_ANSWERS: Final = {
    "vllm": (
        "/health", "/ping", "/version", "/load", "/metrics", "/v1/models", "/docs", "/redoc", "/openapi.json",
        "/is_sleeping", "/is_paused", "/server_info", "/tokenizer_info", "/is_scaling_elastic_ep", "/get_world_size",
    ),
    "sglang": (
        "/health", "/health_generate", "/ping", "/metrics", "/v1/models", "/get_model_info", "/model_info",
        "/get_server_info", "/server_info", "/get_load", "/docs", "/redoc", "/openapi.json",
        "/v1/loads", "/engine_metrics",
    ),
}  # fmt: skip
_COMMON_ELSEWHERE: Final = (
    "/", "/healthz", "/livez", "/readyz", "/live", "/ready", "/liveness", "/readiness", "/status", "/health/live",
    "/health/ready", "/health/liveness", "/health/readiness", "/health/liveliness", "/api/health", "/v1/health",
    "/v1/health/ready", "/v1/health/live", "/v2/health/ready", "/v2/health/live", "/-/healthy", "/-/ready",
    "/actuator/health", "/api/tags", "/api/version", "/info", "/alive", "/up", "/heartbeat", "/healthcheck", "/ping/",
)  # fmt: skip
"""Of other servers, among them Triton, NIM, Ollama, text-generation-inference and Spring."""
_PORT: Final = {"vllm": "8000", "sglang": "30000"}
FEW_S: Final = 2
ENOUGH: Final = "timeoutSeconds: 10\nperiodSeconds: 15\nfailureThreshold: 8"


def probes(container: Container) -> Iterator[tuple[str, Tree]]:
    for key in KEYS:
        probe = container.tree.at(key)
        if probe is not None and probe.map is not None:
            yield key, probe


def number(probe: Tree, key: str, unsaid: int) -> int:
    value = probe.at(key)
    scalar = value.scalar if value is not None and not value.is_null else unsaid
    return int(scalar) if isinstance(scalar, int | float) else unsaid


def patience_s(probe: Tree) -> int:
    """From the container's start to the kill."""
    return number(probe, "initialDelaySeconds", 0) + number(probe, "periodSeconds", 10) * number(
        probe, "failureThreshold", 3
    )


@manifest_rule("KX353", Severity.ERROR, source=PROBES)
def success_must_be_one(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for _, container in manifests.containers:
        for key, probe in probes(container):
            value = probe.at("successThreshold")
            if key != "readinessProbe" and value is not None and number(probe, "successThreshold", 1) != 1:
                yield Found(
                    title=f"the {key} of {container.wrapped.label} wants to succeed {value.text} times",
                    place=container.place(value),
                    evidence=f"{key}.successThreshold: {value.text}",
                    why=f"The API server refuses it: `{key}.successThreshold: Invalid value: {value.text}: must be 1`.",
                    fix=("remove it; only a readinessProbe may count successes",),
                )


@manifest_rule("KX352", Severity.WARNING, source=BUSY)
def probe_is_impatient(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod, container in manifests.engines:
        if is_worker(pod, container):
            continue
        for key, probe in probes(container):
            timeout, misses = number(probe, "timeoutSeconds", 1), number(probe, "failureThreshold", 3)
            if key == "startupProbe" or (timeout > FEW_S and (misses > 1 or key != "livenessProbe")):
                continue
            said = probe.at("timeoutSeconds")
            short = f"probe timeout {timeout} s" + ("" if said is not None else ", which is the default,")
            yield Found(
                title=f"the {key} of {container.wrapped.label} gives up on a busy engine",
                place=container.place(said or probe),
                evidence=f"{short} on a batch engine · failureThreshold {misses}",
                why="An engine that is saturated answers /health late, and is healthy. "
                + (
                    "The kubelet restarts it, all requests are lost, and the model is loaded again."
                    if key == "livenessProbe"
                    else "The pod leaves the Service at the worst moment, and the others get its load."
                ),
                fix=(f"give it time (the order of two minutes before a kill):\n{ENOUGH}",),
                severity=None if key == "livenessProbe" else Severity.INFO,
            )


@manifest_rule("KX354", Severity.ERROR, source=PATHS)
def path_does_not_exist(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod, container in manifests.engines:
        for key, probe in probes(container):
            path = probe.at("httpGet", "path")
            text = path.text.partition("?")[0] if path is not None else "/"
            get = probe.at("httpGet")
            if get is None or is_worker(pod, container) or not _is_engines(pod, container, get) or "$" in text:
                continue
            known = _ANSWERS[container.engine]
            root = container.flag("--root-path", "--fastapi-root-path")
            if text in known or root:
                continue
            other = text in _COMMON_ELSEWHERE or any(text in paths for paths in _ANSWERS.values())
            if not other and text.startswith("/v1/"):
                why = "It answers POST only, so a probe gets 405."
            else:
                why = "The answer is 404, from the first probe on and for ever."
            yield Found(
                title=f"{container.engine} has no {text} for the {key} to ask",
                place=container.place(path or get),
                evidence=f"{key}: GET {text} · {container.engine} answers {', '.join(known[:4])}",
                why=f"{why} 404 is not slowness: the path does not exist, so no time-out or threshold helps. "
                + ("The container is restarted endlessly." if key != "readinessProbe" else "The pod is never Ready."),
                fix=("ask the engine's own path:\npath: /health",),
                severity=None if other else Severity.WARNING,
            )


def _is_engines(pod: Pod, container: Container, get: Tree) -> bool:
    """Whether the probe's port is the engine's own, not that of a sidecar."""
    text = get.said("port")
    mine = {port for name, port in ports(container.tree) if text in (name, port)}
    others = {
        one for each in pod.containers if each is not container for pair in ports(each.tree) for one in pair if one
    }
    port = engine_port(container)
    return text == port or port in mine or (text not in others and not mine)


def ports(container: Tree) -> list[tuple[str, str]]:
    """Name and number of each containerPort."""
    listed = container.at("ports")
    return [(one.said("name"), one.said("containerPort")) for one in listed.elements()] if listed is not None else []


def engine_port(container: Container) -> str:
    """The port that the engine opens; empty where only the run knows it."""
    named = container.flag("--port", "-p")
    if named is not None:
        return named if named.isdecimal() else ""
    return "" if not container.whole or container.flag("--config") else _PORT.get(container.engine, "")


@manifest_rule("KX355", Severity.ERROR, source=PROBES)
def port_is_not_there(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod, container in manifests.containers:
        for key, probe in probes(container):
            for way in ("httpGet", "tcpSocket"):
                port = probe.at(way, "port")
                text = port.text if port is not None else ""
                if port is None or not text or "$" in text or "{{" in text:
                    continue
                own = ports(container.tree)
                if not text.isdecimal() and text not in [name for name, _ in own]:
                    said, right = f"no port of the container is called {text}", f"- name: {text}\n  containerPort: 8000"
                elif wrong := _other_port(pod, container, text, own):
                    said, right = f"the engine listens on {wrong}", f"port: {wrong}"
                else:
                    continue
                yield Found(
                    title=f"the {key} of {container.wrapped.label} asks at port {text}, where nothing answers",
                    place=container.place(port),
                    evidence=f"{key}.{way}.port: {text} · {said}",
                    why="Nothing listens there: every probe fails"
                    + (
                        ", and the container is killed again and again."
                        if key != "readinessProbe"
                        else ", and the pod is never Ready."
                    ),
                    fix=(f"ask where the engine listens:\n{right}",),
                )


def _other_port(pod: Pod, container: Container, text: str, own: list[tuple[str, str]]) -> str:
    """The engine's port, when the probe goes to another that no other container has."""
    if not container.engine or is_worker(pod, container):
        return ""
    port = engine_port(container)
    asked = next((number for name, number in own if name == text), text)
    others = {number for each in pod.containers if each is not container for _, number in ports(each.tree)}
    plain = asked.isdecimal() and container.flag("--port", "-p") is not None
    return port if plain and port and asked != port and asked not in others else ""


@manifest_rule("KX356", Severity.ERROR, source=KEYED)
def probe_needs_the_key(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for _, container in manifests.engines:
        key_by = _key_by(container)
        for key, probe in probes(container):
            path, get = probe.said("httpGet", "path"), probe.at("httpGet")
            guarded = path.startswith("/v1") or (
                container.engine == "sglang" and path not in ("/health", "/health_generate", "/metrics", "/ping")
            )
            headers = get.at("httpHeaders") if get is not None else None
            sent = [one.said("name").lower() for one in headers.elements()] if headers is not None else []
            if get is None or not key_by or not guarded or "authorization" in sent:
                continue
            yield Found(
                title=f"the {key} of {container.wrapped.label} asks {path}, which wants the API key",
                place=container.place(get.at("path") or get),
                evidence=f"{key}: GET {path} · {key_by} is set",
                why="With a key, everything below /v1 answers 401 to whoever has none, a probe too: "
                + ("the container is restarted endlessly." if key != "readinessProbe" else "the pod is never Ready."),
                fix=("ask a path that needs no key:\npath: /health",),
            )


def _key_by(container: Container) -> str:
    if container.flag("--api-key") is not None:
        return "--api-key"
    env = {**container.workload.env_sources, **container.workload.env}
    return "VLLM_API_KEY" if container.engine == "vllm" and "VLLM_API_KEY" in env else ""


@manifest_rule("KX357", Severity.INFO, source=DELAYS)
def delay_instead_of_startup(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for _, container in manifests.engines:
        for key, probe in probes(container):
            value = probe.at("initialDelaySeconds")
            if value is not None and number(probe, "initialDelaySeconds", 0) >= 30:
                yield Found(
                    title=f"the {key} of {container.wrapped.label} waits a fixed time first",
                    place=container.place(value),
                    evidence=f"{key}.initialDelaySeconds: {value.text}",
                    why="It is too long for a small model and too short for a large one. A startupProbe ends as "
                    "soon as the model is loaded, and holds the others back until then.",
                    fix=(("let a startupProbe do it:\nstartupProbe:\n  httpGet: {path: /health, port: 8000}\n"
                         "  periodSeconds: 10\n  failureThreshold: 180\n  timeoutSeconds: 5"),),
                )  # fmt: skip
