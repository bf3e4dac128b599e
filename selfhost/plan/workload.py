"""A plan as the normal form of a launched engine, which renderers write and readers give back."""

from selfhost import __version__
from selfhost.plan.cluster.workload import pod_workload
from selfhost.plan.container.user import ROOTLESS
from selfhost.plan.digest import digest_of
from selfhost.shapes.place import Place
from selfhost.shapes.plan import ContainerPlan, Plan
from selfhost.shapes.units import GIB
from selfhost.shapes.workload import ContainerEngine, Health, Mount, Ulimit, Workload

TEMPORARY = "/tmp"  # noqa: S108 - inside the container
LOG_BYTES, LOG_FILES = "64m", "3"
LABEL = "io.selfhost"
_CHECK = (
    "import urllib.request as u; "
    "u.build_opener(u.ProxyHandler({})).open('http://127.0.0.1:%d/health', timeout=%d)"
)  # fmt: skip
_HEALTH_TIMEOUT_S = 20
"""SGLang generates a token for each answer, and waits up to 20 s for it."""


ULIMITS = (
    Ulimit(name="memlock", soft=-1, hard=-1),
    Ulimit(name="stack", soft=64 * 1024**2, hard=64 * 1024**2),
)
"""Of containers with cards. On the CPU nothing is pinned, and a machine that forbids to raise limits can serve."""


def workload_of(plan: Plan, place: Place) -> Workload:
    """What will run, with the files of `place`; no field holds a secret."""
    if plan.cluster is not None:
        return pod_workload(plan, plan.cluster, place)
    if plan.container is not None:
        return _container(plan, plan.container, place)
    return Workload(
        name=plan.name,
        argv=(place.python, "-m", plan.build.module, *plan.argv),
        env=dict(plan.env),
    )


def labels_of(plan: Plan) -> dict[str, str]:
    """On everything that is made for this deployment."""
    return {f"{LABEL}.name": plan.name, f"{LABEL}.digest": digest_of(plan), f"{LABEL}.version": __version__}


def _container(plan: Plan, container: ContainerPlan, place: Place) -> Workload:
    way = container.injection
    driver, options = _log(plan.runtime)
    return Workload(
        name=f"selfhost-{plan.name}",
        container_engine=ContainerEngine(container.engine),
        image=f"{container.image}@{place.image_digest}" if place.image_digest else container.image,
        argv=(*(plan.image.command if plan.image is not None else ()), *plan.argv),
        env={**_homes(container), **plan.env, **way.env},
        env_files=(place.env_file,) if place.env_file else (),
        devices=way.devices,
        cdi=way.cdi,
        requests=way.requests,
        runtime=way.runtime,
        mounts=(*_mounts(container), *way.mounts),
        ports=(f"{plan.address}:{plan.port}:{container.port}",),
        network=f"selfhost-{plan.name}",
        user=container.user,
        group_add=way.group_add,
        cap_add=way.cap_add,
        cap_drop=("ALL",),
        security_opt=("no-new-privileges:true", *way.security_opt),
        shm_bytes=container.shm_bytes,
        ulimits=_ulimits(plan, container),
        init=True,
        read_only=container.read_only,
        stop_grace_s=container.stop_grace_s,
        health=_health(container),
        labels=labels_of(plan),
        restart=container.restart_checked if place.checked else container.restart,
        log_driver=driver,
        log_options=options,
    )


def _ulimits(plan: Plan, container: ContainerPlan) -> tuple[Ulimit, ...]:
    """Without root nobody raises a limit that the machine has set for him: the container would not start."""
    if plan.build.backend == "cpu":
        return ()
    return ULIMITS[1:] if container.user == ROOTLESS else ULIMITS


def _homes(container: ContainerPlan) -> dict[str, str]:
    """Where compilers keep what they made, and a name for a user that the image does not know (torch asks for it)."""
    return {
        "HOME": container.home,
        "USER": "selfhost",
        "TORCHINDUCTOR_CACHE_DIR": f"{container.home}/.cache/torchinductor",
    }


def _mounts(container: ContainerPlan) -> tuple[Mount, ...]:
    mounts = [
        Mount(source=container.model_source, target=container.model_target, read_only=True),
        Mount(source=container.cache_volume, target=container.home, kind="volume"),
    ]
    if container.read_only:
        mounts.append(Mount(target=TEMPORARY, kind="tmpfs", size_bytes=GIB))
    return tuple(mounts)


def _health(container: ContainerPlan) -> Health:
    return Health(
        test=("python3", "-c", _CHECK % (container.port, _HEALTH_TIMEOUT_S)),
        interval_s=15,
        timeout_s=_HEALTH_TIMEOUT_S + 5,
        retries=6,
        start_period_s=container.start_period_s,
    )


def _log(runtime: str) -> tuple[str, dict[str, str]]:
    """So that a log never fills the disk; journald keeps its own bounds."""
    if runtime == "quadlet":
        return "journald", {}
    if runtime == "podman":
        return "k8s-file", {"max-size": LOG_BYTES}
    return "json-file", {"max-size": LOG_BYTES, "max-file": LOG_FILES}
