"""The engine's container of a cluster plan as the normal form, which a reader of its manifests gives back."""

from typing import Any

from selfhost.plan.cluster.arch import node_selector_of
from selfhost.plan.cluster.case import MODEL_PATH, PORT
from selfhost.plan.cluster.values import values_of
from selfhost.shapes.cluster import ClusterPlan
from selfhost.shapes.place import Place
from selfhost.shapes.plan import Plan
from selfhost.shapes.workload import ContainerEngine, EnvSource, Form, Mount, PodFacts, Workload

_HOME = "/var/tmp"  # noqa: S108 - inside the container
_TMP = "/tmp"  # noqa: S108


def pod_workload(plan: Plan, cluster: ClusterPlan, place: Place) -> Workload:
    values = values_of(plan, image_digest=place.image_digest)
    forms = cluster.forms
    key = plan.build.engine == "vllm"
    env = {**_own(plan, cluster), **(forms.env if forms is not None else {}), **(forms.modes[0].env if forms else {})}
    image = values["image"]
    security = values.get("podSecurityContext", {})
    group = security.get("fsGroup", 2000)
    return Workload(
        name="engine",
        form=Form.POD,
        container_engine=ContainerEngine.KUBERNETES,
        image=f"{image['registry']}/{image['repository']}"
        + (f"@{image['digest']}" if image["digest"] else f":{image['tag']}"),
        argv=(*values["engine"]["command"], *plan.argv),
        env=env,
        env_sources={"VLLM_API_KEY": EnvSource.REFERENCE} if key else {},
        user=str(security.get("runAsUser", 2000)),
        cap_drop=("ALL",),
        cap_add=("SYS_PTRACE",) if cluster.unconfined else (),
        mounts=_mounts(cluster),
        ports=(str(PORT),),
        pod=_facts(plan, cluster, values, group),
    )


def _own(plan: Plan, cluster: ClusterPlan) -> dict[str, str]:
    ca = "/etc/selfhost/ca/ca.crt"
    return {
        "HOME": _HOME,
        "USER": "selfhost",
        "TORCHINDUCTOR_CACHE_DIR": f"{_HOME}/.cache/torchinductor",
        **({"NVIDIA_VISIBLE_DEVICES": "void"} if plan.build.backend == "cpu" else {}),
        **({"REQUESTS_CA_BUNDLE": ca, "SSL_CERT_FILE": ca} if cluster.ask.ca_config_map else {}),
    }


def _mounts(cluster: ClusterPlan) -> tuple[Mount, ...]:
    claim = cluster.weights_claim or f"{cluster.release}-weights"
    cache = (
        Mount(target=_HOME, kind="emptyDir", size_bytes=8 * 1024**3)
        if cluster.weights_claim
        else Mount(target=_HOME, source=claim, kind="pvc")
    )
    ca = cluster.ask.ca_config_map
    return (
        Mount(target=MODEL_PATH, source=claim, kind="pvc", read_only=True),
        cache,
        Mount(target=_TMP, kind="emptyDir"),
        Mount(target="/dev/shm", kind="emptyDir", medium="Memory", size_bytes=cluster.shm),  # noqa: S108
        *((Mount(target="/etc/selfhost/ca", source=ca, kind="configMap", read_only=True),) if ca else ()),
    )


def _facts(plan: Plan, cluster: ClusterPlan, values: dict[str, Any], group: int) -> PodFacts:
    devices, revision, resources = cluster.devices, values["model"]["revision"], values["resources"]
    cards = {devices.resource: str(devices.count)} if devices.mode == "devicePlugin" else {}
    return PodFacts(
        kind="Deployment",
        name=cluster.release,
        limits={**resources["limits"], **cards},
        requests={**resources["requests"], **cards},
        claims=("gpus",) if devices.claim is not None else (),
        claim_classes=(devices.claim.device_class,) if devices.claim is not None else (),
        runtime_class=cluster.runtime_class,
        node_selector=dict(node_selector_of(plan, cluster)),
        tolerations=(*devices.tolerations, *(one for one in cluster.ask.tolerations if one not in devices.tolerations)),
        seccomp="Unconfined" if cluster.unconfined else "RuntimeDefault",
        supplemental_groups=(group,),
        annotations={"selfhost.io/model": f"{plan.model.id}@{revision}"},
        namespace=cluster.namespace,
    )
