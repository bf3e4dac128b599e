"""The step `apply` for a cluster: what would refuse is asked first, then one engine for this plan."""

from dataclasses import replace

from selfhost.deploy.apply import PORT_TRIES, keys, lost
from selfhost.deploy.cluster_gather import cluster_of
from selfhost.deploy.cluster_steps import of
from selfhost.deploy.endpoint import takes_key
from selfhost.deploy.run import Run
from selfhost.deploy.runtime import cluster_runtime, of_state
from selfhost.engines.base import engine
from selfhost.plan.cluster.names import hub_secret
from selfhost.plan.cluster.values import DIGEST_DIGITS
from selfhost.runtimes.base import STOP_GRACE_S, ClusterLaunch, Launchable, Seen
from selfhost.runtimes.cluster.before import Before, look
from selfhost.runtimes.cluster.launch import objects_in
from selfhost.runtimes.cluster.owners import shown
from selfhost.runtimes.ports import free_port

STEP = "apply"
APPLIED = "applied"
"""Key of lock.json: the digest of the files that were applied last."""


def wanted(run: Run) -> Seen | None:
    """The engine that runs, when it is the one that this plan and the written files ask for."""
    seen = run.runtime.inspect(run.plan.name)
    if not seen.alive or not seen.plan_digest or seen.plan_digest != run.digest[:DIGEST_DIGITS]:
        return None
    same = run.bundle is not None and run.state.lock().get(APPLIED) == run.bundle.digest
    return seen if same and seen.health == "healthy" else None


def apply(run: Run) -> str:
    """Apply the objects. Raises SelfhostError with nothing changed where it is known beforehand."""
    plan, name = of(run), run.plan.name
    objects = objects_in(str(run.state.bundle))
    cluster = cluster_of(run.work, run.gathered.service)
    before = look(cluster, run.work.system, name=name, release=plan.release, objects=objects, overwrite=run.overwrite)
    for note in before.notes:
        run.tell(STEP, "warning", note)
    keys(run)
    former = of_state(run.state, paths=run.work.paths, system=run.work.system)
    if former.info.name != run.runtime.info.name and former.inspect(name).alive:
        run.tell(STEP, "warning", f"the engine that ran under {former.info.name} is ended first")
        former.remove(name) if former.info.containers else former.stop(name, grace_s=STOP_GRACE_S)
    run.touched = True
    run.state.write_wanted(run.gathered.service, run.plan)
    for one in objects:
        if one.get("kind") == "PersistentVolumeClaim":
            run.made(STEP, kind="claim", path=f"{plan.namespace}/{one['metadata']['name']}", existed=None)
    launch = _launch(run, before)
    if launch.hub_secret:
        run.tell(STEP, "working", f"the hub's token of your environment goes into the Secret {launch.hub_secret}")
    run.runtime.start(_launchable(run, launch))
    if run.bundle is not None:
        run.state.write_lock(**{APPLIED: run.bundle.digest})
    return _words(run, before, objects=[shown(one) for one in objects])


def reach(run: Run) -> None:
    """Listen where the plan says, and lead from there to the pod; a default port that was lost meanwhile moves.

    Raises PortLost for one that was asked for.
    """
    runtime, name = cluster_runtime(run.runtime), run.plan.name
    for _ in range(PORT_TRIES):
        try:
            runtime.forward(name, port=run.plan.port)
        except OSError:
            if run.plan.port_explicit:
                break
            port = free_port(run.plan.port + 1, without=run.work.taken_ports)
            run.tell(STEP, "warning", f"the port was taken meanwhile; now 127.0.0.1:{port}")
            run.plan = replace(run.plan, port=port)
            run.state.write_wanted(run.gathered.service, run.plan)
            runtime.move(name, port)
        else:
            return
    raise lost(run, runtime.port_holder(name, run.plan.port) or "another process")


def _launchable(run: Run, launch: ClusterLaunch) -> Launchable:
    return Launchable(
        name=run.plan.name,
        key_variable=engine(run.plan.build.engine).KEY_VARIABLE,
        key_file=str(run.state.key_file) if takes_key(run.plan) else "",
        plan_digest=run.digest,
        port=run.plan.port,
        cluster=launch,
    )


def _launch(run: Run, before: Before) -> ClusterLaunch:
    plan = of(run)
    own = plan.ask.hub_token_secret == hub_secret(plan.release)
    return ClusterLaunch(
        context=plan.context,
        namespace=plan.namespace,
        release=plan.release,
        folder=str(run.state.bundle),
        pod_port=engine_port(run),
        how=before.how,
        key_secret=f"{plan.release}-api-key" if takes_key(run.plan) and not plan.ask.key_secret else "",
        key_of=plan.ask.key_secret if takes_key(run.plan) else "",
        hub_secret=plan.ask.hub_token_secret if own else "",
        force=run.overwrite,
        deadline_s=plan.startup_budget_s + plan.fetch_budget_s,
    )


def engine_port(run: Run) -> int:
    """Where the server listens in its pod, as the objects say."""
    for one in objects_in(str(run.state.bundle)):
        if one.get("kind") == "Deployment":
            containers = one["spec"]["template"]["spec"]["containers"]
            ports = [port["containerPort"] for each in containers for port in each.get("ports") or ()]
            return int(ports[0])
    raise ValueError("a bundle without a Deployment")


def _words(run: Run, before: Before, *, objects: list[str]) -> str:
    applied = cluster_runtime(run.runtime).applied
    if not applied:
        return f"{len(objects)} objects, by {before.why}"
    changed = [one for one in applied if one.state != "unchanged"]
    words = f"{len(changed)} of {len(applied)} objects changed" if before.existed else f"{len(applied)} objects"
    for one in applied:
        for field, who in one.left.items():
            run.tell(STEP, "warning", f"{field} of {one.kind} {one.name} stays as `{who}` set it")
    return f"{words}, by {before.why}"


def interrupted(run: Run) -> None:
    """A cluster goes on without us: nothing is ended, and the words say so."""
    name = run.plan.name
    if run.ready:
        run.tell("smoke", "warning", f"{name} is running in the cluster and was not checked to the end")
    elif run.touched:
        run.tell("wait", "warning", f"the cluster goes on with {name}; the same command looks how far it is")
    else:
        run.tell(STEP, "warning", "nothing was applied; the same command continues")
