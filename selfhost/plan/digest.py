"""One number for what runs: it changes exactly when the engine would be started differently."""

import hashlib
import json
from dataclasses import asdict

from selfhost.shapes.cluster import ClusterPlan
from selfhost.shapes.host import Known
from selfhost.shapes.plan import ContainerPlan, Plan

_NOT_RUN = ("reasons", "exceptions", "ask", "context", "namespace", "forms")
_WORDS = ("reasons", "restart", "restart_checked")


def digest_of(plan: Plan) -> str:
    """SHA-256 of the canonical JSON of build, model, arguments and environment; without the key and the reasons."""
    revision = plan.model.revision
    runs = {
        "name": plan.name,
        "runtime": plan.runtime,
        "build": [
            plan.build.engine,
            plan.build.distribution,
            plan.build.version,
            plan.build.backend,
            plan.build.module,
        ],
        "model": [plan.model.id, plan.model.path, revision.value if isinstance(revision, Known) else ""],
        "device": plan.device,
        "argv": list(plan.argv),
        "env": plan.env,
        **({"container": _runs(plan.container)} if plan.container is not None else {}),
        **({"cluster": _in_cluster(plan.cluster)} if plan.cluster is not None else {}),
    }
    canonical = json.dumps(runs, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _runs(container: ContainerPlan) -> dict[str, object]:
    """Whether it restarts changes nothing about what runs."""
    return {key: value for key, value in asdict(container).items() if key not in _WORDS}


def _in_cluster(cluster: ClusterPlan) -> dict[str, object]:
    """Which cluster it is, by which way one speaks to it, and other ways to serve the model change nothing either."""
    return {key: value for key, value in asdict(cluster).items() if key not in _NOT_RUN}
