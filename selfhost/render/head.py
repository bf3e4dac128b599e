"""What every file of a bundle opens with, and what its README says."""

from dataclasses import dataclass

from selfhost.core.secret import HEADER_SUFFIX
from selfhost.engines.base import engine
from selfhost.plan.digest import digest_of
from selfhost.render.asking import asking
from selfhost.render.compose import has_own_network, volume_keys
from selfhost.shapes.place import Place
from selfhost.shapes.plan import Plan
from selfhost.shapes.workload import Workload

_NOT_RUN = "Files for this card were parsed by their own tools in selfhost's tests, not run on a GPU there."


@dataclass(frozen=True, slots=True)
class Head:
    title: str
    digest: str


def head_of(plan: Plan) -> Head:
    title = f"{plan.name}: {plan.model.id} on {plan.build.engine} {plan.build.version}, {plan.device_name}"
    return Head(title=title, digest=digest_of(plan))


def readme_facts(plan: Plan, workload: Workload, place: Place) -> dict[str, object]:
    """Values of the README; no secret is among them."""
    keyed = bool(engine(plan.build.engine).KEY_VARIABLE and place.key_file)
    return {
        "head": head_of(plan),
        "base_url": plan.base_url,
        "chat_url": f"{plan.base_url}/chat/completions",
        "model": plan.model.served_name,
        **asking(plan),
        "key_file": place.key_file,
        "header_file": place.key_file + HEADER_SUFFIX if keyed else "",
        "env_file": place.env_file,
        "image": workload.image,
        "weights": plan.container.model_source if plan.container is not None else plan.model.path,
        "container": workload.name,
        "networks": (workload.network,) if has_own_network(workload) else (),
        "volumes": tuple(volume_keys(workload)),
        "note": "" if plan.build.backend == "cpu" else _NOT_RUN,
    }


def after_reboot(workload: Workload, target: str) -> tuple[str, tuple[str, ...]]:
    """What happens then, behind the words `After a reboot`, and the command that it needs."""
    policy = workload.restart.partition(":")[0]
    if target == "quadlet" and policy != "no":
        return "it starts by itself where your user's services run without a login:", ("loginctl", "enable-linger")
    if policy != "unless-stopped":
        again = "`selfhost up` changes that after a start that it checked" if policy == "on-failure" else "as planned"
        return f"it stays down until it is started again (restart policy `{workload.restart or 'no'}`; {again}).", ()
    if target == "podman":
        enable = ("systemctl", "--user", "enable", "podman-restart.service")
        return "it comes back where your user's services run without a login (loginctl enable-linger) and:", enable
    return "it comes back with Docker's daemon:", ("sudo", "systemctl", "enable", "docker")
