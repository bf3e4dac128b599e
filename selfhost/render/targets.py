"""Every target by its name: a plan and a place → files."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from selfhost.plan.workload import workload_of
from selfhost.render import compose, helm, kubernetes, process, quadlet, run_line
from selfhost.render.head import Head, after_reboot, head_of, readme_facts
from selfhost.render.templates import environment
from selfhost.shapes.bundle import Bundle
from selfhost.shapes.place import Place
from selfhost.shapes.plan import Plan
from selfhost.shapes.workload import Workload

if TYPE_CHECKING:
    from jinja2 import Template

TARGETS: Final = ("compose", "docker", "podman", "quadlet", "process", "helm", "kubernetes")
CLUSTER: Final = ("helm", "kubernetes")
README: Final = "README.txt"
_FOLDERS: Final = {"compose": "compose", "docker": "run", "podman": "run", "quadlet": "quadlet"}


def render(target: str, plan: Plan, place: Place, *, bare: bool = False) -> Bundle:
    """The same plan and place give the same bytes; the first file is the one that runs. `bare`: without reasons.

    Raises InputError for what the target has no words for.
    """
    if target in CLUSTER and plan.cluster is not None:
        if target == "helm":
            return helm.render(plan, plan.cluster, place, bare=bare)
        return kubernetes.render(plan, plan.cluster, place, bare=bare)
    if target == "process" or plan.container is None:
        return process.render(plan, python=place.python, key_file=place.key_file, folder=place.folder)
    workload = workload_of(plan, place)
    files, executable = files_of(target, workload, head_of(plan), {} if bare else plan.container.reasons)
    files[README] = _readme(target, plan, workload, place, tuple(files))
    return Bundle(files=files, executable=executable)


def files_of(
    target: str, workload: Workload, head: Head, reasons: Mapping[str, str]
) -> tuple[dict[str, str], frozenset[str]]:
    """Files without the README, and those that are to be executable."""
    if target == "compose":
        return {compose.FILE: _compose(workload, head, reasons)}, frozenset()
    if target == "quadlet":
        return _quadlet(workload, head, reasons), frozenset()
    return {run_line.FILE: _run(workload, target, head, reasons)}, frozenset({run_line.FILE})


def _compose(workload: Workload, head: Head, reasons: Mapping[str, str]) -> str:
    made = compose.parts(workload, reasons)
    return _template("compose/compose.yaml").render(
        head=head, arguments=("-f", compose.FILE), override=compose.OVERRIDE, project=made.project,
        service=made.service, lines=made.lines, beside=made.beside,
    )  # fmt: skip


def _run(workload: Workload, program: str, head: Head, reasons: Mapping[str, str]) -> str:
    made = run_line.parts(workload, program, reasons)
    return _template("run/run.sh").render(
        head=head, networks=made.networks, volumes=made.volumes, labels=made.labels, begin=made.begin,
        lines=made.lines, reasons=made.reasons,
        look_network=(program, "network", "inspect"), make_network=(program, "network", "create"),
        look_volume=(program, "volume", "inspect"), make_volume=(program, "volume", "create"),
    )  # fmt: skip


def _quadlet(workload: Workload, head: Head, reasons: Mapping[str, str]) -> dict[str, str]:
    made = quadlet.parts(workload, reasons)
    files = {
        f"{made.unit}.container": _template("quadlet/unit.container").render(
            head=head, unit=made.unit, limits=made.limits, lines=made.lines, service=made.service,
            starts_at_boot=made.starts_at_boot,
        )
    }  # fmt: skip
    for kind, named in (("network", made.networks), ("volume", made.volumes)):
        for file, name in named.items():
            files[file] = _template(f"quadlet/unit.{kind}").render(head=head, name=name, labels=made.labels)
    return files


def _readme(target: str, plan: Plan, workload: Workload, place: Place, files: tuple[str, ...]) -> str:
    program = "docker" if target in ("compose", "docker") else "podman"
    boot, boot_command = after_reboot(workload, target)
    return _template(f"{_FOLDERS[target]}/README.txt").render(
        **readme_facts(plan, workload, place), program=program, boot=boot,
        boot_command=boot_command, units=files,
        service=f"{workload.name}.service",
    )  # fmt: skip


def _template(name: str) -> "Template":
    return environment().get_template(f"{name}.j2")
