"""Words about an engine that runs in a cluster."""

import shlex

from selfhost.shapes.plan import Plan


def forward_command(plan: Plan) -> str:
    """What leads the address of the plan to the engine; empty for one that is on this machine anyway."""
    cluster = plan.cluster
    if cluster is None:
        return ""
    context = f"--context {shlex.quote(cluster.context)} " if cluster.context != "in-pod" else ""
    return (
        f"kubectl {context}--namespace {cluster.namespace} port-forward service/{cluster.release} {plan.port}:{SERVICE}"
    )


SERVICE = 8000
"""Port of the Service, as the chart has it (service.port)."""
