"""What all objects of one release share: names, labels, metadata, the start of every pod. As _helpers.tpl."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from selfhost.plan.cluster.names import cache_folder, model_folder
from selfhost.render.manifests.chart import NAME, over

Object = dict[str, Any]
LONGEST = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """`values` are the chart's with those of the plan over them. Without a namespace objects name none."""

    name: str
    values: Mapping[str, Any]
    namespace: str = ""

    @property
    def full(self) -> str:
        found = self.values["fullnameOverride"]
        if not found:
            chart = self.values["nameOverride"] or NAME
            found = self.name if chart in self.name else f"{self.name}-{chart}"
        found = re.sub(r"[^a-z0-9-]+", "-", found.lower()).strip("-")
        return (f"m-{found}" if found[:1].isdigit() else found)[:LONGEST].removesuffix("-")

    @property
    def account(self) -> str:
        account = self.values["serviceAccount"]
        return str(account["name"] or (self.full if account["create"] else "default"))

    @property
    def claim(self) -> str:
        return str(self.values["weights"]["existingClaim"] or f"{self.full}-weights")

    @property
    def key_secret(self) -> str:
        return str(self.values["apiKey"]["existingSecret"] or f"{self.full}-api-key")

    @property
    def selector(self) -> dict[str, str]:
        return {"app.kubernetes.io/name": NAME, "app.kubernetes.io/instance": self.name}

    def component(self, name: str) -> dict[str, str]:
        return {**self.selector, "app.kubernetes.io/component": name}

    def metadata(
        self, component: str, name: str, *, labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> Object:  # fmt: skip
        """Labels and annotations that were asked for on every object come last, and change none of ours."""
        version = re.sub(r"[^A-Za-z0-9_.-]", "_", str(self.values["engine"]["version"]))[:63]
        own = {
            **self.component(component),
            "app.kubernetes.io/version": version,
            "app.kubernetes.io/part-of": "selfhost",
            **{f"io.selfhost.{key}": str(value) for key, value in self.values["selfhost"].items() if value},
        }
        noted = {**self.values["commonAnnotations"], **(annotations or {})}
        return {
            "name": name,
            **({"namespace": self.namespace} if self.namespace else {}),
            "labels": {**self.values["commonLabels"], **(labels or {}), **own},
            **({"annotations": noted} if noted else {}),
        }

    @property
    def tag(self) -> str:
        return str(self.values["image"]["tag"] or f"v{self.values['engine']['version']}")

    @property
    def image(self) -> str:
        return image_of({**self.values["image"], "tag": self.tag})

    @property
    def queue(self) -> dict[str, str]:
        """Kueue holds back what has no label in a cluster that manages all of it: the job too."""
        name = self.values["queue"]
        return {"kueue.x-k8s.io/queue-name": name} if name else {}

    @property
    def one_node(self) -> bool:
        return not {"ReadWriteMany", "ReadOnlyMany"} & set(self.values["weights"]["accessModes"])

    @property
    def most_replicas(self) -> int:
        scaling = self.values["autoscaling"]
        return int(scaling["maxReplicas"] if scaling["enabled"] else self.values.get("replicaCount") or 1)

    @property
    def uses_claim(self) -> bool:
        cards = self.values["accelerator"]
        return bool(cards["vendor"] != "none" and cards["mode"] == "dra")

    @property
    def tolerations(self) -> list[Any]:
        return [*self.values["accelerator"]["tolerations"], *self.values["tolerations"]]

    @property
    def wanted(self) -> str:
        """Which weights, as the job marks them and the engine's pod waits for them."""
        model = self.values["model"]
        return compact(
            {"model": model["id"], "revision": model["revision"], "include": self.values["fetch"]["include"]}
        )

    def pod(self) -> Object:
        """The start of every pod."""
        secrets = self.values["imagePullSecrets"]
        return {
            "serviceAccountName": self.account,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            **({"imagePullSecrets": [{"name": name} for name in secrets]} if secrets else {}),
            "securityContext": over(self.values["podSecurityContext"], {}),
        }

    def ca_variables(self) -> dict[str, str]:
        path = "/etc/selfhost/ca/ca.crt"
        return {"REQUESTS_CA_BUNDLE": path, "SSL_CERT_FILE": path} if self.values["ca"]["existingConfigMap"] else {}

    def ca_mounts(self) -> list[Object]:
        there = self.values["ca"]["existingConfigMap"]
        return [{"name": "ca", "mountPath": "/etc/selfhost/ca", "readOnly": True}] if there else []

    def ca_volumes(self) -> list[Object]:
        ca = self.values["ca"]
        if not ca["existingConfigMap"]:
            return []
        items = [{"key": ca["existingConfigMapKey"], "path": "ca.crt"}]
        return [{"name": "ca", "configMap": {"name": ca["existingConfigMap"], "items": items}}]

    def weights_volume(self) -> Object:
        return {"name": "weights", "persistentVolumeClaim": {"claimName": self.claim}}

    def weights_mount(self, path: str, **more: bool) -> Object:
        """The whole volume where it is the model's folder itself."""
        sub_path = self.values["weights"].get("subPath")
        if sub_path is None:
            sub_path = model_folder(self.values["model"]["id"], self.values["model"]["revision"])
        return {"name": "weights", "mountPath": path, **({"subPath": sub_path} if sub_path else {}), **more}

    @property
    def cache_folder(self) -> str:
        given = self.values["cache"].get("subPath")
        if given is not None:
            return str(given)
        repository = str(self.values["image"]["repository"])
        return cache_folder(f"{repository}:{self.tag}", self.values["cache"]["arch"])


def image_of(image: Mapping[str, str]) -> str:
    registry = f"{image['registry'].removesuffix('/')}/" if image["registry"] else ""
    return f"{registry}{image['repository']}{'@' + image['digest'] if image['digest'] else ':' + image['tag']}"


def literal(text: object) -> str:
    """Kubernetes replaces $(NAME) and halves $$."""
    return str(text).replace("$", "$$")


def compact(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def hash_of(spec: Mapping[str, Any]) -> str:
    """Of an object that can never change: another content gets another name."""
    return hashlib.sha256(compact(spec).encode()).hexdigest()[:8]
