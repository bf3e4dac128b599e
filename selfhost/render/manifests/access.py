"""Who reaches the engine, and by which way: account, Service, Ingress, HTTPRoute. As the chart's files."""

from collections.abc import Iterator

from selfhost.render.manifests.around import Object, Release

_PATHS = (("/v1", "Prefix"), ("/health", "Exact"))
"""Metrics and the engine's other paths stay inside."""


def account(release: Release) -> Iterator[Object]:
    found = release.values["serviceAccount"]
    if found["create"]:
        yield {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": release.metadata("engine", release.account, annotations=found["annotations"]),
            "automountServiceAccountToken": False,
        }


def service(release: Release) -> Object:
    found = release.values["service"]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": release.metadata("engine", release.full, annotations=found["annotations"]),
        "spec": {
            "type": found["type"],
            "selector": release.component("engine"),
            "ports": [{"name": "http", "port": int(found["port"]), "targetPort": "http", "protocol": "TCP"}],
        },
    }


def ingress(release: Release) -> Iterator[Object]:
    found = release.values["ingress"]
    if not found["enabled"]:
        return
    wait = str(int(found["readTimeoutSeconds"]))
    nginx = "nginx.ingress.kubernetes.io/proxy"
    known = {
        "nginx": {
            f"{nginx}-buffering": "off", f"{nginx}-read-timeout": wait, f"{nginx}-send-timeout": wait,
            f"{nginx}-body-size": "64m",
        },
        "traefik": {"traefik.ingress.kubernetes.io/router.entrypoints": "websecure"},
    }  # fmt: skip
    annotations = {**known.get(found["controller"], {}), **found["annotations"]}
    backend = {"service": {"name": release.full, "port": {"name": "http"}}}
    paths = [{"path": path, "pathType": kind, "backend": backend} for path, kind in _PATHS]
    yield {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": release.metadata("engine", release.full, annotations=annotations),
        "spec": {
            **({"ingressClassName": found["className"]} if found["className"] else {}),
            "tls": [{"hosts": [found["host"]], "secretName": found["tlsSecret"]}],
            "rules": [{"host": found["host"], "http": {"paths": paths}}],
        },
    }


def route(release: Release) -> Iterator[Object]:
    found = release.values["httpRoute"]
    if not found["enabled"]:
        return
    wait = f"{int(found['readTimeoutSeconds'])}s"
    kinds = {"Prefix": "PathPrefix", "Exact": "Exact"}
    rule = {
        "matches": [{"path": {"type": kinds[kind], "value": path}} for path, kind in _PATHS],
        "timeouts": {"request": wait, "backendRequest": wait},
        "backendRefs": [{"name": release.full, "port": int(release.values["service"]["port"])}],
    }
    yield {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": release.metadata("engine", release.full),
        "spec": {
            "parentRefs": found["parentRefs"],
            **({"hostnames": found["hostnames"]} if found["hostnames"] else {}),
            "rules": [rule],
        },
    }
