"""A small API server on loopback that speaks as much of Kubernetes as selfhost asks for, and fails as it is told.

Objects are kept with resource versions; server-side apply knows owners of fields and refuses with the real server's
words; watches stream, break off and expire; Deployments, Jobs and claims are looked after as their controllers would.
Pods are run by a `Kubelet` (tests/fakes/kubelet.py), or by nobody.
"""

import copy
import json
import threading
import time
import urllib.parse
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.fakes.kubelet import Kubelet, forward_websocket, now

Object = dict[str, Any]
TOKEN = "right-token"
_ALL = ["create", "delete", "get", "list", "patch", "update", "watch"]
KINDS: dict[str, list[tuple[str, str, bool]]] = {
    "v1": [
        ("Node", "nodes", False), ("Namespace", "namespaces", False), ("PersistentVolume", "persistentvolumes", False),
        ("Pod", "pods", True), ("Service", "services", True), ("Secret", "secrets", True),
        ("ConfigMap", "configmaps", True), ("ServiceAccount", "serviceaccounts", True), ("Event", "events", True),
        ("PersistentVolumeClaim", "persistentvolumeclaims", True), ("ResourceQuota", "resourcequotas", True),
        ("LimitRange", "limitranges", True),
    ],
    "apps/v1": [
        ("Deployment", "deployments", True), ("ReplicaSet", "replicasets", True), ("StatefulSet", "statefulsets", True),
    ],
    "batch/v1": [("Job", "jobs", True)],
    "networking.k8s.io/v1": [("NetworkPolicy", "networkpolicies", True), ("Ingress", "ingresses", True)],
    "policy/v1": [("PodDisruptionBudget", "poddisruptionbudgets", True)],
    "node.k8s.io/v1": [("RuntimeClass", "runtimeclasses", False)],
    "storage.k8s.io/v1": [("StorageClass", "storageclasses", False)],
    "scheduling.k8s.io/v1": [("PriorityClass", "priorityclasses", False)],
}  # fmt: skip


@dataclass
class Faults:
    """What goes wrong. Numbers count down."""

    forbidden: set[tuple[str, str]] = field(default_factory=set)
    """(verb, plural)"""
    answers: dict[tuple[str, str], tuple[int, Object]] = field(default_factory=dict)
    """(method, end of the path) to a status and a Status body."""
    drop_watches: int = 0
    expire_watches: int = 0
    slow_s: float = 0.0
    refuse_pods: str = ""
    """What the admission says to every pod."""
    unschedulable: str = ""
    """What the scheduler says of every pod."""


class Refused(Exception):
    def __init__(self, status: int, reason: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.status = status
        self.body = {
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message,
            "details": details, "code": status,
        }  # fmt: skip


class KubeApi:
    """The server. `requests` lists (method, path without query) as they came."""

    def __init__(self, *, node: str = "node-1", kubelet: Kubelet | None = None) -> None:
        self.objects: dict[str, Object] = {}
        self.history: list[tuple[int, str, str, Object]] = []
        self.version = 100
        self.floor = 0
        """Versions below are forgotten."""
        self.lock = threading.RLock()
        self.faults = Faults()
        self.requests: list[tuple[str, str]] = []
        self.watches: list[str] = []
        self.node = node
        self.kubelet = kubelet
        api = self

        class Handler(_Handler):
            server_api = api

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        for space in ("default", "models"):
            self.put(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}, "status": {"phase": "Active"}}
            )
        self.add_node(node)
        self.put(
            {
                "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "example.org/disk",
                "metadata": {
                    "name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
                },
            }
        )  # fmt: skip

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._server.closing = True
        self._server.shutdown()
        self._server.server_close()

    def kubeconfig(self, *, namespace: str = "models", token: str = TOKEN) -> str:
        tree = {
            "apiVersion": "v1", "kind": "Config", "current-context": "toy",
            "clusters": [{"name": "toy", "cluster": {"server": self.url}}],
            "users": [{"name": "me", "user": {"token": token}}],
            "contexts": [{"name": "toy", "context": {"cluster": "toy", "user": "me", "namespace": namespace}}],
        }  # fmt: skip
        return json.dumps(tree)

    def add_node(self, name: str, **more: str) -> None:
        amounts = {"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "200Gi", **more}
        self.put(
            {
                "apiVersion": "v1", "kind": "Node", "spec": {},
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64"}},
                "status": {
                    "capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}],
                    "nodeInfo": {"architecture": "amd64", "osImage": "Debian", "kernelVersion": "6.1"},
                },
            }
        )  # fmt: skip

    # ---- storage

    def path(self, one: Object) -> str:
        version, kind, meta = one["apiVersion"], one["kind"], one["metadata"]
        plural, spaced = next((plural, spaced) for name, plural, spaced in KINDS[version] if name == kind)
        base = f"/apis/{version}" if "/" in version else f"/api/{version}"
        return (
            f"{base}/namespaces/{meta['namespace']}/{plural}/{meta['name']}"
            if spaced
            else f"{base}/{plural}/{meta['name']}"
        )

    def put(self, one: Object) -> Object:
        """Store it as it is, and tell the watches."""
        with self.lock:
            path, new = self.path(one), copy.deepcopy(one)
            before = self.objects.get(path)
            self.version += 1
            meta = new["metadata"]
            meta.setdefault("uid", str(uuid.uuid4()))
            meta.setdefault("creationTimestamp", now())
            if before is not None and {**before, "metadata": 0} == {**new, "metadata": 0} and _same(before, new):
                return before
            meta["resourceVersion"] = str(self.version)
            if before is None or before.get("spec") != new.get("spec"):
                meta["generation"] = int((before or {}).get("metadata", {}).get("generation", 0)) + 1
            self.objects[path] = new
            self.history.append((self.version, path, "MODIFIED" if before else "ADDED", copy.deepcopy(new)))
            self._control(new)
            return new

    def drop(self, path: str) -> None:
        with self.lock:
            one = self.objects.pop(path, None)
            if one is None:
                return
            self.version += 1
            self.history.append((self.version, path, "DELETED", one))
            uid = one["metadata"]["uid"]
            for child in [p for p, each in self.objects.items() if _owner(each) == uid]:
                self.remove(child, {})
            if one["kind"] == "Pod":
                for top in [each for each in self.objects.values() if each["metadata"]["uid"] == _root(self, one)]:
                    self._deployment(top)

    def remove(self, path: str, options: Object) -> None:
        """As a client asks for it: a pod with a kubelet leaves first."""
        with self.lock:
            one = self.objects.get(path)
            if one is None:
                return
            if (
                one["kind"] == "Pod"
                and self.kubelet
                and options.get("gracePeriodSeconds") != 0
                and one["spec"].get("nodeName")
            ):
                grace = one["spec"].get("terminationGracePeriodSeconds", 30)
                going = {**one["metadata"], "deletionTimestamp": now(), "deletionGracePeriodSeconds": grace}
                self.put({**one, "metadata": going})
                return
            self.drop(path)

    def of(self, kind: str) -> list[Object]:
        with self.lock:
            return [copy.deepcopy(one) for one in self.objects.values() if one["kind"] == kind]

    # ---- controllers

    def _control(self, one: Object) -> None:
        if one["kind"] == "Deployment":
            self._deployment(one)
        elif one["kind"] == "Job" and not any(_owner(each) == one["metadata"]["uid"] for each in self.objects.values()):
            self._pod(one, one["spec"]["template"], f"{one['metadata']['name']}-{uuid.uuid4().hex[:5]}")
        elif one["kind"] == "Pod":
            for owner in [each for each in self.objects.values() if each["metadata"]["uid"] == _owner(one)]:
                if owner["kind"] == "Job":
                    self._job(owner, one)
                for top in [each for each in self.objects.values() if each["metadata"]["uid"] == _owner(owner)]:
                    self._deployment(top)
        elif one["kind"] == "PersistentVolumeClaim" and not one.get("status"):
            size = one["spec"]["resources"]["requests"]
            self.put({**one, "status": {"phase": "Bound", "capacity": size}})

    def _deployment(self, one: Object) -> None:
        meta, spec = one["metadata"], one["spec"]
        wanted = spec.get("replicas", 1)
        template = json.dumps(spec["template"], sort_keys=True)
        sets = [each for each in self.objects.values() if each["kind"] == "ReplicaSet" and _owner(each) == meta["uid"]]
        mine = next((each for each in sets if json.dumps(each["spec"]["template"], sort_keys=True) == template), None)
        if mine is None:
            name = f"{meta['name']}-{uuid.uuid4().hex[:8]}"
            for old in [
                path
                for path, each in self.objects.items()
                if each["kind"] == "Pod" and _root(self, each) == meta["uid"]
            ]:
                self.remove(old, {})
            mine = self.put(
                {
                    "apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": {"template": spec["template"]},
                    "metadata": {
                        "name": name, "namespace": meta["namespace"], "labels": spec["template"]["metadata"]["labels"],
                        "annotations": {"deployment.kubernetes.io/revision": str(len(sets) + 1)},
                        "ownerReferences": [{"kind": "Deployment", "name": meta["name"], "uid": meta["uid"]}],
                    },
                }
            )  # fmt: skip
        pods = [
            each for each in self.objects.values() if each["kind"] == "Pod" and _owner(each) == mine["metadata"]["uid"]
        ]
        pods = [each for each in pods if not each["metadata"].get("deletionTimestamp")]
        conditions: list[Object] = []
        if self.faults.refuse_pods and wanted and not pods:
            conditions.append(
                {
                    "type": "ReplicaFailure",
                    "status": "True",
                    "reason": "FailedCreate",
                    "message": self.faults.refuse_pods,
                }
            )
        elif len(pods) < wanted:
            pods.append(self._pod(mine, spec["template"], f"{mine['metadata']['name']}-{uuid.uuid4().hex[:5]}"))
        ready = sum(_is_ready(each) for each in pods)
        current = self.objects[self.path(one)]
        status = {
            "observedGeneration": current["metadata"]["generation"], "replicas": len(pods),
            "updatedReplicas": len(pods), "readyReplicas": ready, "conditions": conditions,
        }  # fmt: skip
        if current.get("status") != status:
            self.put({**current, "status": status})

    def _pod(self, owner: Object, template: Object, name: str) -> Object:
        meta = owner["metadata"]
        spec = copy.deepcopy(template["spec"])
        status: Object = {"phase": "Pending"}
        if self.faults.unschedulable:
            status["conditions"] = [
                {
                    "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                    "message": self.faults.unschedulable,
                }
            ]  # fmt: skip
        else:
            spec["nodeName"] = self.node
        return self.put(
            {
                "apiVersion": "v1", "kind": "Pod", "spec": spec, "status": status,
                "metadata": {
                    "name": name, "namespace": meta["namespace"], "labels": template["metadata"].get("labels", {}),
                    "ownerReferences": [{"kind": owner["kind"], "name": meta["name"], "uid": meta["uid"]}],
                },
            }
        )  # fmt: skip

    def _job(self, job: Object, pod: Object) -> None:
        kind = {"Succeeded": "Complete", "Failed": "Failed"}.get(pod.get("status", {}).get("phase", ""))
        if kind and not job.get("status", {}).get("conditions"):
            self.put({**job, "status": {"conditions": [{"type": kind, "status": "True"}]}})

    # ---- requests

    def create(self, path: str, body: Object, manager: str) -> Object:
        meta = body.setdefault("metadata", {})
        if "/namespaces/" in path:
            meta.setdefault("namespace", path.split("/namespaces/")[1].split("/", maxsplit=1)[0])
        if f"{path}/{meta['name']}" in self.objects:
            raise Refused(409, "AlreadyExists", f"{body['kind']} {meta['name']} already exists")
        text = body.pop("stringData", None)
        if text:
            import base64

            body["data"] = {key: base64.b64encode(value.encode()).decode() for key, value in text.items()}
        _own(body, manager, "Update", _leaves(body))
        return self.put(body)

    def patch(self, path: str, body: Object, content_type: str, query: dict[str, str]) -> Object:
        sub = path.endswith("/status")
        path = path.removesuffix("/status")
        before = self.objects.get(path)
        if "apply-patch" in content_type:
            return self._apply(before, body, query)
        if before is None:
            raise Refused(404, "NotFound", f"{path} not found")
        after = _merged(before, body)
        if not sub:
            _own(after, query.get("fieldManager", "kubectl"), "Update", _leaves(body))
        return self.put(after)

    def _apply(self, before: Object | None, body: Object, query: dict[str, str]) -> Object:
        manager, leaves = query["fieldManager"], _leaves(body)
        if before is not None and query.get("force") != "true":
            causes = [
                {
                    "reason": "FieldManagerConflict", "field": "." + ".".join(leaf),
                    "message": f'conflict with "{who}" using {body["apiVersion"]}',
                }
                for leaf in leaves for who in _others(before, manager, leaf)
                if _at(before, leaf) != _at(body, leaf)
            ]  # fmt: skip
            if causes:
                words = f"Apply failed with {len(causes)} conflicts: {causes[0]['message']}: {causes[0]['field']}"
                raise Refused(409, "Conflict", words, causes=causes)
        if before is not None:
            _immutable(before, body)
        after = _merged(before or {"metadata": {}}, body)
        _own(after, manager, "Apply", leaves)
        return self.put(after)

    def listed(self, path: str, query: dict[str, str]) -> list[Object]:
        plural = path.rstrip("/").split("/")[-1]
        space = path.split("/namespaces/")[1].split("/", maxsplit=1)[0] if "/namespaces/" in path else ""
        base = path.split("/namespaces/", maxsplit=1)[0] if space else path.rsplit("/", 1)[0]
        return [one for key, one in self.objects.items() if _matches(key, one, base, space, plural, query)]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    closing = False

    def handle_error(self, *_: object) -> None:
        """A client that leaves in the middle is none of the server's."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_api: KubeApi

    def log_message(self, *_: object) -> None: ...

    def _serve(self) -> None:
        api = self.server_api
        if getattr(self.server, "closing", False):
            self.close_connection = True
            return
        parts = urllib.parse.urlsplit(self.path)
        path, query = parts.path, dict(urllib.parse.parse_qsl(parts.query))
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size)) if size else {}
        api.requests.append((self.command, path))
        time.sleep(api.faults.slow_s)
        try:
            self._checked(path, query)
            if query.get("watch") == "true":
                self._watch(path, query)
            elif path.endswith("/portforward"):
                self._forward(query)
            elif path.endswith("/log"):
                self._log(path, query)
            else:
                self._answer(200, self._done(path, query, body))
        except Refused as refused:
            self._answer(refused.status, refused.body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815 -- the base class calls them so

    def _answer(self, status: int, body: Object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _checked(self, path: str, query: dict[str, str]) -> None:
        faults = self.server_api.faults
        if self.headers.get("Authorization") not in (f"Bearer {TOKEN}", None):
            raise Refused(401, "Unauthorized", "Unauthorized")
        for (method, end), (status, body) in faults.answers.items():
            if method == self.command and path.endswith(end):
                raise Refused(status, body.get("reason", ""), body.get("message", ""), **body.get("details", {}))
        verb, plural = _verb(self.command, path, query)
        if (verb, plural) in faults.forbidden:
            who = f'User "me" cannot {verb} resource "{plural}" in API group "" in the namespace "models"'
            words = f"{plural} is forbidden: {who}"
            raise Refused(403, "Forbidden", words)

    def _done(self, path: str, query: dict[str, str], body: Object) -> Object:  # noqa: PLR0911
        api = self.server_api
        with api.lock:
            if path == "/version":
                return {"major": "1", "minor": "34", "gitVersion": "v1.34.0"}
            if path.endswith("/selfsubjectaccessreviews"):
                asked = body["spec"]["resourceAttributes"]
                return {"status": {"allowed": (asked["verb"], asked["resource"]) not in api.faults.forbidden}}
            if self.command == "POST":
                return api.create(path, body, "selfhost")
            if self.command == "PATCH":
                return api.patch(path, body, self.headers["Content-Type"], query)
            version = path.removeprefix("/apis/").removeprefix("/api/")
            if self.command == "GET" and version in KINDS:
                rows = [{"kind": k, "name": n, "namespaced": s, "verbs": _ALL} for k, n, s in KINDS[version]]
                return {"kind": "APIResourceList", "resources": rows}
            if path in api.objects:
                found = api.objects[path]
                if self.command == "DELETE":
                    api.remove(path, body)
                return found
            if any(path.endswith(f"/{plural}") for rows in KINDS.values() for _, plural, _ in rows):
                items = [
                    {k: v for k, v in one.items() if k not in ("kind", "apiVersion")} for one in api.listed(path, query)
                ]
                return {"kind": "List", "metadata": {"resourceVersion": str(api.version)}, "items": items}
        kind = path.strip("/").split("/")[-2] if "/" in path.strip("/") else ""
        raise Refused(404, "NotFound", f'{kind} "{path.rsplit("/", 1)[-1]}" not found', kind=kind)

    def _watch(self, path: str, query: dict[str, str]) -> None:
        api, seen = self.server_api, int(query["resourceVersion"])
        api.watches.append(path)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        if api.faults.expire_watches > 0:
            api.faults.expire_watches -= 1
            api.version += 1
            api.floor = api.version
        if seen < api.floor:
            gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
            self.wfile.write(json.dumps({"type": "ERROR", "object": gone}).encode() + b"\n")
            return
        if api.faults.drop_watches > 0:
            api.faults.drop_watches -= 1
            self.wfile.write(b'{"type": "MODIFIED", "obj')
            return
        for event in self._news(path, query, seen):
            self.wfile.write(json.dumps(event).encode() + b"\n")
            self.wfile.flush()

    def _news(self, path: str, query: dict[str, str], seen: int) -> Iterator[Object]:
        api = self.server_api
        plural = path.rsplit("/", 1)[-1]
        space, base = path.split("/namespaces/")[1].split("/", maxsplit=1)[0], path.split("/namespaces/", maxsplit=1)[0]
        while not getattr(self.server, "closing", False):
            with api.lock:
                fresh = [row for row in api.history if row[0] > seen]
                seen = api.version
            for _, key, kind, one in fresh:
                if _matches(key, one, base, space, plural, query):
                    yield {"type": kind, "object": one}
            time.sleep(0.03)

    def _forward(self, query: dict[str, str]) -> None:
        kubelet = self.server_api.kubelet
        if kubelet is None:
            raise Refused(500, "InternalError", "no kubelet")
        self.close_connection = True
        forward_websocket(self, kubelet.engine_port, int(query["ports"]))

    def _log(self, path: str, query: dict[str, str]) -> None:
        pod, kubelet = path.split("/")[-2], self.server_api.kubelet
        text = kubelet.log_of(pod, query.get("container", "engine"), query) if kubelet is not None else None
        if text is None:
            raise Refused(400, "BadRequest", f'container "engine" in pod "{pod}" is waiting to start')
        data = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _verb(method: str, path: str, query: dict[str, str]) -> tuple[str, str]:
    words = path.strip("/").split("/")
    plurals = {plural for rows in KINDS.values() for _, plural, _ in rows}
    plural = next((word for word in reversed(words) if word in plurals), "")
    if query.get("watch") == "true":
        return "watch", plural
    verbs = {"POST": "create", "PATCH": "patch", "DELETE": "delete"}
    return verbs.get(method, "list" if words[-1] == plural else "get"), plural


def _matches(key: str, one: Object, base: str, space: str, plural: str, query: dict[str, str]) -> bool:
    meta = one["metadata"]
    labels = meta.get("labels") or {}
    wanted = dict(part.split("=", 1) for part in query.get("labelSelector", "").split(",") if part)
    fields = dict(part.split("=", 1) for part in query.get("fieldSelector", "").split(",") if part)
    return (
        key.startswith(f"{base}/")
        and key.split("/")[-2] == plural
        and (not space or meta.get("namespace") == space)
        and all(labels.get(name) == value for name, value in wanted.items())
        and all((one.get("spec") or {}).get(name.removeprefix("spec.")) == value for name, value in fields.items())
    )


def _owner(one: Object) -> str:
    return next((str(each["uid"]) for each in one["metadata"].get("ownerReferences") or ()), "")


def _root(api: KubeApi, pod: Object) -> str:
    owner = next((each for each in api.objects.values() if each["metadata"]["uid"] == _owner(pod)), None)
    return _owner(owner) if owner is not None else ""


def _is_ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _same(before: Object, after: Object) -> bool:
    quiet = {"resourceVersion", "managedFields", "generation"}
    return all(
        {key: value for key, value in one["metadata"].items() if key not in quiet}
        == {key: value for key, value in other["metadata"].items() if key not in quiet}
        for one, other in ((before, after),)
    )


def _merged(before: Any, over: Any) -> Any:
    if not isinstance(before, dict) or not isinstance(over, dict):
        return copy.deepcopy(over)
    found = copy.deepcopy(before)
    for key, value in over.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = _merged(found.get(key), value)
    return found


def _leaves(tree: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Where values stand; a list is one."""
    if not isinstance(tree, dict) or not tree:
        return [path] if path and path[0] not in ("apiVersion", "kind") and path[:2] != ("metadata", "name") else []
    return [leaf for key, value in tree.items() for leaf in _leaves(value, (*path, key))]


def _at(tree: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        tree = tree.get(step) if isinstance(tree, dict) else None
    return tree


def _own(one: Object, manager: str, operation: str, leaves: list[tuple[str, ...]]) -> None:
    held = [
        each
        for each in one["metadata"].get("managedFields") or ()
        if (each["manager"], each["operation"]) != (manager, operation)
    ]
    tree: Object = {}
    for leaf in leaves:
        below = tree
        for step in leaf:
            below = below.setdefault(f"f:{step}", {})
    one["metadata"]["managedFields"] = [*held, {"manager": manager, "operation": operation, "fieldsV1": tree}]


def _others(one: Object, manager: str, leaf: tuple[str, ...]) -> Iterator[str]:
    for each in one["metadata"].get("managedFields") or ():
        if (each["manager"], each["operation"]) != (manager, "Apply") and _at(
            each["fieldsV1"], tuple(f"f:{s}" for s in leaf)
        ) is not None:
            yield each["manager"]


def _immutable(before: Object, after: Object) -> None:
    fixed = {
        "Deployment": ("spec", "selector"),
        "PersistentVolumeClaim": ("spec", "storageClassName"),
        "Job": ("spec", "template"),
    }
    path = fixed.get(before["kind"])
    if path and _at(after, path) is not None and _at(before, path) != _at(after, path):
        what = f'{before["kind"]} "{before["metadata"]["name"]}"'
        words = f"{what} is invalid: {'.'.join(path)}: Invalid value: field is immutable"
        causes = [{"reason": "FieldValueInvalid", "field": ".".join(path), "message": "field is immutable"}]
        raise Refused(422, "Invalid", words, causes=causes)
